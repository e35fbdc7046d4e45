"""Shell lines with which background processes receive signals as foreground processes do.

A shell that waits for a foreground command does not handle a signal before the command has ended. So a script
that must pass signals on starts its commands in the background, where they would ignore INT and QUIT.
"""

from __future__ import annotations

from jpsi.contract import ShellLine

#: The signals that batch systems and users send to a job, to end it or to notify it.
SIGNALS = ("HUP", "INT", "QUIT", "TERM", "ALRM", "USR1", "USR2", "XCPU")


def heed_signals() -> list[ShellLine]:
    r"""Return lines that make the command in `"$@"` react to INT and QUIT in the background, too.

    They apply to a command that is started with `[ -z "${BASH_VERSION-}" ] || trap - INT QUIT` before it.
    """
    return _lines(_HEED)


def pass_signals(name: str) -> list[ShellLine]:
    """Return shell functions that pass signals on to child processes, for `trap_signals` and its caller.

    - `_NAME_pass SIGNAL`, which the traps call, sends a signal to the processes in `_NAME_pids`, a list in
      which a blank follows each id.
    - `_NAME_wait PID` waits for the end of the first process in the list, stores its exit code in
      `_NAME_code`, and removes it from the list. It first passes on a signal that arrived earlier, to all
      processes.
    """
    return _lines(_FORWARDING.replace("NAME", name))


def trap_signals(name: str, before: str = "") -> list[ShellLine]:
    """Return lines that pass every signal on, after running the commands `before`."""
    return _lines(_TRAP.replace("NAME", name).replace("BEFORE", before))


def _lines(text: str) -> list[ShellLine]:
    return [ShellLine(it) for it in text.splitlines()]


# POSIX XCU 2.11; of the shells only bash can undo it, for others env(1) of coreutils 8.31 and later does.
_HEED = """\
# What runs in the background ignores INT and QUIT; bash undoes that itself, elsewhere env(1) can.
if [ -z "${BASH_VERSION-}" ] && /usr/bin/env -i --default-signal=INT,QUIT >/dev/null 2>&1; then
  set -- /usr/bin/env --default-signal=INT,QUIT "$@"
fi"""

# The shell's 127 cannot be told from the exit code of a process that gets a signal and then exits 127 itself.
# Batch systems signal the shell and the process at once, so that the shell's 127 is the usual case.
_FORWARDING = """\
_NAME_pids='' _NAME_got=''
# shellcheck disable=SC2317,SC2329  # the traps call it
_NAME_pass() {
  _NAME_got=$1
  # shellcheck disable=SC2086  # several words
  [ -z "$_NAME_pids" ] || kill -s "$1" $_NAME_pids 2>/dev/null || :
}
# A signal ends `wait` early; asked again about a process whose end it told just then, it says 127. Of
# one that ended as the signal came, bash 5.2 may have lost the code, and says -1.
_NAME_wait() {
  # One that came while processes were started may have missed some: right after its start, dash loses them.
  if [ -n "$_NAME_got" ]; then
    PATH=${PATH-}:/usr/bin:/bin command sleep 0.2 || PATH=/usr/bin:/bin command sleep 1
    _NAME_pass "$_NAME_got"
  fi
  _NAME_code=''
  while :; do
    _NAME_got=
    wait "$1"
    _NAME_answer=$?
    case $_NAME_code,$_NAME_answer in [0-9]*,127 | [0-9]*,-1) ;; *) _NAME_code=$_NAME_answer ;; esac
    [ -n "$_NAME_got" ] || break
  done
  _NAME_pids=${_NAME_pids#* }
}"""

_TRAP = """\
for _NAME_signal in SIGNALS; do
  # shellcheck disable=SC2064  # the signal of now
  trap "BEFORE_NAME_pass $_NAME_signal" "$_NAME_signal"
done""".replace("SIGNALS", " ".join(SIGNALS))
