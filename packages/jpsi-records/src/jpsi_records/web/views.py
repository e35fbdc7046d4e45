"""The data of each page as one value, read from the records."""

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

#: The number of requests or executions on a page.
PAGE_SIZE = 50
# The largest numbers of accounting intervals and of bytes of a log on a page.
_INTERVALS = 200
_BYTES = 64 * 1024


@attrs.frozen(slots=True, kw_only=True)
class Requests:
    """A page of requests, the newest first, with their executions."""

    requests: Sequence[Request]
    executions: Mapping[str, Execution]
    #: The owner of the requests; None means all users.
    owner: str | None
    #: The id before which the next page begins; None on the last page.
    older: str | None


@attrs.frozen(slots=True, kw_only=True)
class Executions:
    """A page of executions, the newest first."""

    executions: Sequence[Execution]
    #: The id before which the next page begins; None on the last page.
    older: str | None


@attrs.frozen(slots=True, kw_only=True)
class RequestView:
    """A request with its execution, history and near misses."""

    request: Request
    execution: Execution | None
    events: Sequence[Event]
    near_misses: Sequence[NearMiss]
    usage: Sequence[Interval]
    now: datetime


@attrs.frozen(slots=True, kw_only=True)
class ExecutionView:
    """An execution with its requests, history, logs and output."""

    execution: Execution
    requests: Sequence[Request]
    attempts: Sequence[Attempt]
    events: Sequence[Event]
    usage: Sequence[Interval]
    output: Manifest
    #: The ends of the last attempt's logs, by name.
    logs: Mapping[str, Piece]
    now: datetime


@attrs.frozen(slots=True, kw_only=True)
class Accounting:
    """The latest accounting intervals of a user."""

    user: str
    usage: Sequence[Interval]
    now: datetime


def requests_view(records: Records, owner: str | None, before: str | None) -> Requests:
    """Return the data of a page of requests."""
    found = records.newest_requests(PAGE_SIZE + 1, owner=owner, before=before)
    shown = found[:PAGE_SIZE]
    return Requests(
        requests=shown,
        executions=records.executions([it.execution for it in shown if it.execution is not None]),
        owner=owner,
        older=shown[-1].id if len(found) > PAGE_SIZE else None,
    )


def executions_view(records: Records, before: str | None) -> Executions:
    """Return the data of a page of executions."""
    found = records.newest_executions(PAGE_SIZE + 1, before=before)
    shown = found[:PAGE_SIZE]
    return Executions(executions=shown, older=shown[-1].id if len(found) > PAGE_SIZE else None)


def request_view(records: Records, request_id: str) -> RequestView:
    """Return the data of a request's page."""
    request = records.request(request_id)
    usage = [] if request.execution is None else records.usage(execution=request.execution)
    return RequestView(
        request=request,
        execution=None if request.execution is None else records.execution(request.execution),
        events=records.events(request=request_id),
        near_misses=records.passed_over(request_id),
        usage=[it for it in usage if it.request == request_id][-_INTERVALS:],
        now=records.now(),
    )


def execution_view(records: Records, execution_id: str) -> ExecutionView:
    """Return the data of an execution's page."""
    execution = records.execution(execution_id)
    attempts = records.attempts(execution_id)
    return ExecutionView(
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
        # A missing output must not hide the rest of the page.
        return EMPTY


def _logs(records: Records, execution: Execution, last: Attempt) -> dict[str, Piece]:
    found = {}
    for name in NAMES:
        try:
            found[name] = log(records, execution, last, name, _BYTES)
        except (NotFoundError, StoreError):
            continue
    return found


def accounting_view(records: Records) -> Accounting:
    """Return the data of the accounting page of the records' user."""
    usage = records.usage(user=records.user)
    return Accounting(user=records.user, usage=usage[-_INTERVALS:], now=records.now())
