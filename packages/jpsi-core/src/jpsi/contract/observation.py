"""What a batch system was seen to say: about a job, and about a submission that it refused."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

import attrs

from jpsi.model import JobState, Reason


@attrs.frozen(slots=True, kw_only=True)
class Observation:
    """What a batch system said about one job in one answer; it may be old, partial or strange.

    Observations are made without a clock: whoever asked knows when. A native id alone proves nothing: a
    controller that crashes gives it to somebody else's job, so that an answer says whose job it is about.
    """

    #: The state that the system's word means; None for a word that nobody knows, which changes nothing.
    state: JobState | None
    #: The system's own word for the state.
    word: str
    #: The tag that the job carries (`SubmitContext.tag`), as `carried_tag` reads it; empty if the answer says
    #: that it carries none, so that it is no job of jpsi's; None where the answer cannot tell.
    tag: str | None = None
    #: When the batch system took the job, timezone-aware, by its own clock. Where an answer has no tag, it
    #: tells a job from a later one of the same native id.
    submitted: datetime | None = None
    #: False if the system says in so many words that it has no job of this native id.
    exists: bool = True
    #: Why the job ended as it did, where the system says more than an exit code does.
    reason: Reason | None = None
    #: A sentence for an end user, such as why the job is pending.
    message: str | None = None
    #: The exit code of the job's script; 128 + n after signal n. None where the system does not say.
    exit_code: int | None = None
    #: Whether the job has run at all; None where the system does not say.
    ran: bool | None = None
    #: When the state was entered, timezone-aware, if the system says so.
    time: datetime | None = None
    #: How often the system has put the job back to run again.
    restarts: int | None = None
    #: The nodes that the job runs on.
    nodes: tuple[str, ...] = ()
    #: How many jobs are before it in the queue.
    position: int | None = None
    #: When the system expects to start it.
    start_estimate: datetime | None = None
    #: Whatever else is known, by dotted names that begin with the system's (`slurm.reason`).
    details: Mapping[str, Any] = attrs.field(factory=dict)

    @property
    def final(self) -> bool:
        """Whether it says that the job has ended."""
        return self.state is not None and self.state.final

    @classmethod
    def denied(cls, word: str) -> Observation:
        """The batch system says that it has no job of this native id.

        Args:
            word: its own words for it, such as `Invalid job id specified`.
        """
        return cls(state=None, word=word, exists=False)


class Meaning(NamedTuple):
    """What a batch system's word says: a line of a backend's table of words."""

    state: JobState
    reason: Reason | None = None
    #: A sentence for an end user, where the state alone does not say it.
    message: str | None = None


class FailureKind(enum.Enum):
    """What a failed submit command means for the job."""

    #: The system has refused the job, and will whenever it is asked.
    INVALID_JOB = "invalid_job"
    #: Nothing was submitted; the same request may succeed later.
    TRANSIENT = "transient"
    #: Nothing was submitted, and somebody must mend something first.
    PERMANENT = "permanent"
    #: The system may have the job or not: it is looked for before anything else happens.
    AMBIGUOUS = "ambiguous"


@attrs.frozen(slots=True)
class Failure:
    """Why a submit command failed."""

    kind: FailureKind
    #: A sentence for an end user, with the system's own words.
    message: str


class NotOffered(enum.Enum):
    """The type of `NOT_OFFERED`."""

    NOT_OFFERED = "not offered"

    def __repr__(self) -> str:
        return self.name


#: What a hook returns for something that the backend does not offer (None asks the next layer instead).
NOT_OFFERED = NotOffered.NOT_OFFERED


@attrs.frozen(slots=True, kw_only=True)
class ShownJob:
    """A job that its batch system, or the machine whose process it is, shows at this moment."""

    native_id: str
    #: The batch system's own word for its state.
    word: str
    #: The command that ends it, for a shell; None if it takes more than a command.
    cancel_command: str | None = None
