"""Lines of shell that have what runs in the background take signals as if it ran in the foreground.

A shell that waits for a command in the foreground does nothing about a signal before that has ended. So what
has to pass signals on starts its commands in the background, where they would ignore INT and QUIT.
"""

from __future__ import annotations

from jpsi.contract import ShellLine

#: What batch systems and users send to a job, to end it or to tell it something.
SIGNALS = ("HUP", "INT", "QUIT", "TERM", "ALRM", "USR1", "USR2", "XCPU")


def heed_signals() -> list[ShellLine]:
    r"""The lines that have the command in `"$@"` take INT and QUIT in the background, too.

    They hold for what is started with `[ -z "${BASH_VERSION-}" ] || trap - INT QUIT` before it.
    """
    return _lines(_HEED)


def pass_signals(name: str) -> list[ShellLine]:
    """The functions that pass signals on to processes of the shell, for `trap_signals` and its caller.

    - `_NAME_pass SIGNAL`, which is for traps, sends a signal to the processes in `_NAME_pids`, each with a
      blank after it.
    - `_NAME_wait PID` waits for the end of the first of these, leaves its code in `_NAME_code`, and takes it
      off the list. A signal that came before is passed on then, to all.
    """
    return _lines(_FORWARDING.replace("NAME", name))


def trap_signals(name: str, before: str = "") -> list[ShellLine]:
    """The lines that pass every signal on, after the commands `before`."""
    return _lines(_TRAP.replace("NAME", name).replace("BEFORE", before))


def _lines(text: str) -> list[ShellLine]:
    return [ShellLine(it) for it in text.splitlines()]


# POSIX XCU 2.11; of the shells only bash can undo it, elsewhere env(1) of coreutils 8.31 and later does.
_HEED = """\
# What runs in the background ignores INT and QUIT; bash undoes that itself, elsewhere env(1) can.
if [ -z "${BASH_VERSION-}" ] && /usr/bin/env -i --default-signal=INT,QUIT >/dev/null 2>&1; then
  set -- /usr/bin/env --default-signal=INT,QUIT "$@"
fi"""

# Such a 127 cannot be told from the code of a process that was sent a signal and then exits 127 by itself.
# Batch systems signal the shell and the process at once, so that the first is the one that happens.
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
