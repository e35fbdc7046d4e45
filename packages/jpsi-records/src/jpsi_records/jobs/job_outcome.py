"""Decides if an execution is complete, cancelled or retried after its job has ended.

The dispatcher uses it. A failure of the batch system, such as a lost node, must not count as a result of the
computation.
"""

from __future__ import annotations

import attrs

from jpsi import JobState, JobStatus, Reason

from ..model import ExecutionState

#: The reasons that do not come from the computation; after one of these, the job is retried if attempts are
#: left.
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
# The reasons of a failed job whose exit code is a result of the computation.
_RESULTS = frozenset({None, Reason.EXIT_CODE, Reason.SIGNAL})


@attrs.frozen(slots=True)
class End:
    """The consequence of an attempt's end for its execution."""

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
