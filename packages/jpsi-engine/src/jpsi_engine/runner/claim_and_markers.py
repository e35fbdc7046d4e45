"""Renders the frame of the runner's script around the job: the claim, the markers, and the signal traps.

There are two frames. On this machine, the runner waits for its job in the foreground, and the client that
cancels the job signals every process of its session. A batch system may signal the runner alone; there the
job runs in the background, and the runner passes signals on. A batch system may also run the same script
again.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator
from typing import ClassVar, Protocol

import attrs

from jpsi.plugin import ShellLine, word
from jpsi.plugin.kit import SIGNALS, forward_signals, trap_signals, unignore_signals
from jpsi_engine.runner.requeue import RequeueRules, count_runs, define_functions
from jpsi_engine.runner.walltime_warning import WalltimeWarning, warned_launch
from jpsi_engine.spool import UNNAMED
from jpsi_engine.verdict import MEMORY_KILL, SETUP_CODE, SIGNAL_BASE

#: The umask of the runner's own files, which are the user's alone, and that of files that belong to the job.
PRIVATE_UMASK = "umask 077"
JOB_UMASK = 'umask "$_jpsi_umask"'
_SIGNAL_NAMES = " ".join(SIGNALS)
#: The prefix of the runner's own names in the script.
OWN = "jpsi"
_KILLED_CODE = SIGNAL_BASE + signal.SIGKILL
_TERM_CODE = SIGNAL_BASE + signal.SIGTERM
# The streams of the job, in the shell that starts it.
_STREAMS = " 2>&8 8>&-"
#: The functions that leave markers.
FUNCTIONS = """\
# A marker is an empty file whose name is the fact; the job goes on if it cannot be written.
_jpsi_note() { umask 077; true >"$_jpsi_mark.$1" || :; }
# Sets _jpsi_used to the CPU time of the runner's children, in hundredths of a second, if the kernel tells it.
_jpsi_used=''
_jpsi_measure() {
  {
    IFS=' ' read -r _ _jpsi_name _ _ _ _ _ _ _ _ _ _ _ _ _ _jpsi_user _jpsi_system _ </proc/self/stat
  } 2>/dev/null || return 0
  case $_jpsi_name in *')') _jpsi_used=$_jpsi_used-$((_jpsi_user + _jpsi_system)) ;; esac
}
_jpsi_end() { _jpsi_measure; _jpsi_note "exit.$1$_jpsi_used.$2"; exit "$2"; }"""

# A batch system may have a control group for each job, named by its native id, as OpenPBS has; other groups
# count what happened to other jobs, too. A number may be the name of anything, such as a container's. Groups
# of version 1 have the count since Linux 4.13.
_MEMORY_KILLS = f"""\
# Notes that the kernel killed a process of this job for its memory, if the job's own control group says so.
_jpsi_find_kill() {{
  _jpsi_own=${{_jpsi_element_id:-$_jpsi_native_id}}
  case $_jpsi_own in *[!0-9]*) ;; *) return 0 ;; esac
  while IFS=: read -r _ _jpsi_name _jpsi_group; do
    case $_jpsi_name$_jpsi_group/ in
    memory/*/"$_jpsi_own"/*) _jpsi_group=/memory$_jpsi_group/memory.oom_control ;;
    /*/"$_jpsi_own"/*) _jpsi_group=$_jpsi_group/memory.events ;;
    *) continue ;;
    esac
    while IFS=' ' read -r _jpsi_name _jpsi_kills; do
      case $_jpsi_name,$_jpsi_kills in oom_kill,[1-9]*) _jpsi_used=-{MEMORY_KILL} ;; esac
    done <"/sys/fs/cgroup$_jpsi_group"
  done </proc/self/cgroup
}}"""

#: The same for jobs of batch systems.
BATCH_FUNCTIONS = f"{FUNCTIONS}\n{_MEMORY_KILLS}"


class Frame(Protocol):
    """The parts of the script that depend on the system that starts and ends the job."""

    #: True if every process of the job is a descendant of the runner, whatever the launcher.
    has_all_processes: ClassVar[bool] = False

    def begin(self, mark: str, folder: str, attempt: int) -> Iterator[str]:
        """Make the claim, or exit; then define the functions for markers and set the traps."""

    def define(self, lines: Iterable[str]) -> Iterable[str]:
        """Return the lines of functions that are to stand among a job's own lines."""
        return lines

    def set_traps(self) -> Iterator[str]:
        """Set the traps of a shell between the runner and the job."""

    def check_stop(self, stop_file: str) -> Iterable[ShellLine]:  # noqa: ARG002  for processes of this machine
        """Return the lines that end the job, instead of starting its program, if its end was requested."""
        return ()

    def launch(self, lines: Iterable[ShellLine], warning: WalltimeWarning | None = None) -> Iterator[str]:
        """Run these lines with standard error at descriptor 8; leave the exit code in `_jpsi_code`.

        Args:
            lines: the lines of the launcher.
            warning: the signal that the job gets before the end of its walltime.
        """
        if warning is None:
            yield from self.run_in_subshell(lines, _STREAMS)
        else:
            yield from unignore_signals()
            launch = _run_in_background(lines, _STREAMS)
            yield from self.run_in_subshell([*self.catch_signals(), *warned_launch(warning, launch)])

    def catch_signals(self) -> Iterator[str]:
        """Yield the lines by which a shell that waits for the job with `forward_signals` catches signals."""
        return self.set_traps()

    def run_in_subshell(self, lines: Iterable[str], streams: str = "") -> Iterator[str]:
        """Run these lines in a shell of their own; leave its exit code in `_jpsi_code`.

        Args:
            lines: the lines.
            streams: redirections of that shell, after a blank.
        """

    def rerun_words(self, file: str) -> list[str]:
        """Return the words of shell that run the runner's file once more; `file` is that of a single job."""
        return ["/bin/sh", word(file)]


@attrs.frozen(slots=True)
class ProcessFrame(Frame):
    """The frame of processes of this machine."""

    has_all_processes: ClassVar[bool] = True
    #: The umask of the job as a word of shell; the default starts a process to find it out.
    umask: str = "$(umask)"

    def begin(self, mark: str, folder: str, attempt: int) -> Iterator[str]:
        """See `Frame`; the claim is the runner's pid."""
        yield from private_umask(self.umask)
        yield f"_jpsi_folder={word(folder)}"
        yield f"_jpsi_mark={word(mark)}"
        yield "# The runner that makes the claim runs this attempt, no other ever does."
        yield "set -C"
        yield f'echo $$ >"$_jpsi_folder"/claim.{attempt} || exit {SETUP_CODE}'
        yield "set +C"
        yield "exec 9>&-"
        yield FUNCTIONS
        yield f"trap '_jpsi_note signalled' {_SIGNAL_NAMES}"
        # The TERM of a client that follows that of `check_stop` must not make the marker later than the end.
        yield "trap 'trap : TERM; _jpsi_note signalled' TERM"

    def set_traps(self) -> Iterator[str]:
        """See `Frame`."""
        yield f"trap : {_SIGNAL_NAMES}"

    def check_stop(self, stop_file: str) -> Iterable[ShellLine]:
        """See `Frame`.

        A client writes the file before it sends TERM. A TERM that comes before the shell that becomes the
        program was made, or while that still has the traps of its parent, is lost to the program. The
        runner gets it once more: the client's may come too late for the marker.
        """
        yield ShellLine(f"test ! -e {word(stop_file)} || {{ kill -s TERM $$; exit {_TERM_CODE}; }}")

    def run_in_subshell(self, lines: Iterable[str], streams: str = "") -> Iterator[str]:
        """See `Frame`."""
        yield "("
        yield from lines
        yield f"){streams}"
        yield "_jpsi_code=$?"

    def catch_signals(self) -> Iterator[str]:
        """See `Frame`; who signals the shell signals the job as well, so nothing is passed on to it."""
        yield from forward_signals(OWN)
        yield f"trap _jpsi_got=0 {_SIGNAL_NAMES}"


@attrs.frozen(slots=True)
class BatchFrame(Frame):
    """The frame of jobs of a batch system."""

    #: The variable that holds the job's native id, or several names separated by blanks; empty if there is
    #: none.
    id_variable: str
    requeue: RequeueRules = attrs.field(factory=RequeueRules)

    def begin(self, mark: str, folder: str, attempt: int) -> Iterator[str]:
        """See `Frame`; the claim is the native id, so that the same job may come again."""
        yield from private_umask()
        yield f"_jpsi_folder={word(folder)}"
        yield f"_jpsi_mark={word(mark)}"
        # Without an id, the runner cannot tell another run of the same job from a foreign job.
        yield f"_jpsi_native_id={first_set_variable(self.id_variable, default=f'{UNNAMED}$$')}"
        yield _CLAIM.format(attempt=attempt, code=SETUP_CODE, signals=_SIGNAL_NAMES)
        yield from define_functions(self.requeue)
        yield from count_runs(str(attempt), self.requeue)
        yield BATCH_FUNCTIONS
        yield from forward_signals(OWN)
        yield from trap_signals(OWN, "_jpsi_note signalled; ")
        yield "_jpsi_note active"

    def set_traps(self) -> Iterator[str]:
        """See `Frame`."""
        yield from trap_signals(OWN)

    def launch(self, lines: Iterable[ShellLine], warning: WalltimeWarning | None = None) -> Iterator[str]:
        """See `Frame`."""
        if warning is None:
            yield from unignore_signals()
        yield from super().launch(lines, warning)

    def run_in_subshell(self, lines: Iterable[str], streams: str = "") -> Iterator[str]:
        """See `Frame`; the shell runs in the background."""
        yield from _run_in_background(lines, streams)
        yield f"[ $_jpsi_code -ne {_KILLED_CODE} ] || {{ _jpsi_find_kill; }} 2>/dev/null || :"


def _run_in_background(lines: Iterable[str], streams: str) -> Iterator[str]:
    # A command in the background reads /dev/null unless it is redirected (POSIX XCU 2.9.3).
    yield "command exec 7<&0 || exec 7</dev/null"
    yield "("
    yield '[ -z "${BASH_VERSION-}" ] || trap - INT QUIT'
    yield "_jpsi_got=''"  # the shell around it passes on what it has got
    yield from lines
    yield f") <&7 7<&-{streams} &"
    yield '_jpsi_pids="$! "'
    yield "exec 7<&-"
    yield "_jpsi_wait $!"


def private_umask(umask: str = "$(umask)") -> Iterator[str]:
    """Yield the lines that remember the umask of the job and set a stricter one.

    Args:
        umask: the umask of the job, as a word of shell.
    """
    yield f"_jpsi_umask={umask}"
    yield PRIVATE_UMASK


def first_set_variable(variables: str, *, default: str) -> str:
    """Return the value of the first of these variables that is set, as a word of shell.

    Args:
        variables: their names, separated by blanks.
        default: the value if none is set, as a word of shell.
    """
    for variable in reversed(variables.split()):
        default = f"${{{variable}:-{default}}}"
    return default


# A claim that exists already is this job's own if the batch system runs the job again. To requeue the job,
# the batch system signals it, perhaps at this moment. A runner that ended between making the file and writing
# into it would leave a claim that no later run can tell from that of a foreign job.
_CLAIM = """\
# A signal takes effect only after the claim is complete.
_jpsi_early=''
for _jpsi_signal in {signals}; do
  # shellcheck disable=SC2064  # the signal of now
  trap "_jpsi_early=$_jpsi_signal" "$_jpsi_signal"
done
# The runner that makes the claim runs this attempt, no other ever does; a requeued job finds its own claim.
set -C
if ! {{ echo "$_jpsi_native_id" >"$_jpsi_folder"/claim.{attempt}; }} 2>/dev/null; then
  read -r _jpsi_claim <"$_jpsi_folder"/claim.{attempt} || exit {code}
  [ "$_jpsi_claim" = "$_jpsi_native_id" ] || exit {code}
fi
set +C
trap - {signals}
[ -z "$_jpsi_early" ] || kill -s "$_jpsi_early" $$"""
