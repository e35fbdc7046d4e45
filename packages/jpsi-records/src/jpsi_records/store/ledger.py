"""What follows from a change: priorities, ends, and what accounting is to know; all in one transaction."""

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
    """Let an execution satisfy a request, and remember why it does; the rest follows."""
    requests.change(connection, request.id, now, execution=execution.id)
    events.add(connection, now, "assigned", request=request.id, execution=execution.id, data=why)
    if execution.state.ended:
        _finish(connection, request, execution, now, _outcome(request, execution))
    else:
        settle(connection, execution.id, now)


def settle(connection: Connection, execution_id: str, now: datetime) -> None:
    """Make the priority of an execution, and of those below it, what all who are interested make it."""
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
    """Bring an execution into a state if it has not ended and conditions hold; returns whether they did."""
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
    """Let a request wait for another execution: it was wanted again when its own was being cancelled."""
    events.account(connection, now, request, execution, is_interested=False)
    requests.change(connection, request.id, now, execution=None)
    events.add(connection, now, "released", request=request.id, execution=execution.id)


def _outcome(request: Request, execution: Execution) -> str:
    if execution.state is not ExecutionState.COMPLETE:
        return "cancelled"
    return "complete" if execution.has_succeeded(request.wish.success_exit_codes) else "failed"


def withdraw(connection: Connection, request: Request, now: datetime, outcome: str) -> None:
    """End a request before its execution has ended; that goes on if somebody else is interested in it."""
    if request.execution is None:
        requests.change(connection, request.id, now, state=RequestState.FINAL.value, outcome=outcome)
        events.add(connection, now, "final", request=request.id, data={"outcome": outcome})
        return
    execution = executions.get(connection, request.execution)
    _finish(connection, request, execution, now, outcome)
    settle(connection, execution.id, now)
    discard(connection, execution.id, now)


def discard(connection: Connection, execution_id: str, now: datetime) -> None:
    """Cancel an execution that waits, unless a request or a draft still has it."""
    is_had = REQUEST.c.execution == execution_id, REQUEST.c.state != RequestState.FINAL.value
    is_waiting = executions.get(connection, execution_id).state is ExecutionState.QUEUED
    if is_waiting and not requests.some(connection, *is_had):
        move(connection, execution_id, now, ExecutionState.CANCELLED, reason=UNWANTED, finished_at=now)


#: Why an execution was cancelled in which nobody was interested any more.
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
    """Let follow what has changed in requests of users who may not write executions."""
    for execution_id in events.behind(connection):
        settle(connection, execution_id, now)
        asked = requests.some(connection, REQUEST.c.execution == execution_id, _COMMITTED)
        changed_in(connection).requests.update(it.id for it in asked)


def expire(connection: Connection, now: datetime) -> list[Request]:
    """End the requests whose time is over."""
    due = requests.some(connection, _COMMITTED, REQUEST.c.expires_at <= now)
    for request in due:
        withdraw(connection, request, now, "expired")
    return due


def waiting(connection: Connection) -> list[Request]:
    """The requests that wait for others, and have no execution yet."""
    return requests.some(connection, _COMMITTED, REQUEST.c.execution.is_(None))


def unwanted(connection: Connection) -> Iterator[Execution]:
    """The executions that have a job, and in which nobody is interested any more."""
    held = EXECUTION.c.state.in_([ExecutionState.CLAIMED.value, ExecutionState.RUNNING.value])
    yield from executions.some(connection, held, EXECUTION.c.priority <= 0)


def give_up(connection: Connection, execution: Execution, now: datetime) -> bool:
    """Let nobody join an execution any more that is about to be cancelled, if nobody is interested in it."""
    is_given_up = executions.change(
        connection, execution.id, now, EXECUTION.c.priority <= 0, is_shared=0, reason=UNWANTED
    )
    if is_given_up:
        events.add(connection, now, "given up", execution=execution.id)
    return is_given_up
