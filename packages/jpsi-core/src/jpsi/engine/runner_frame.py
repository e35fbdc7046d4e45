"""What stands around the job in the runner's script: the claim, the markers, and what signals do.

There are two ways. On this machine the runner waits for its job in the foreground, and whoever ends the job
signals every process of its session. A batch system may signal the runner alone, so that there the job runs
in the background and the runner passes signals on; and it may run the same script again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

import attrs

from jpsi.contract.shell import ShellLine, word

#: How the claim of a job begins that does not know its native id.
UNNAMED = "unnamed."

#: The exit code of a job that could not be set up (as env(1), nohup(1) and timeout(1) do).
SETUP_CODE = 125

_SIGNALS = ("HUP", "INT", "QUIT", "TERM", "ALRM", "USR1", "USR2", "XCPU")
_EVERY_SIGNAL = " ".join(_SIGNALS)
_FUNCTIONS = """\
# A marker is an empty file whose name is the fact; one that cannot be written stops nothing.
_jpsi_note() { true >"$_jpsi_mark.$1" || :; }
_jpsi_end() { _jpsi_note "exit.$1.$2"; exit "$2"; }"""


class Frame(Protocol):
    """The parts of the script that depend on who starts and ends the job."""

    def begin(self, mark: str, folder: str, attempt: int) -> Iterator[str]:
        """Make the claim, or exit, and have the functions for markers and the traps in place."""

    def catch(self) -> Iterator[str]:
        """Set the traps of a shell that stands between the runner and the job."""

    def launch(self, lines: Iterable[ShellLine]) -> Iterator[str]:
        """Run these lines with standard error at descriptor 8, and leave the exit code in `_jpsi_code`."""

    def shelter(self, lines: Iterable[str]) -> Iterator[str]:
        """Run these lines in a shell of their own, and leave its exit code in `_jpsi_code`."""


@attrs.frozen(slots=True)
class ProcessFrame:
    """For processes of this machine."""

    def begin(self, mark: str, folder: str, attempt: int) -> Iterator[str]:
        """See `Frame`; the claim is the runner's pid."""
        yield f"_jpsi_folder={word(folder)}"
        yield f"_jpsi_mark={word(mark)}"
        yield "# Whoever makes the claim runs this attempt, nobody else ever does."
        yield "set -C"
        yield f'echo $$ >"$_jpsi_folder"/claim.{attempt} || exit {SETUP_CODE}'
        yield "set +C"
        yield "exec 9>&-"
        yield _FUNCTIONS
        yield f"trap '_jpsi_note signalled' {_EVERY_SIGNAL}"

    def catch(self) -> Iterator[str]:
        """See `Frame`."""
        yield f"trap : {_EVERY_SIGNAL}"

    def launch(self, lines: Iterable[ShellLine]) -> Iterator[str]:
        """See `Frame`."""
        yield "("
        yield from lines
        yield ") 2>&8 8>&-"
        yield "_jpsi_code=$?"

    def shelter(self, lines: Iterable[str]) -> Iterator[str]:
        """See `Frame`."""
        yield "("
        yield from lines
        yield ")"
        yield "_jpsi_code=$?"


@attrs.frozen(slots=True)
class BatchFrame:
    """For jobs of a batch system."""

    #: The variable that tells the job its native id, or several, separated by blanks; empty if there is none.
    id_variable: str

    def begin(self, mark: str, folder: str, attempt: int) -> Iterator[str]:
        """See `Frame`; the claim is the native id, so that the same job may come again."""
        yield f"_jpsi_folder={word(folder)}"
        yield f"_jpsi_mark={word(mark)}"
        # Without an id nobody knows another run of the same job from a stranger's.
        native_id = f"{UNNAMED}$$"
        for variable in reversed(self.id_variable.split()):
            native_id = f"${{{variable}:-{native_id}}}"
        yield f"_jpsi_native_id={native_id}"
        yield _CLAIM.format(attempt=attempt, code=SETUP_CODE)
        yield _FUNCTIONS
        yield _FORWARDING
        yield from self._traps("_jpsi_note signalled; ")
        yield "_jpsi_note active"

    def catch(self) -> Iterator[str]:
        """See `Frame`."""
        yield "_jpsi_child= _jpsi_got="
        yield from self._traps("")

    @staticmethod
    def _traps(before: str) -> Iterator[str]:
        yield f"for _jpsi_signal in {_EVERY_SIGNAL}; do"
        yield f'  trap "{before}_jpsi_pass $_jpsi_signal" $_jpsi_signal'
        yield "done"

    def launch(self, lines: Iterable[ShellLine]) -> Iterator[str]:
        """See `Frame`."""
        yield from _RESTORING
        yield from self._apart(lines, "2>&8 8>&-")

    def shelter(self, lines: Iterable[str]) -> Iterator[str]:
        """See `Frame`."""
        yield from self._apart(lines, "")

    @staticmethod
    def _apart(lines: Iterable[str], streams: str) -> Iterator[str]:
        # What runs in the background reads /dev/null unless told otherwise (POSIX XCU 2.9.3).
        yield "command exec 7<&0 || exec 7</dev/null"
        yield "("
        yield '[ -z "${BASH_VERSION-}" ] || trap - INT QUIT'
        yield from lines
        yield f") <&7 7<&- {streams} &".replace("  ", " ")
        yield "exec 7<&-"
        yield "_jpsi_wait $!"


# A claim that is there already is this job's own if the batch system runs it again.
_CLAIM = """\
# Whoever makes the claim runs this attempt, nobody else ever does; a job that is run again finds its own.
set -C
if ! {{ echo "$_jpsi_native_id" >"$_jpsi_folder"/claim.{attempt}; }} 2>/dev/null; then
  read -r _jpsi_claim <"$_jpsi_folder"/claim.{attempt} || exit {code}
  [ "$_jpsi_claim" = "$_jpsi_native_id" ] || exit {code}
fi
set +C
_jpsi_restart=0
while [ -e "$_jpsi_folder/start.{attempt}.$_jpsi_restart" ]; do
  _jpsi_restart=$((_jpsi_restart + 1))
done
true >"$_jpsi_folder/start.{attempt}.$_jpsi_restart" || :
[ "$_jpsi_restart" -eq 0 ] || _jpsi_mark=$_jpsi_mark.$_jpsi_restart"""

# `wait` ends early when a trap ran, and is asked again; where it had collected the code just before, some
# shells then answer 127, as for any stranger.
_FORWARDING = """\
_jpsi_child= _jpsi_got=
_jpsi_pass() {
  _jpsi_got=$1
  [ -z "$_jpsi_child" ] || kill -s "$1" "$_jpsi_child" 2>/dev/null || :
}
_jpsi_wait() {
  _jpsi_child=$1
  [ -z "$_jpsi_got" ] || kill -s "$_jpsi_got" "$1" 2>/dev/null || :
  _jpsi_code=
  while :; do
    _jpsi_got=
    wait "$1"
    _jpsi_answer=$?
    [ -n "$_jpsi_code" ] && [ "$_jpsi_answer" -eq 127 ] || _jpsi_code=$_jpsi_answer
    [ -n "$_jpsi_got" ] || break
  done
  _jpsi_child=
}"""

# Commands in the background ignore INT and QUIT (POSIX XCU 2.11), and of the shells only bash can undo it:
# elsewhere env(1) of coreutils 8.31 and later does.
_RESTORING = (
    'if [ -z "${BASH_VERSION-}" ] && /usr/bin/env --default-signal=INT,QUIT /bin/true 2>/dev/null; then',
    '  set -- /usr/bin/env --default-signal=INT,QUIT "$@"',
    "fi",
)
