"""Lines of shell that several launchers need."""

from __future__ import annotations

from jpsi.plugin import ShellLine


def shell(text: str) -> list[ShellLine]:
    """The lines of a text that is shell already."""
    return [ShellLine(it) for it in text.splitlines()]


#: Makes a word of the command that is a colon pass launchers to which a colon ends the command.
HIDE_COLONS = shell(
    """\
case " $* " in
*' : '*)
  # A colon would end the command here: each word goes with a dot before it, which is taken off again there.
  for _launch_word in "$@"; do shift; set -- "$@" ".$_launch_word"; done
  # shellcheck disable=SC2016  # for that shell
  set -- /bin/sh -c 'for word in "$@"; do shift; set -- "$@" "${word#.}"; done; exec "$@"' sh "$@"
  ;;
esac"""
)

#: Has the command take INT and QUIT again, which what runs in the background ignores.
HEED_SIGNALS = shell(
    """\
# What runs in the background ignores INT and QUIT; bash undoes that itself, elsewhere env(1) can.
if [ -z "${BASH_VERSION-}" ] && /usr/bin/env --default-signal=INT,QUIT /bin/true 2>/dev/null; then
  set -- /usr/bin/env --default-signal=INT,QUIT "$@"
fi"""
)

#: Passes signals on to the processes in `_launch_pids`; `_launch_wait PID` leaves a code in `_launch_code`.
PASS_SIGNALS = shell(
    """\
_launch_pids=""
_launch_got=""
# shellcheck disable=SC2317,SC2329  # the traps call it
_launch_pass() {
  _launch_got=$1
  # shellcheck disable=SC2086  # several words
  [ -z "$_launch_pids" ] || kill -s "$1" $_launch_pids 2>/dev/null || :
}
for _launch_signal in HUP INT QUIT TERM USR1 USR2 XCPU; do
  # shellcheck disable=SC2064  # the signal of now
  trap "_launch_pass $_launch_signal" "$_launch_signal"
done
# A signal ends `wait` early; asked again about a process whose end it knew just then, it says 127.
_launch_wait() {
  _launch_code=""
  while :; do
    _launch_got=""
    wait "$1"
    _launch_answer=$?
    [ -n "$_launch_code" ] && [ "$_launch_answer" -eq 127 ] || _launch_code=$_launch_answer
    case $_launch_got in
    '') break ;;
    INT | TERM) _launch_ended=$_launch_answer ;;
    esac
  done
}
# Standard input, which nothing in the background has by itself.
command exec 3<&0 || exec 3</dev/null"""
)
