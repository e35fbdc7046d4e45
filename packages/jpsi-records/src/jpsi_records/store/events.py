"""Adds and reads events, the history of requests and executions; they are never changed or removed.

`ledger` adds an event for each change. An accounting event has a request's owner and priority and the state
of its execution from then on; `jpsi request usage` shows them as intervals.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, insert, select

from ..model import Event, Execution, Interval, Request
from .database import Transaction
from .rows import fetch
from .schema import ACCOUNTING, EVENT, REQUEST, UNFINISHED

_IS_ACCOUNTING = EVENT.c.kind == "accounting"


def add(
    tx: Transaction,
    kind: str,
    *,
    request: str | None = None,
    execution: str | None = None,
    **data: Any,  # noqa: ANN401  any JSON value
) -> None:
    """Add an event with its data."""
    values = {"time": tx.now, "kind": kind, "request": request, "execution": execution, "data": data}
    tx.execute(insert(EVENT).values(values))


def account(tx: Transaction, request: Request, execution: Execution, *, is_interested: bool) -> None:
    """Add an accounting event with the state and the priority from now on, unless nothing has changed.

    Args:
        tx: a write transaction.
        request: the request, for its owner and priority.
        execution: the execution of the request.
        is_interested: False ends the intervals of the request.
    """
    state = execution.state.value if is_interested else "none"
    now = {"owner": request.owner, "priority": request.priority, "state": state}
    columns = select(*(EVENT.c[name] for name in now))
    of_request = columns.where(_IS_ACCOUNTING, EVENT.c.request == request.id)
    last = tx.execute(of_request.order_by(EVENT.c.seq.desc()).limit(1)).first()
    if last is None or tuple(last) != tuple(now.values()):
        event = {"time": tx.now, "kind": "accounting", "request": request.id, "execution": execution.id}
        tx.execute(insert(EVENT).values({**event, **now, "data": {}}))


def last_time(tx: Transaction, execution_id: str) -> datetime | None:
    """Return the time of the last event of an execution."""
    statement = select(EVENT.c.time).where(EVENT.c.execution == execution_id)
    return tx.execute(statement.order_by(EVENT.c.seq.desc()).limit(1)).scalar()


def behind(tx: Transaction) -> list[str]:
    """Return the executions that have a request whose priority differs from the accounted one."""
    accounted = select(EVENT.c.priority).where(_IS_ACCOUNTING, EVENT.c.request == REQUEST.c.id)
    last = accounted.order_by(EVENT.c.seq.desc()).limit(1).scalar_subquery()
    is_assigned = UNFINISHED & REQUEST.c.execution.is_not(None)
    statement = select(REQUEST.c.execution).where(is_assigned, REQUEST.c.priority.is_distinct_from(last))
    return list(tx.execute(statement.distinct()).scalars())


def some(tx: Transaction, *conditions: ColumnElement[bool]) -> list[Event]:
    """Return the events that meet the conditions in order, without accounting events."""
    return fetch(tx, Event, select(EVENT).where(~_IS_ACCOUNTING, *conditions).order_by(EVENT.c.seq))


def intervals(tx: Transaction, *conditions: ColumnElement[bool]) -> list[Interval]:
    """Return the accounting intervals that meet the conditions, in order."""
    return fetch(tx, Interval, select(ACCOUNTING).where(*conditions).order_by(ACCOUNTING.c.start_time))
