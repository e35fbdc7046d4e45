"""The outcome of a job: what its final status means for the execution."""

from __future__ import annotations

import attrs

from jpsi import JobState, JobStatus, Reason

from ..model import ExecutionState

#: The reasons that do not come from the computation; after one of these, the job is retried.
INFRASTRUCTURE = frozenset(
    {
        Reason.LAUNCH,
        Reason.LOST,
        Reason.NODE_FAIL,
        Reason.PREEMPTED,
        Reason.REQUEUED,
        Reason.ATTACH_UNVERIFIED,
    }
)
_RESULTS = frozenset({None, Reason.EXIT_CODE, Reason.SIGNAL})


@attrs.frozen(slots=True)
class End:
    """The end of an attempt."""

    #: COMPLETE or CANCELLED; QUEUED if the job is retried.
    state: ExecutionState
    exit_code: int | None
    reason: str | None


def end_of(status: JobStatus, *, attempts_left: int) -> End:
    """Return the end of an attempt for a job's final status.

    >>> end_of(JobStatus(JobState.COMPLETED, exit_code=0), attempts_left=2).state.value
    'complete'
    """
    reason = None if status.reason is None else status.reason.value
    if status.state is JobState.COMPLETED:
        return End(ExecutionState.COMPLETE, 0, None)
    if status.state is JobState.FAILED and status.exit_code is not None and status.reason in _RESULTS:
        return End(ExecutionState.COMPLETE, status.exit_code, reason)
    if status.reason in INFRASTRUCTURE and attempts_left > 0:
        return End(ExecutionState.QUEUED, None, reason)
    return End(ExecutionState.CANCELLED, None, reason or status.state.value.lower())
