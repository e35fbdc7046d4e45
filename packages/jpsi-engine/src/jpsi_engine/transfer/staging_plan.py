"""What is to be staged for a job, as a plan of steps: pure, whoever carries them out.

Where the job's files are files of this machine, or of a file system that it shares, the runner does it on the
node of the job. Where they are elsewhere, the program that submits brings and fetches them.
"""

from __future__ import annotations

import enum

import attrs

from jpsi import StageIn, StageOut, StageOutFlags, StagingMode
from jpsi.plugin import JobSpec
from jpsi.plugin.engine import has_staging


class Outcome(enum.Enum):
    """How a job ended, as far as staging depends on it."""

    SUCCESS = "success"
    ERROR = "error"
    CANCEL = "cancel"


_FLAGS = {
    Outcome.SUCCESS: StageOutFlags.ON_SUCCESS,
    Outcome.ERROR: StageOutFlags.ON_ERROR,
    Outcome.CANCEL: StageOutFlags.ON_CANCEL,
}


@attrs.frozen(slots=True, kw_only=True)
class Transfer:
    """One file or directory that is brought from one place to another.

    The path on the side of the job is absolute, begins with `~/`, or is relative to the job's directory; the
    other one is absolute.
    """

    mode: StagingMode
    source: str
    target: str
    #: Whether a source that is not there is no failure.
    is_optional: bool = False
    #: After which ends of the job it is done; of no meaning before the job.
    outcomes: tuple[Outcome, ...] = tuple(Outcome)


@attrs.frozen(slots=True, kw_only=True)
class Plan:
    """Everything that is staged for one job, in the order in which it is done.

    A transfer of `stage_in` that fails ends the job, and nothing after it is done. Of `stage_out` each is
    tried, whatever becomes of the others. Nothing is removed if one of these failed.
    """

    stage_in: tuple[Transfer, ...] = ()
    stage_out: tuple[Transfer, ...] = ()
    #: Paths on the side of the job, in its directory.
    cleanup: tuple[str, ...] = ()
    #: After which ends of the job they are removed.
    cleanup_outcomes: tuple[Outcome, ...] = ()

    def __bool__(self) -> bool:
        """Whether anything is to be done."""
        return bool(self.stage_in or self.stage_out or self.cleanup)


_NOTHING = Plan()


def plan(spec: JobSpec) -> Plan:
    """What is to be done for a spec that `settled` has made."""
    if not has_staging(spec):
        return _NOTHING
    return Plan(
        stage_in=tuple(map(_in, spec.stage_in or ())),
        stage_out=tuple(map(_out, spec.stage_out or ())),
        cleanup=tuple(map(str, spec.cleanup or ())),
        cleanup_outcomes=outcomes(spec.cleanup_flags),
    )


def _in(item: StageIn) -> Transfer:
    return Transfer(mode=item.mode, source=item.source, target=str(item.target))


def _out(item: StageOut) -> Transfer:
    return Transfer(
        mode=item.mode,
        source=str(item.source),
        target=item.target,
        is_optional=StageOutFlags.IF_PRESENT in item.flags,
        outcomes=outcomes(item.flags),
    )


def outcomes(flags: StageOutFlags) -> tuple[Outcome, ...]:
    """The ends of a job after which something with these flags is done.

    >>> outcomes(StageOutFlags.IF_PRESENT)
    (<Outcome.SUCCESS: 'success'>,)
    """
    if not flags & StageOutFlags.ALWAYS:
        flags |= StageOutFlags.ON_SUCCESS
    return tuple(outcome for outcome, flag in _FLAGS.items() if flag in flags)
