"""The state model: the six states, their order, and the statuses that a status report leads to.

Everything in this module is a value or a pure function (J/PSI 0: State Model, JobState, JobStatus).
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import attrs


class JobState(enum.Enum):
    """The states of a job, in the order in which a job can pass through them.

    NEW < QUEUED < ACTIVE < each of COMPLETED, FAILED and CANCELED; these three are final and are not
    comparable with each other.
    """

    NEW = "NEW"
    QUEUED = "QUEUED"
    ACTIVE = "ACTIVE"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELED = "CANCELED"

    @property
    def final(self) -> bool:
        """True if a job can no longer change once it is in this state."""
        # by identity: the hash of a member costs a call, and this property is read for each of many jobs
        return self in _FINAL_STATES

    def is_greater_than(self, other: JobState) -> bool | None:
        """Return True if this state comes after `other`; None for two different final states.

        >>> JobState.ACTIVE.is_greater_than(JobState.QUEUED)
        True
        >>> JobState.FAILED.is_greater_than(JobState.COMPLETED) is None
        True
        """
        if self is not other and self.final and other.final:
            return None
        return _RANK[self] > _RANK[other]

    def __str__(self) -> str:
        return self.value


_FINAL = 3
_RANK = {state: min(rank, _FINAL) for rank, state in enumerate(JobState)}
_FINAL_STATES = tuple(state for state, rank in _RANK.items() if rank == _FINAL)


class Reason(enum.Enum):
    """The reason why a job did not end successfully, if it is known."""

    #: The executable ran and returned a code that is not zero.
    EXIT_CODE = "exit_code"
    #: A signal ended the executable; `exit_code` is 128 + the signal's number.
    SIGNAL = "signal"
    #: The job exceeded its walltime.
    TIMEOUT = "timeout"
    #: The job was cancelled.
    CANCELLED = "cancelled"
    #: The directory or a stream of the job could not be opened.
    SETUP = "setup"
    #: The stage in failed, and nothing was launched; or the executable returned 0, and the stage out failed.
    STAGING = "staging"
    #: The executable was not found or has no execute permission.
    EXECUTABLE = "executable"
    #: pre_launch, or the configured prologue, failed or ended the shell; nothing was launched.
    PRE_LAUNCH = "pre_launch"
    #: The batch system or the launcher could not start the job, or not where it was meant to run.
    LAUNCH = "launch"
    #: The job exceeded its memory limit, and was ended for it.
    OUT_OF_MEMORY = "out_of_memory"
    #: A node of the job failed, or could not be booted for it.
    NODE_FAIL = "node_fail"
    #: The job had to make room for another job.
    PREEMPTED = "preempted"
    #: The job could not have ended before its deadline.
    DEADLINE = "deadline"
    #: A job that this one depends on did not end as required.
    DEPENDENCY = "dependency"
    #: The batch system has requeued the job.
    REQUEUED = "requeued"
    #: The job is gone and left no exit code that jpsi could find.
    LOST = "lost"
    #: The backend does not know the native id that `attach` received.
    ATTACH_UNVERIFIED = "attach_unverified"


class Evidence(enum.Enum):
    """The source on which a status rests."""

    #: A marker that the running job left in the spool.
    MARKER = "marker"
    #: The operating system's report about a process of this machine.
    PROCESS = "process"
    #: The batch system's queue.
    QUEUE = "queue"
    #: The batch system's accounting.
    ACCOUNTING = "accounting"
    #: No trace of the job is left anywhere.
    ABSENCE = "absence"


#: The metadata key for the source of a status's time.
TIME_SOURCE = "time.source"


@attrs.frozen(slots=True, kw_only=True)
class JobStatus:
    """A status of a job: the state, when it was entered, and further facts."""

    #: The state that was entered.
    state: JobState = attrs.field(kw_only=False)
    #: The time when the state was entered; always timezone-aware. The metadata `time.source` names its
    #: source: `marker` (the job), `queue`, `accounting` or `process` (the system); or `observation`, if no
    #: source reports a time and this is the time when jpsi saw the state. With `next_state` and
    #: `previous_state` the time was copied from that state: jpsi did not see this state, or its reported time
    #: was earlier than that of the state before it.
    time: datetime = attrs.field(factory=functools.partial(datetime.now, UTC))
    #: The exit code, if the job ran and ended; 128 + n after signal n.
    exit_code: int | None = None
    #: A sentence for an end user.
    message: str | None = None
    #: All other facts, by dotted names (`signal`, `slurm.state`, ...).
    metadata: Mapping[str, Any] = attrs.field(factory=dict)
    #: Why the job ended as it did, for states other than COMPLETED.
    reason: Reason | None = None
    #: The source on which this status rests; set on every final status.
    evidence: Evidence | None = None

    @property
    def final(self) -> bool:
        """True if `state` is final."""
        return self.state.final

    def __str__(self) -> str:
        code = "" if self.exit_code is None else f", exit code {self.exit_code}"
        message = "" if not self.message else f": {self.message}"
        return f"{self.state}{code}{message}"


def timed(status: JobStatus, source: str) -> JobStatus:
    """Return the status with this source of its time, in place of any earlier one."""
    # `attrs.evolve` takes twice as long, for each of thousands of jobs
    return JobStatus(
        status.state,
        time=status.time,
        exit_code=status.exit_code,
        message=status.message,
        metadata={**status.metadata, TIME_SOURCE: source},
        reason=status.reason,
        evidence=status.evidence,
    )


def enriched(current: JobStatus, report: JobStatus) -> JobStatus:
    """Add the facts of a report about the same state to the status of a job that is not final.

    >>> enriched(JobStatus(JobState.ACTIVE), JobStatus(JobState.ACTIVE, metadata={"a": 1})).metadata["a"]
    1
    """
    global _last_enriched  # noqa: PLW0603  replaced as a whole
    if report.state is not current.state or current.final:
        return current
    last = _last_enriched
    if last[0] is current and last[1] is report:
        return last[2]
    is_newer = report.evidence is Evidence.QUEUE and current.evidence in {None, Evidence.QUEUE}
    # the queue's current facts replace its earlier ones
    kept = {key: it for key, it in current.metadata.items() if not (is_newer and "." in key)}
    metadata = {**kept, **report.metadata}
    if TIME_SOURCE in current.metadata:
        # the first reported time stays
        metadata[TIME_SOURCE] = current.metadata[TIME_SOURCE]
    message = report.message if is_newer else report.message or current.message
    if (metadata, message) == (current.metadata, current.message):
        return current
    result = attrs.evolve(current, metadata=metadata, message=message)
    _last_enriched = current, report, result
    return result


# Of many jobs that wait, the queue says the same: they share the status.
_last_enriched: tuple[JobStatus | None, JobStatus | None, JobStatus] = (None, None, JobStatus(JobState.NEW))


def transitions(current: JobStatus, report: JobStatus) -> tuple[JobStatus, ...]:
    """Return the statuses to publish, in order, when `report` arrives for a job whose status is `current`.

    A report that is not ahead of `current` publishes nothing. A skipped QUEUED is filled in, except for a job
    that the backend does not know. A skipped ACTIVE is filled in if the job is known to have run: it
    completed or left an exit code. Times never decrease within a job.
    """
    if report.state.is_greater_than(current.state) is not True:
        return ()
    if report.time < current.time:
        report = timed(attrs.evolve(report, time=current.time), "previous_state")
    ran = report.state is JobState.COMPLETED or report.exit_code is not None
    skipped = [] if report.reason is Reason.ATTACH_UNVERIFIED else [JobState.QUEUED]
    if ran or report.state is JobState.ACTIVE:
        skipped.append(JobState.ACTIVE)
    filled = (
        JobStatus(state, time=report.time, metadata={"filled_in": True, TIME_SOURCE: "next_state"})
        for state in skipped
        if state.is_greater_than(current.state) and report.state.is_greater_than(state)
    )
    return (*filled, report)
