"""What each page is about, as one value, read from the records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import attrs

from ..errors import NotFoundError, StoreError
from ..files import EMPTY, Manifest
from ..model import Attempt, Event, Execution, Interval, Request
from ..records import Records
from ..reuse import NearMiss
from .logs import NAMES, Piece, log

#: How many requests or executions are on a page.
ON_A_PAGE = 50
# How many intervals, and how many bytes of a log, are shown.
_INTERVALS = 200
_BYTES = 64 * 1024


@attrs.frozen(slots=True, kw_only=True)
class Requests:
    """Requests, the newest first, with the executions that they have."""

    requests: Sequence[Request]
    executions: Mapping[str, Execution]
    #: Whose; None is everybody's.
    owner: str | None
    #: Where the next page begins; None if there is none.
    older: str | None


@attrs.frozen(slots=True, kw_only=True)
class Executions:
    """Executions, the newest first."""

    executions: Sequence[Execution]
    #: Where the next page begins; None if there is none.
    older: str | None


@attrs.frozen(slots=True, kw_only=True)
class RequestLook:
    """A request, and why it has the execution that it has."""

    request: Request
    execution: Execution | None
    events: Sequence[Event]
    near_misses: Sequence[NearMiss]
    usage: Sequence[Interval]
    now: datetime


@attrs.frozen(slots=True, kw_only=True)
class ExecutionLook:
    """An execution, who wants it, and what it writes."""

    execution: Execution
    requests: Sequence[Request]
    attempts: Sequence[Attempt]
    events: Sequence[Event]
    usage: Sequence[Interval]
    output: Manifest
    #: The ends of what the job of the last attempt has written, by name.
    logs: Mapping[str, Piece]
    now: datetime


@attrs.frozen(slots=True, kw_only=True)
class Accounting:
    """The latest intervals of a user."""

    user: str
    usage: Sequence[Interval]
    now: datetime


def at_requests(records: Records, owner: str | None, before: str | None) -> Requests:
    """A page of the requests."""
    found = records.newest_requests(ON_A_PAGE + 1, owner=owner, before=before)
    shown = found[:ON_A_PAGE]
    return Requests(
        requests=shown,
        executions=records.executions([it.execution for it in shown if it.execution is not None]),
        owner=owner,
        older=shown[-1].id if len(found) > ON_A_PAGE else None,
    )


def at_executions(records: Records, before: str | None) -> Executions:
    """A page of the executions."""
    found = records.newest_executions(ON_A_PAGE + 1, before=before)
    shown = found[:ON_A_PAGE]
    return Executions(executions=shown, older=shown[-1].id if len(found) > ON_A_PAGE else None)


def at_request(records: Records, request_id: str) -> RequestLook:
    """One request."""
    request = records.request(request_id)
    usage = [] if request.execution is None else records.usage(execution=request.execution)
    return RequestLook(
        request=request,
        execution=None if request.execution is None else records.execution(request.execution),
        events=records.events(request=request_id),
        near_misses=records.passed_over(request_id),
        usage=[it for it in usage if it.request == request_id][-_INTERVALS:],
        now=records.now(),
    )


def at_execution(records: Records, execution_id: str) -> ExecutionLook:
    """One execution."""
    execution = records.execution(execution_id)
    attempts = records.attempts(execution_id)
    return ExecutionLook(
        execution=execution,
        requests=records.requests(execution=execution_id),
        attempts=attempts,
        events=records.events(execution=execution_id),
        usage=records.usage(execution=execution_id)[-_INTERVALS:],
        output=_output(records, execution),
        logs=_logs(records, execution, attempts[-1]) if attempts else {},
        now=records.now(),
    )


def _output(records: Records, execution: Execution) -> Manifest:
    try:
        return EMPTY if execution.output is None else records.blobs.manifest(execution.output)
    except StoreError:
        # That it is gone is no reason not to show the rest.
        return EMPTY


def _logs(records: Records, execution: Execution, last: Attempt) -> dict[str, Piece]:
    found = {}
    for name in NAMES:
        try:
            found[name] = log(records, execution, last, name, _BYTES)
        except (NotFoundError, StoreError):
            continue
    return found


def at_accounting(records: Records) -> Accounting:
    """What the user of the records wanted last."""
    usage = records.usage(user=records.user)
    return Accounting(user=records.user, usage=usage[-_INTERVALS:], now=records.now())
