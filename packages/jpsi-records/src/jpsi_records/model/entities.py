"""The records as values: requests, executions, attempts, events and accounting intervals.

All parts of jpsi-records exchange these; `store` reads them from rows of the tables.
"""

from __future__ import annotations

import enum
import os
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

import attrs

from jpsi import JobState, Reason

from ..errors import InvalidRequestError
from .field_checks import is_number
from .request_spec import RequestSpec, recorded_request_spec


class RequestState(enum.Enum):
    """The state of a request; it determines what may still change."""

    #: Everything may change; a draft has no priority, and nothing runs for it.
    DRAFT = "draft"
    #: The priority may change.
    COMMITTED = "committed"
    #: Its user has set its priority to zero since; with a priority above 0 it is committed again.
    CANCELLED = "cancelled"
    #: Nothing may change: the request has an outcome.
    FINAL = "final"

    @property
    def ends_a_wait(self) -> bool:
        """True if a wait for such a request is over: a cancelled one would stay as it is for ever."""
        return self in {RequestState.CANCELLED, RequestState.FINAL}


class ExecutionState(enum.Enum):
    """The state of an execution."""

    QUEUED = "queued"
    #: A dispatcher holds it and submits its job.
    CLAIMED = "claimed"
    RUNNING = "running"
    #: It has ended with an exit code, zero or not.
    COMPLETE = "complete"
    #: It has ended without an exit code: cancelled (`CANCELLATIONS`), or failed as its reason says.
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        """True if the state is final."""
        return self in {ExecutionState.COMPLETE, ExecutionState.CANCELLED}


#: The reason of an execution that was cancelled because no request needed it.
UNWANTED = "unwanted"

#: The reasons of executions that were cancelled: that of a cancelled job, the state of one without a reason,
#: and jpsi's own. With any other, an execution without a result has failed.
CANCELLATIONS = frozenset({Reason.CANCELLED.value, JobState.CANCELED.value.lower(), UNWANTED})


@attrs.frozen(slots=True, kw_only=True)
class About:
    """The parts of a request besides its spec: name, description, labels, expiry time and parent."""

    name: str = ""
    description: str = ""
    labels: Mapping[str, str] = attrs.field(factory=dict)
    #: The time after which its priority counts as zero.
    expires_at: datetime | None = None
    #: The execution whose job makes the request.
    parent: str | None = None


DEFAULT_ABOUT = About()


def _as_request_spec(spec: Any) -> RequestSpec:  # noqa: ANN401  a request spec, or its document
    return spec if isinstance(spec, RequestSpec) else recorded_request_spec(spec)


@attrs.frozen(slots=True, kw_only=True)
class Request:
    """A user's request for the result of a computation."""

    id: str
    owner: str
    state: RequestState = attrs.field(converter=RequestState)
    spec: RequestSpec = attrs.field(converter=_as_request_spec)
    #: The priority; None for a draft only. With zero or less, nothing runs for it.
    priority: float | None = None
    #: The time after which its priority counts as zero.
    expires_at: datetime | None = None
    #: The execution whose job has made this request.
    parent: str | None = None
    name: str = ""
    description: str = ""
    labels: Mapping[str, str] = attrs.field(factory=dict)
    #: The id of the execution that satisfies it.
    execution: str | None = None
    #: The outcome: `complete`; `failed` if the exit code does not count as success, the job has reported a
    #: failure, or there is no result because of one (older records may say `cancelled` then);
    #: `cancelled` or `expired`; without an execution, `dependency_failed`, or `refused` if it could not be
    #: satisfied once its predecessors had ended.
    outcome: str | None = None
    created_at: datetime
    modified_at: datetime
    modified_by: str

    @property
    def shown_state(self) -> str:
        """The state as users see it: the outcome, once there is one."""
        return self.outcome or self.state.value


