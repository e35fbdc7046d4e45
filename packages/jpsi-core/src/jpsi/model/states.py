"""The state model: the six states, their order, and which statuses one piece of news publishes.

Everything here is a value or a pure function (J/PSI 0: State Model, JobState, JobStatus).
"""

from __future__ import annotations

import enum
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
        """Whether a job can no longer change once it is in this state."""
        # by identity: the hash of a member takes a call, and this is asked of each of many jobs
        return self in _FINAL_STATES

    def is_greater_than(self, other: JobState) -> bool | None:
        """Whether this state comes after `other`; None for two different final states.

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
_RANK = {
    JobState.NEW: 0,
    JobState.QUEUED: 1,
    JobState.ACTIVE: 2,
    JobState.COMPLETED: _FINAL,
    JobState.FAILED: _FINAL,
    JobState.CANCELED: _FINAL,
}
_FINAL_STATES = tuple(state for state, rank in _RANK.items() if rank == _FINAL)


class Reason(enum.Enum):
    """Why a job ended other than by success, where that is known."""

    #: The executable ran and returned a code that is not zero.
    EXIT_CODE = "exit_code"
    #: A signal ended the executable; `exit_code` is 128 + the signal's number.
    SIGNAL = "signal"
    #: The job was given a duration and used it up.
    TIMEOUT = "timeout"
    #: Somebody cancelled the job.
    CANCELLED = "cancelled"
    #: The directory or a stream of the job could not be opened.
    SETUP = "setup"
    #: Files could not be staged in, so that nothing was launched; or the executable returned 0, and files
    #: could not be staged out.
    STAGING = "staging"
    #: The executable was not found or may not be executed.
    EXECUTABLE = "executable"
    #: pre_launch, or the prologue that is configured, failed or ended the shell; nothing was launched.
    PRE_LAUNCH = "pre_launch"
    #: The batch system or the launcher could not start the job, or not where it was meant to run.
    LAUNCH = "launch"
    #: The job used more memory than it may, and was ended for it.
    OUT_OF_MEMORY = "out_of_memory"
    #: A node that the job had failed, or could not be booted for it.
    NODE_FAIL = "node_fail"
    #: The job had to make room for another.
    PREEMPTED = "preempted"
    #: The job could not have ended before the deadline that it was given.
    DEADLINE = "deadline"
    #: A job that this one depends on has ended otherwise than required.
    DEPENDENCY = "dependency"
    #: The batch system puts the job back to run again.
    REQUEUED = "requeued"
    #: The job is gone and left no exit code that could be found.
    LOST = "lost"
    #: `attach` was given a native id that the backend does not know.
    ATTACH_UNVERIFIED = "attach_unverified"


class Evidence(enum.Enum):
    """What a status rests on."""

    #: A marker that the running job left in the spool.
    MARKER = "marker"
    #: The operating system's word on a process of this machine.
    PROCESS = "process"
    #: The batch system's queue.
    QUEUE = "queue"
    #: The batch system's accounting.
    ACCOUNTING = "accounting"
    #: Nothing is left of the job anywhere.
    ABSENCE = "absence"


#: The metadata that says who tells the time of a status.
TIME_SOURCE = "time.source"


def _utc_now() -> datetime:
    return datetime.now(UTC)


@attrs.frozen(slots=True, kw_only=True)
class JobStatus:
    """One status of a job: the state, when it was entered, and what is known about it."""

    #: The state that was entered.
    state: JobState = attrs.field(kw_only=False)
    #: When the state was entered; always timezone-aware. Metadata `time.source` says who tells it: `marker`
    #: (the job), `queue`, `accounting` or `process` (the system); or `observation`, if nobody does and
    #: it is the time when it was seen. `next_state` and `previous_state` are the times of these: the state
    #: was passed through unseen, or was told to be earlier than the one before it.
    time: datetime = attrs.field(factory=_utc_now)
    #: The exit code, if the job ran and ended; 128 + n after signal n.
    exit_code: int | None = None
    #: A sentence for an end user.
    message: str | None = None
    #: Whatever else is known, by dotted names (`signal`, `slurm.state`, ...).
    metadata: Mapping[str, Any] = attrs.field(factory=dict)
    #: Why the job ended as it did, for states other than COMPLETED.
    reason: Reason | None = None
    #: What this status rests on; set on every final status.
    evidence: Evidence | None = None

    @property
    def final(self) -> bool:
        """Whether `state` is final."""
        return self.state.final

    def __str__(self) -> str:
        code = "" if self.exit_code is None else f", exit code {self.exit_code}"
        message = "" if not self.message else f": {self.message}"
        return f"{self.state}{code}{message}"


def timed(status: JobStatus, source: str) -> JobStatus:
    """The status with who tells its time, whoever was said to before."""
    return attrs.evolve(status, metadata={**status.metadata, TIME_SOURCE: source})


def enriched(current: JobStatus, news: JobStatus) -> JobStatus:
    """The status of a job that has not ended, with what news of the same state says besides.

    >>> enriched(JobStatus(JobState.ACTIVE), JobStatus(JobState.ACTIVE, metadata={"a": 1})).metadata["a"]
    1
    """
    if news.state is not current.state or current.final:
        return current
    is_newer = news.evidence is Evidence.QUEUE and current.evidence in {None, Evidence.QUEUE}
    # What the queue says now replaces what it said.
    kept = {key: it for key, it in current.metadata.items() if not (is_newer and "." in key)}
    metadata = {**kept, **news.metadata}
    if TIME_SOURCE in current.metadata:
        # the time stays as it was told first
        metadata[TIME_SOURCE] = current.metadata[TIME_SOURCE]
    message = news.message if is_newer else news.message or current.message
    if (metadata, message) == (current.metadata, current.message):
        return current
    return attrs.evolve(current, metadata=metadata, message=message)


def transitions(current: JobStatus, news: JobStatus) -> tuple[JobStatus, ...]:
    """The statuses to publish, in order, when `news` arrives for a job whose status is `current`.

    News that is not ahead of `current` publishes nothing. A skipped QUEUED is filled in, but for a job that
    the backend does not know, and so is a skipped ACTIVE where the job is known to have run: it completed or
    left an exit code. Times never decrease within a job.
    """
    if news.state.is_greater_than(current.state) is not True:
        return ()
    if news.time < current.time:
        news = timed(attrs.evolve(news, time=current.time), "previous_state")
    ran = news.state is JobState.COMPLETED or news.exit_code is not None
    skipped = [] if news.reason is Reason.ATTACH_UNVERIFIED else [JobState.QUEUED]
    if ran or news.state is JobState.ACTIVE:
        skipped.append(JobState.ACTIVE)
    filled = (
        JobStatus(state, time=news.time, metadata={"filled_in": True, TIME_SOURCE: "next_state"})
        for state in skipped
        if state.is_greater_than(current.state) and news.state.is_greater_than(state)
    )
    return (*filled, news)
