"""Turns the staging of a job's spec into a plan of steps; pure.

If the job's files are on this machine, or on a file system that it shares, the runner carries out the plan on
the job's node. If they are on a remote host, the submitting program transfers them.
"""

from __future__ import annotations

import enum

import attrs

from jpsi import StageOut, StageOutFlags, StagingMode
from jpsi.plugin import JobSpec
from jpsi.plugin.engine import has_staging


class Outcome(enum.Enum):
    """The outcomes of a job that staging distinguishes."""

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
    """A file or directory that is staged in or out.

    The path on the job's side is absolute, begins with `~/`, or is relative to the job's directory; the other
    path is absolute.
    """

    mode: StagingMode
    source: str
    target: str
    #: True if a missing source is no failure.
    is_optional: bool = False
    #: The outcomes of the job after which a stage out is done; ignored for a stage in.
    outcomes: tuple[Outcome, ...] = tuple(Outcome)


@attrs.frozen(slots=True, kw_only=True)
class Plan:
    """The staging of one job, in the order in which it is done.

    If a transfer of `stage_in` fails, the job ends and no further step is done. Each transfer of `stage_out`
    is tried, even if another one fails. If one of them fails, `cleanup` removes nothing.
    """

    stage_in: tuple[Transfer, ...] = ()
    stage_out: tuple[Transfer, ...] = ()
    #: The paths to remove, on the job's side, in its directory.
    cleanup: tuple[str, ...] = ()
    #: The outcomes of the job after which they are removed.
    cleanup_outcomes: tuple[Outcome, ...] = ()

    def __bool__(self) -> bool:
        """Return True if there is anything to stage or to remove."""
        return bool(self.stage_in or self.stage_out or self.cleanup)


_EMPTY_PLAN = Plan()


def plan(spec: JobSpec) -> Plan:
    """Return the plan for a spec that `settled` has made."""
    if not has_staging(spec):
        return _EMPTY_PLAN
    return Plan(
        stage_in=tuple(
            Transfer(mode=it.mode, source=it.source, target=str(it.target)) for it in spec.stage_in or ()
        ),
        stage_out=tuple(map(_stage_out_transfer, spec.stage_out or ())),
        cleanup=tuple(map(str, spec.cleanup or ())),
        cleanup_outcomes=outcomes(spec.cleanup_flags),
    )


def _stage_out_transfer(item: StageOut) -> Transfer:
    return Transfer(
        mode=item.mode,
        source=str(item.source),
        target=item.target,
        is_optional=StageOutFlags.IF_PRESENT in item.flags,
        outcomes=outcomes(item.flags),
    )


def outcomes(flags: StageOutFlags) -> tuple[Outcome, ...]:
    """Return the outcomes of a job after which a step with these flags is done.

    >>> outcomes(StageOutFlags.IF_PRESENT)
    (<Outcome.SUCCESS: 'success'>,)
    """
    if not flags & StageOutFlags.ALWAYS:
        flags |= StageOutFlags.ON_SUCCESS
    return tuple(outcome for outcome, flag in _FLAGS.items() if flag in flags)
