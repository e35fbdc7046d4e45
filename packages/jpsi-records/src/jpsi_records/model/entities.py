"""The records: requests, executions, attempts and what happened, as values."""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

import attrs

from .request_spec import Wish


class RequestState(enum.Enum):
    """What may still change of a request."""

    #: Everything; it has no priority, and causes nothing.
    DRAFT = "draft"
    #: Its priority.
    COMMITTED = "committed"
    #: Nothing: its execution has ended, or nobody is interested any more.
    FINAL = "final"


class ExecutionState(enum.Enum):
    """How far a computation got."""

    QUEUED = "queued"
    #: A dispatcher has taken it and sees to a job.
    CLAIMED = "claimed"
    RUNNING = "running"
    #: It ran to its end and has an exit code, whichever.
    COMPLETE = "complete"
    #: No exit code was obtained.
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        """Whether it can change no more."""
        return self in {ExecutionState.COMPLETE, ExecutionState.CANCELLED}


@attrs.frozen(slots=True, kw_only=True)
class About:
    """What a request says besides its wish."""

    name: str = ""
    description: str = ""
    labels: Mapping[str, str] = attrs.field(factory=dict)
    #: From when on its priority counts as zero.
    expires_at: datetime | None = None
    #: The execution whose job makes the request.
    parent: str | None = None


NOTHING_MORE = About()


@attrs.frozen(slots=True, kw_only=True)
class Request:
    """Somebody's interest in the outcome of a computation."""

    id: str
    owner: str
    state: RequestState
    wish: Wish
    #: None exactly in a draft; zero or less causes nothing.
    priority: float | None = None
    #: From when on the priority counts as zero.
    expires_at: datetime | None = None
    #: The execution whose job has made this request.
    parent: str | None = None
    name: str = ""
    description: str = ""
    labels: Mapping[str, str] = attrs.field(factory=dict)
    #: The execution that satisfies it.
    execution: str | None = None
    #: How it ended: `complete`, `failed` if the execution has an exit code that does not count as success or
    #: its job has reported a failure, `cancelled` or `expired`; without an execution, `dependency_failed`, or
    #: `refused` if it could not be satisfied once those that it waited for had ended.
    outcome: str | None = None
    created_at: datetime
    modified_at: datetime
    modified_by: str


@attrs.frozen(slots=True, kw_only=True)
class Execution:
    """The record of a computation, identified by its content."""

    id: str
    fingerprint: str
    #: What the fingerprint is the digest of.
    preimage: str
    state: ExecutionState
    #: The largest of those who are interested.
    priority: float = 0
    exit_code: int | None = None
    #: Why there is no exit code, or not 0.
    reason: str | None = None
    #: From 0 to 1.
    progress: float = 0
    #: What the job tells of itself: `reported` (`success` or `failure`), `error`, `warning`, `activity`.
    status: Mapping[str, str] = attrs.field(factory=dict)
    #: What runtime constraints are checked against.
    recorded: Mapping[str, Any] = attrs.field(factory=dict)
    #: What its jobs are submitted with: the `placement` of a document.
    placement: Mapping[str, Any] = attrs.field(factory=dict)
    #: How many attempts there may be.
    attempts: int = 1
    #: The manifest of what was kept, and that of standard output and error.
    output: str | None = None
    log: str | None = None
    #: Who has said that it is not to be used again.
    invalidated_by: str | None = None
    #: The dispatcher that has it, until when.
    holder: str | None = None
    lease_until: datetime | None = None
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    #: When what it says was last changed, and who has changed it; a lease is no change.
    modified_at: datetime = attrs.field(default=attrs.Factory(lambda it: it.created_at, takes_self=True))
    modified_by: str = ""

    @property
    def has_failed(self) -> bool:
        """True if it ran to its end, and failed for whoever counts 0 alone as success: the draft's Failed."""
        return self.state is ExecutionState.COMPLETE and not self.has_succeeded((0,))

    def has_succeeded(self, success_exit_codes: Collection[int]) -> bool:
        """Whether it ran to an end that counts as success, and its job has reported no failure."""
        is_complete = self.state is ExecutionState.COMPLETE
        return is_complete and self.exit_code in success_exit_codes and "error" not in self.status

    @property
    def capacities(self) -> Mapping[str, int]:
        """The bytes that its job may write into temporary directories, by target; others have no limit."""
        found: Mapping[str, int] = self.recorded.get("tmp", {})
        return found

    @property
    def given(self) -> Mapping[str, Any]:
        """What its job was given, as far as that is recorded.

        An older version wrote down GPUs that it asked nobody for.
        """
        if self.placement.get("gpus"):
            return self.recorded
        return {name: it for name, it in self.recorded.items() if name != "gpus"}


@attrs.frozen(slots=True, kw_only=True)
class Attempt:
    """One job of an execution."""

    id: str
    execution: str
    #: From 1 on.
    number: int
    executor: str
    #: The id of the J/PSI job, by which it is found again.
    job: str
    native_id: str | None = None
    state: str
    exit_code: int | None = None
    reason: str | None = None
    message: str | None = None
    created_at: datetime
    ended_at: datetime | None = None


@attrs.frozen(slots=True, kw_only=True)
class Event:
    """Something that happened; never changed, and never removed."""

    seq: int
    time: datetime
    kind: str
    request: str | None
    execution: str | None
    data: Mapping[str, Any]


@attrs.frozen(slots=True, kw_only=True)
class Interval:
    """A time in which nothing of what accounting asks for has changed."""

    execution: str
    start: datetime
    #: None if it lasts.
    end: datetime | None
    user: str
    request: str
    priority: float
    state: ExecutionState
