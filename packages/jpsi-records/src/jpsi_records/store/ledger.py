"""The ledger: state changes with their consequences for priorities, requests and accounting.

Each function does its work in the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection

from ..model import Execution, ExecutionState, Interest, Request, RequestState, effective_priority
from . import events, executions, requests
from .database import changed_in
from .schema import EXECUTION, REQUEST

_COMMITTED = REQUEST.c.state == RequestState.COMMITTED.value


def assign(
    connection: Connection, request: Request, execution: Execution, now: datetime, why: Mapping[str, Any]
) -> None:
    """Assign an execution to a request and record why; finish the request if the execution has ended."""
    requests.change(connection, request.id, now, execution=execution.id)
    events.add(connection, now, "assigned", request=request.id, execution=execution.id, data=why)
    if execution.state.ended:
        _finish(connection, request, execution, now, _outcome(request, execution))
    else:
        settle(connection, execution.id, now)


def settle(connection: Connection, execution_id: str, now: datetime) -> None:
    """Recompute the priority of an execution from its requests, and then those of its child executions."""
    _settle(connection, execution_id, now, set())


def _settle(connection: Connection, execution_id: str, now: datetime, seen: set[str]) -> None:
    if execution_id in seen:
        return
    seen.add(execution_id)
    execution = executions.get(connection, execution_id)
    interested = requests.some(connection, REQUEST.c.execution == execution_id, _COMMITTED)
    if not execution.state.ended:
        priority = effective_priority((_interest(connection, it) for it in interested), now)
        if priority != execution.priority:
            executions.change(connection, execution_id, now, priority=priority)
            events.add(connection, now, "priority", execution=execution_id, data={"priority": priority})
    for request in interested:
        events.account(connection, now, request, execution, is_interested=True)
    for request in requests.some(connection, REQUEST.c.parent == execution_id, _COMMITTED):
        if request.execution is not None:
            _settle(connection, request.execution, now, seen)


def _interest(connection: Connection, request: Request) -> Interest:
    inherited = None
    if request.parent is not None:
        parent = executions.get(connection, request.parent)
        inherited = 0 if parent.state.ended else parent.priority
    return Interest(priority=request.priority or 0, expires_at=request.expires_at, inherited=inherited)


def move(
    connection: Connection,
    execution_id: str,
    now: datetime,
    state: ExecutionState,
    *conditions: ColumnElement[bool],
    **values: Any,  # noqa: ANN401  columns are of any type
) -> bool:
    """Change an execution's state if it has not ended and the conditions hold; return True if it changed."""
    unended = [it.value for it in ExecutionState if not it.ended]
    still = EXECUTION.c.state.in_(unended)
    was_given_up = executions.get(connection, execution_id).reason == UNWANTED
    if not executions.change(connection, execution_id, now, still, *conditions, state=state.value, **values):
        return False
    told = {"state": state.value, **{key: it for key, it in values.items() if key in {"exit_code", "reason"}}}
    events.add(connection, now, "state", execution=execution_id, data=told)
    execution = executions.get(connection, execution_id)
    if state.ended:
        _end(connection, execution, now, was_given_up=was_given_up)
    else:
        settle(connection, execution_id, now)
    return True


def _end(connection: Connection, execution: Execution, now: datetime, *, was_given_up: bool) -> None:
    for request in requests.some(connection, REQUEST.c.execution == execution.id, _COMMITTED):
        is_wanted = effective_priority([_interest(connection, request)], now) > 0
        if was_given_up and is_wanted and execution.state is ExecutionState.CANCELLED:
            _release(connection, request, execution, now)
            continue
        _finish(connection, request, execution, now, _outcome(request, execution))
    for request in requests.some(connection, REQUEST.c.parent == execution.id, _COMMITTED):
        withdraw(connection, request, now, "cancelled")


def _release(connection: Connection, request: Request, execution: Execution, now: datetime) -> None:
    """Detach a cancelled execution from a request whose priority was raised during the cancellation."""
    events.account(connection, now, request, execution, is_interested=False)
    requests.change(connection, request.id, now, execution=None)
    events.add(connection, now, "released", request=request.id, execution=execution.id)


def _outcome(request: Request, execution: Execution) -> str:
    if execution.state is not ExecutionState.COMPLETE:
        return "cancelled"
    return "complete" if execution.has_succeeded(request.spec.success_exit_codes) else "failed"


def withdraw(connection: Connection, request: Request, now: datetime, outcome: str) -> None:
    """Finish a request early; its execution, if any, continues if another request needs it."""
    if request.execution is None:
        requests.change(connection, request.id, now, state=RequestState.FINAL.value, outcome=outcome)
        events.add(connection, now, "final", request=request.id, data={"outcome": outcome})
        return
    execution = executions.get(connection, request.execution)
    _finish(connection, request, execution, now, outcome)
    settle(connection, execution.id, now)
    discard(connection, execution.id, now)


def discard(connection: Connection, execution_id: str, now: datetime) -> None:
    """Cancel a queued execution unless an unfinished request has it."""
    is_held_by_request = REQUEST.c.execution == execution_id, REQUEST.c.state != RequestState.FINAL.value
    is_waiting = executions.get(connection, execution_id).state is ExecutionState.QUEUED
    if is_waiting and not requests.some(connection, *is_held_by_request):
        move(connection, execution_id, now, ExecutionState.CANCELLED, reason=UNWANTED, finished_at=now)


#: The reason of an execution that was cancelled because no request needed it.
UNWANTED = "unwanted"


def _finish(
    connection: Connection, request: Request, execution: Execution, now: datetime, outcome: str
) -> None:
    requests.change(connection, request.id, now, state=RequestState.FINAL.value, outcome=outcome)
    events.account(connection, now, request, execution, is_interested=False)
    events.add(
        connection, now, "final", request=request.id, execution=execution.id, data={"outcome": outcome}
    )


def catch_up(connection: Connection, now: datetime) -> None:
    """Apply changes to requests by users who may not write executions."""
    for execution_id in events.behind(connection):
        settle(connection, execution_id, now)
        asked = requests.some(connection, REQUEST.c.execution == execution_id, _COMMITTED)
        changed_in(connection).requests.update(it.id for it in asked)


def expire(connection: Connection, now: datetime) -> list[Request]:
    """Finish the requests whose expiry time has passed."""
    due = requests.some(connection, _COMMITTED, REQUEST.c.expires_at <= now)
    for request in due:
        withdraw(connection, request, now, "expired")
    return due


def waiting(connection: Connection) -> list[Request]:
    """Return the committed requests that have no execution yet."""
    return requests.some(connection, _COMMITTED, REQUEST.c.execution.is_(None))


def unwanted(connection: Connection) -> Iterator[Execution]:
    """Yield the executions that have a job but no request with a priority above 0."""
    held = EXECUTION.c.state.in_([ExecutionState.CLAIMED.value, ExecutionState.RUNNING.value])
    yield from executions.some(connection, held, EXECUTION.c.priority <= 0)


def give_up(connection: Connection, execution: Execution, now: datetime) -> bool:
    """Close an execution to further requests before its job is cancelled; False if it is needed again."""
    is_given_up = executions.change(
        connection, execution.id, now, EXECUTION.c.priority <= 0, is_shared=0, reason=UNWANTED
    )
    if is_given_up:
        events.add(connection, now, "given up", execution=execution.id)
    return is_given_up
