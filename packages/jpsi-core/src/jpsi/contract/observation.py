"""Values that hooks return: a batch system's report on a job, a refused submission, and its queues."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import attrs

from jpsi.model import JobState, Reason


@attrs.frozen(slots=True, kw_only=True)
class Observation:
    """The batch system's report about one job in one answer; it may be old, partial or about another job.

    Observations are made without a clock: the caller knows the time of the query. A native id alone proves
    nothing: a controller that crashes may give it to another user's job, so an observation says which job it
    is about.
    """

    #: The state of the job; None if jpsi does not know the native state, which then changes nothing.
    state: JobState | None
    #: The batch system's own name of the state.
    native_state: str
    #: The tag that the job carries (`SubmitContext.tag`), as `extract_tag` reads it; empty if the answer
    #: shows that it carries none, so that jpsi did not submit it; None if the answer cannot show it.
    tag: str | None = None
    #: The time when the batch system accepted the job, timezone-aware, by its own clock. If an answer has no
    #: tag, it distinguishes a job from a later one with the same native id.
    submitted: datetime | None = None
    #: False if the batch system states that it has no job with this native id.
    exists: bool = True
    #: Why the job ended as it did, if the system says more than an exit code does.
    reason: Reason | None = None
    #: A sentence for an end user, such as why the job is pending.
    message: str | None = None
    #: The exit code of the job's script; 128 + n after signal n. None if the system does not say.
    exit_code: int | None = None
    #: True if the job has run at all; None if the system does not say.
    ran: bool | None = None
    #: The time when the state was entered, timezone-aware, if the system says so.
    time: datetime | None = None
    #: The number of times that the system has requeued the job.
    restarts: int | None = None
    #: The nodes that the job runs on.
    nodes: tuple[str, ...] = ()
    #: The number of jobs before it in the queue.
    position: int | None = None
    #: The time at which the system expects to start it.
    start_estimate: datetime | None = None
    #: All other facts, by dotted names that begin with the system's (`slurm.reason`).
    details: Mapping[str, Any] = attrs.field(factory=dict)

    @property
    def final(self) -> bool:
        """True if the observation says that the job has ended."""
        return self.state is not None and self.state.final

    @classmethod
    def denied(cls, answer: str) -> Observation:
        """Return the observation that the batch system has no job with this native id.

        `answer` is its own sentence, such as `Invalid job id specified`, which becomes the native state.
        """
        return cls(state=None, native_state=answer, exists=False)


class Meaning(NamedTuple):
    """The meaning of a native state: a line of a backend's table of states."""

    state: JobState
    reason: Reason | None = None
    #: A sentence for an end user, if the state alone does not say it.
    message: str | None = None


class FailureKind(enum.Enum):
    """The meaning of a failed submit command for the job."""

    #: The system has refused the job, and every retry will fail as well.
    INVALID_JOB = "invalid_job"
    #: Nothing was submitted; a retry may succeed.
    TRANSIENT = "transient"
    #: Nothing was submitted, and a retry fails until a person has fixed the cause.
    PERMANENT = "permanent"
    #: The system may have the job or not: the engine looks for it before it does anything else.
    AMBIGUOUS = "ambiguous"


@attrs.frozen(slots=True)
class Failure:
    """The reason why a submit command failed."""

    kind: FailureKind
    #: A sentence for an end user, with the batch system's own words.
    message: str


class NotOffered(enum.Enum):
    """The type of `NOT_OFFERED`."""

    NOT_OFFERED = "not offered"

    def __repr__(self) -> str:
        return self.name


#: The value that a hook returns if the backend does not offer the feature (None passes the call on instead).
NOT_OFFERED = NotOffered.NOT_OFFERED


@attrs.frozen(slots=True, kw_only=True)
class Queue:
    """A queue or partition; facts that the batch system does not report are None."""

    #: The name by which jobs choose it; empty if there is only one, which has no name.
    name: str
    #: The batch system's own name of its state.
    native_state: str
    #: True if it accepts jobs.
    is_open: bool | None = None
    #: True if it starts jobs.
    is_started: bool | None = None
    #: True if jobs that name no queue go to it.
    is_default: bool = False
    #: The largest walltime of a job; zero is no limit.
    max_walltime: timedelta | None = None
    #: The walltime of a job that asks for none; zero is no limit.
    default_walltime: timedelta | None = None
    #: The largest number of nodes of a job.
    max_nodes: int | None = None
    #: The number of its nodes.
    nodes: int | None = None
    #: The most cores, and bytes of memory, that a job can have on one of its nodes.
    node_cores: int | None = None
    node_memory: int | None = None
    #: The most cores, and bytes of memory, of a whole job.
    max_cores: int | None = None
    max_memory: int | None = None
    #: The least that a job must ask for.
    min_walltime: timedelta | None = None
    min_nodes: int | None = None
    min_cores: int | None = None
    min_memory: int | None = None
    #: True if it is for some users, groups or accounts alone.
    is_restricted: bool = False
    #: True if its nodes have GPUs.
    has_gpus: bool | None = None
    #: The numbers of jobs that wait in it, and that run.
    pending: int | None = None
    running: int | None = None
    #: All other facts, by dotted names that begin with the system's (`slurm.MaxMemPerNode`).
    details: Mapping[str, Any] = attrs.field(factory=dict)
