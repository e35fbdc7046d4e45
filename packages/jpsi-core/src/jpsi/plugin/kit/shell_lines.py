"""Shell lines for launchers and runners: signals, missing programs, and commands as text.

A shell that waits for a foreground command does not handle a signal before the command has ended. So a script
that must pass signals on starts its commands in the background, where they would ignore INT and QUIT.
"""

from __future__ import annotations

import re

from jpsi.contract import Command, ShellLine, line, word
from jpsi.model import SIGNALS


def unignore_signals() -> list[ShellLine]:
    r"""Return lines that make the command in `"$@"` react to INT and QUIT in the background, too.

    They apply to a command that is started with `[ -z "${BASH_VERSION-}" ] || trap - INT QUIT` before it.
    """
    return _lines(_HEED)


def forward_signals(name: str) -> list[ShellLine]:
    """Return shell functions that pass signals on to child processes, for `trap_signals` and its caller.

    - `_NAME_pass SIGNAL`, which the traps call, sends a signal to the processes in `_NAME_pids`, a list to
      whose end the caller adds each id and a blank; after 0.2 s if they have just started, as they may lose
      it before.
    - `_NAME_wait PID` waits for the end of the first process in the list, stores its exit code in
      `_NAME_code`, and removes it from the list. It first passes on the last signal that arrived
      earlier, to the processes that were added to the list since then.
    """
    return _lines(_FORWARDING.replace("NAME", name))


def trap_signals(name: str, before: str = "") -> list[ShellLine]:
    """Return lines that pass every signal on, after running the commands `before`."""
    return _lines(_TRAP.replace("NAME", name).replace("BEFORE", before))


def _lines(text: str) -> list[ShellLine]:
    return [ShellLine(it) for it in text.splitlines()]


def require_program(name: str) -> list[ShellLine]:
    """Return lines that end a job, and blame the launcher, if a program is not installed.

    They must come first in a launcher's lines: to the shell, a missing program looks like one that fails.
    """
    message = word(f"{name} is not on the PATH of the job:")
    return [
        ShellLine(f"{line('command', '-v', name)} >/dev/null 2>&1 || {{"),
        ShellLine(f'  echo {message} "${{PATH-}}" >"$_jpsi_log"'),
        ShellLine("  exit 127"),
        ShellLine("}"),
    ]


def command_lines(command: Command, not_found: ShellLine) -> list[ShellLine]:
    r"""Return lines of POSIX shell that exec a command, with its environment; its `stdin` is ignored.

    They are for interfaces that accept only a shell script. The line `not_found` runs if there is no such
    command; it must end the shell.

    >>> print(*command_lines(Command(["ls", "a b"], environment={"B": "1"}), line("exit", "127")), sep="\n")
    command -v ls >/dev/null 2>&1 || { exit 127; }
    exec env 'B=1' ls 'a b'
    """
    lines = []
    if names := [name for name in command.unset if _VARIABLE.match(name)]:
        lines.append(line("unset", *names))
    if prefixes := [name for name in command.unset if name.endswith("*") and _VARIABLE.match(name[:-1])]:
        patterns = " | ".join(f"{word(prefix[:-1])}*" for prefix in prefixes)
        case = f'case $_jpsi_name in {patterns}) unset "$_jpsi_name" ;; esac'
        lines.append(ShellLine(f"for _jpsi_name in $({_VARIABLES}); do {case}; done"))
    lines.append(ShellLine(f"{line('command', '-v', command.argv[0])} >/dev/null 2>&1 || {{ {not_found}; }}"))
    variables = [f"{name}={value}" for name, value in command.environment.items()]
    return [*lines, line("exec", *(["env", *variables] if variables else []), *command.argv)]


_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
# A name that begins a line inside a multi-line value is unset as well, which is harmless: it is no variable.
_VARIABLES = "env | sed -n 's/^\\([A-Za-z_][A-Za-z0-9_]*\\)=.*/\\1/p'"

# POSIX XCU 2.11; env(1) of coreutils 8.31 and later undoes it. A bash can, unless it ignores them itself.
_HEED = """\
# What runs in the background ignores INT and QUIT, and so does what a batch system starts that ignores them.
if /usr/bin/env -i --default-signal=INT,QUIT >/dev/null 2>&1; then
  set -- /usr/bin/env --default-signal=INT,QUIT "$@"
fi"""

# The shell's 127 looks the same as the exit code of a process that gets a signal and then exits 127 itself.
# Batch systems signal the shell and the process at the same time, so that the shell's 127 is the usual case.
_FORWARDING = """\
_NAME_pids='' _NAME_reached='' _NAME_got='' _NAME_begun=''
# shellcheck disable=SC2317,SC2329  # the traps call it
_NAME_pass() {
  _NAME_got=$1
  _NAME_reached=$_NAME_pids
  _NAME_kill "$1" "$_NAME_pids"
}
_NAME_kill() {
  [ -n "$2" ] || return 0
  # A process that dash has just started loses a signal until it has reset its traps.
  if _NAME_is_young; then
    PATH=${PATH-}:/usr/bin:/bin command sleep 0.2 || PATH=/usr/bin:/bin command sleep 1
  fi
  # shellcheck disable=SC2086  # several words
  kill -s "$1" $2 2>/dev/null || :
}
# True in the first seconds of a process, and where no file tells the time.
_NAME_is_young() {
  _NAME_now=''
  { read -r _NAME_now _ </proc/uptime; } 2>/dev/null || :
  [ -z "$_NAME_begun" ] || [ $((${_NAME_now%.*} - ${_NAME_begun%.*})) -le 1 ]
}
# True of a process whose end bash 5.2 has lost, as a signal came at the same time: bash lists it as running,
# and `wait` would return -1 once all other processes, such as a timer, have ended.
_NAME_is_lost() {
  [ -n "${BASH_VERSION-}" ] && ! kill -s 0 "$1" 2>/dev/null || return
  # shellcheck disable=SC3045  # bash
  for _NAME_running in $(jobs -r -p); do [ "$_NAME_running" != "$1" ] || return 0; done
  return 1
}
# A signal ends `wait` early. If `wait` has just reported the end of this process, it then returns 127.
_NAME_wait() {
  [ -n "$_NAME_begun" ] || { read -r _NAME_begun _ </proc/uptime; } 2>/dev/null || :
  # A signal that came while processes were being started has not reached the later ones. The others must not
  # get it again: at a second signal, many programs exit without cleaning up.
  [ -z "$_NAME_got" ] || _NAME_kill "$_NAME_got" "${_NAME_pids#"$_NAME_reached"}"
  _NAME_code=''
  while :; do
    _NAME_got=
    wait "$1"
    _NAME_answer=$?
    case $_NAME_code,$_NAME_answer in [0-9]*,127 | [0-9]*,-1) ;; *) _NAME_code=$_NAME_answer ;; esac
    [ -n "$_NAME_got" ] || break
    ! _NAME_is_lost "$1" || { _NAME_got=''; break; }
  done
  _NAME_pids=${_NAME_pids#* } _NAME_reached=${_NAME_reached#* }
  [ -n "$_NAME_pids" ] || _NAME_begun=''
}"""

_TRAP = """\
for _NAME_signal in SIGNALS; do
  # shellcheck disable=SC2064  # the signal of now
  trap "BEFORE_NAME_pass $_NAME_signal" "$_NAME_signal"
done""".replace("SIGNALS", " ".join(SIGNALS))