@attrs.frozen(slots=True, kw_only=True)
class Execution:
    """A run of a computation; equal computations have the same fingerprint."""

    id: str
    fingerprint: str
    #: The canonical key of the computation, of which the fingerprint is the digest.
    preimage: str
    state: ExecutionState = attrs.field(converter=ExecutionState)
    #: The largest priority of its requests.
    priority: float = 0
    exit_code: int | None = None
    #: The reason why there is no exit code, or not 0.
    reason: str | None = None
    #: The progress from 0 to 1.
    progress: float = 0
    #: Reports of the job: `reported` (`success` or `failure`), `error`, `warning`, `activity`.
    status: Mapping[str, str] = attrs.field(factory=dict)
    #: The resources against which runtime constraints are checked.
    recorded: Mapping[str, Any] = attrs.field(factory=dict)
    #: The resources that its jobs are submitted with: the `placement` of a document.
    placement: Mapping[str, Any] = attrs.field(factory=dict)
    #: The largest number of attempts.
    attempts: int = 1
    #: The digests of two collections: the stored output, and the logs (standard output and error).
    output: str | None = None
    log: str | None = None
    #: The user who has excluded it from reuse.
    invalidated_by: str | None = None
    #: The dispatcher that holds it, and the end of the lease.
    holder: str | None = None
    lease_until: datetime | None = None
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    #: The time of the last change and the user who made it; a lease does not count.
    modified_at: datetime = attrs.field(default=attrs.Factory(lambda it: it.created_at, takes_self=True))
    modified_by: str = ""

    @property
    def has_failed(self) -> bool:
        """True if it ended and failed by the criterion that 0 alone is success: the draft's Failed."""
        return self.state is ExecutionState.COMPLETE and not self.has_succeeded((0,))

    @property
    def failed_without_result(self) -> bool:
        """True if it ended without an exit code because of a failure, and no user cancelled it."""
        return self.state is ExecutionState.CANCELLED and self.reason not in CANCELLATIONS

    def has_succeeded(self, success_exit_codes: Collection[int]) -> bool:
        """Return True if its exit code counts as success, and its job has reported no failure."""
        is_complete = self.state is ExecutionState.COMPLETE
        return is_complete and self.exit_code in success_exit_codes and "error" not in self.status

    @property
    def capacities(self) -> Mapping[str, int]:
        """The bytes that its job may write to temporary directories, by target; others have no limit."""
        found: Mapping[str, int] = self.recorded.get("tmp", {})
        return found

    @property
    def granted(self) -> Mapping[str, Any]:
        """The resources that its job was given, as far as they are recorded.

        Older versions recorded GPUs that they did not request.
        """
        if self.placement.get("gpus"):
            return self.recorded
        return {name: it for name, it in self.recorded.items() if name != "gpus"}


@attrs.frozen(slots=True, kw_only=True)
class Attempt:
    """An attempt at an execution: a single job."""

    id: str
    execution: str
    #: Counted from 1.
    number: int
    executor: str
    #: The id of the J/PSI job; the dispatcher finds the job by it after a restart.
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
    """An entry of the history; never changed, and never removed."""

    seq: int
    time: datetime
    kind: str
    request: str | None
    execution: str | None
    data: Mapping[str, Any]


@attrs.frozen(slots=True, kw_only=True)
class Interval:
    """A period in which the accounting values of a request are constant."""

    execution: str
    start: datetime
    #: The end; None if the interval is open.
    end: datetime | None
    user: str
    request: str
    priority: float
    state: ExecutionState = attrs.field(converter=ExecutionState)


def new_id(now: datetime) -> str:
    """Return a new id that sorts by time, and is unique without coordination: a UUID of version 7."""
    digits = f"{int(now.timestamp() * 1000):012x}"
    rest = os.urandom(10).hex()
    return f"{digits[:8]}-{digits[8:]}-7{rest[:3]}-{'89ab'[int(rest[3], 16) % 4]}{rest[4:7]}-{rest[7:19]}"


def check_priority(priority: Any) -> None:  # noqa: ANN401  any value of a caller
    """Raise `InvalidRequestError` unless a value is a valid priority."""
    if not is_number(priority):
        raise InvalidRequestError(f"a priority is a finite number, not {priority!r}")
