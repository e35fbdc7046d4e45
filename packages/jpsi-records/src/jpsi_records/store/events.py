"""The history: events are added, and never changed or removed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, insert, select

from ..model import Event, Execution, Interval, Request, RequestState
from .rows import event_of, interval_of
from .schema import ACCOUNTING, EVENT, REQUEST

_ACCOUNTING = "accounting"


def add(  # noqa: PLR0913  the columns of an event
    connection: Connection,
    now: datetime,
    kind: str,
    *,
    request: str | None = None,
    execution: str | None = None,
    data: Mapping[str, Any] | None = None,
) -> None:
    """Add an event."""
    values = {"time": now, "kind": kind, "request": request, "execution": execution, "data": dict(data or {})}
    connection.execute(insert(EVENT).values(values))


def account(
    connection: Connection, now: datetime, request: Request, execution: Execution, *, is_interested: bool
) -> None:
    """Add an accounting event with the state and the priority from now on, unless nothing has changed.

    Args:
        connection: a write transaction.
        now: the time of the event.
        request: the request, for its owner and priority.
        execution: the execution of the request.
        is_interested: False ends the intervals of the request.
    """
    holds = {
        "owner": request.owner,
        "priority": request.priority,
        "state": execution.state.value if is_interested else "none",
    }
    last = connection.execute(
        select(EVENT.c.owner, EVENT.c.priority, EVENT.c.state)
        .where(EVENT.c.kind == _ACCOUNTING, EVENT.c.request == request.id)
        .order_by(EVENT.c.seq.desc())
        .limit(1)
    ).first()
    if last is None or tuple(last) != tuple(holds.values()):
        values = {"time": now, "kind": _ACCOUNTING, "request": request.id, "execution": execution.id, **holds}
        connection.execute(insert(EVENT).values({**values, "data": {}}))


def last_time(connection: Connection, execution_id: str) -> datetime | None:
    """Return the time of the last event of an execution."""
    statement = select(EVENT.c.time).where(EVENT.c.execution == execution_id)
    return connection.execute(statement.order_by(EVENT.c.seq.desc()).limit(1)).scalar()


def behind(connection: Connection) -> list[str]:
    """Return the executions that have a request whose priority differs from the accounted one."""
    last = (
        select(EVENT.c.priority)
        .where(EVENT.c.kind == _ACCOUNTING, EVENT.c.request == REQUEST.c.id)
        .order_by(EVENT.c.seq.desc())
        .limit(1)
        .scalar_subquery()
    )
    is_assigned = (REQUEST.c.state == RequestState.COMMITTED.value) & REQUEST.c.execution.is_not(None)
    statement = select(REQUEST.c.execution).where(is_assigned, REQUEST.c.priority.is_distinct_from(last))
    return list(connection.execute(statement.distinct()).scalars())


def some(connection: Connection, *conditions: ColumnElement[bool]) -> list[Event]:
    """Return the events that meet the conditions in order, without accounting events."""
    statement = select(EVENT).where(EVENT.c.kind != _ACCOUNTING, *conditions).order_by(EVENT.c.seq)
    return [event_of(row) for row in connection.execute(statement).mappings()]


def intervals(connection: Connection, *conditions: ColumnElement[bool]) -> list[Interval]:
    """Return the accounting intervals that meet the conditions, in order."""
    statement = select(ACCOUNTING).where(*conditions).order_by(ACCOUNTING.c.start_time)
    return [interval_of(row) for row in connection.execute(statement).mappings()]
