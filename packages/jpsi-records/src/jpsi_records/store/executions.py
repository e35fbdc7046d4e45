"""Reads and writes of executions and attempts, in the caller's transaction."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, TextClause, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.expression import text

from ..errors import NotFoundError
from ..model import Attempt, Execution, ExecutionState
from .database import changed_in, writer
from .rows import attempt_of, attempt_row, execution_of, execution_row
from .schema import ATTEMPT, EXECUTION, LIVE

# Databases limit the number of values in a statement.
_AT_ONCE = 500


def get(connection: Connection, execution_id: str) -> Execution:
    """Return an execution.

    Raises:
        NotFoundError: no execution has this id.
    """
    row = connection.execute(select(EXECUTION).where(EXECUTION.c.id == execution_id)).mappings().first()
    if row is None:
        msg = f"there is no execution {execution_id}"
        raise NotFoundError(msg)
    return execution_of(row)


def of_fingerprints(connection: Connection, fingerprints: Collection[str]) -> list[Execution]:
    """Return the executions with one of these fingerprints, including those of other users."""
    return [it for wanted in _portions(fingerprints) for it in _of_fingerprints(connection, wanted)]


def _of_fingerprints(connection: Connection, wanted: list[str]) -> list[Execution]:
    if connection.dialect.name == "sqlite":
        return some(connection, EXECUTION.c.fingerprint.in_(wanted))
    statement = text("SELECT * FROM same_computation(:wanted)").columns(*EXECUTION.columns)
    return [execution_of(row) for row in connection.execute(statement, {"wanted": wanted}).mappings()]


def of_ids(connection: Connection, ids: Collection[str]) -> list[Execution]:
    """Return the executions with one of these ids."""
    return [it for wanted in _portions(ids) for it in some(connection, EXECUTION.c.id.in_(wanted))]


def _portions(values: Collection[str]) -> Iterator[list[str]]:
    wanted = list(values)
    for start in range(0, len(wanted), _AT_ONCE):
        yield wanted[start : start + _AT_ONCE]


def newest(connection: Connection, most: int, *conditions: ColumnElement[bool]) -> list[Execution]:
    """Return at most `most` executions that meet the conditions, the newest first."""
    statement = select(EXECUTION).where(*conditions).order_by(EXECUTION.c.id.desc()).limit(most)
    return [execution_of(row) for row in connection.execute(statement).mappings()]


def of_program(connection: Connection, preimage: str, most: int) -> list[Execution]:
    """Return at most `most` executions with the program of a canonical key, the newest first."""
    statement = select(EXECUTION).where(EXECUTION.c.program == _program(preimage))
    rows = connection.execute(statement.order_by(EXECUTION.c.created_at.desc()).limit(most))
    return [execution_of(row) for row in rows.mappings()]


def some(connection: Connection, *conditions: ColumnElement[bool] | TextClause) -> list[Execution]:
    """Return the executions that meet the conditions: by descending priority, then the oldest first."""
    statement = select(EXECUTION).where(*conditions)
    rows = connection.execute(statement.order_by(EXECUTION.c.priority.desc(), EXECUTION.c.id))
    return [execution_of(row) for row in rows.mappings()]


def add(connection: Connection, execution: Execution, *, is_shared: bool) -> Execution:
    """Insert an execution, or return the shared one with the same fingerprint that has not ended.

    Concurrent callers get the same execution.
    """
    row = {**execution_row(execution), "program": _program(execution.preimage), "is_shared": int(is_shared)}
    row["modified_by"] = writer(connection)
    dialect = sqlite if connection.dialect.name == "sqlite" else postgresql
    statement = dialect.insert(EXECUTION).values(row)
    is_new = connection.execute(
        statement.on_conflict_do_nothing(index_elements=["fingerprint"], index_where=text(LIVE))
    ).rowcount
    if is_new:
        changed_in(connection).executions.add(execution.id)
        return get(connection, execution.id)
    (found,) = some(connection, EXECUTION.c.fingerprint == execution.fingerprint, text(LIVE))
    return found


def _program(preimage: str) -> str:
    members = json.loads(preimage)
    program: str = (*members["command"], members.get("container_image"))[0]
    return program


# The columns of a lease; they are not part of what the record says.
_LEASE = frozenset({"holder", "lease_until"})


def change(
    connection: Connection,
    execution_id: str,
    now: datetime,
    *conditions: ColumnElement[bool],
    **values: Any,  # noqa: ANN401  columns are of any type
) -> bool:
    """Change an execution if the conditions hold; return True if they did.

    `modified_at` and `modified_by` change as well, unless only the lease changes.
    """
    if not values.keys() <= _LEASE:
        values |= {"modified_at": now, "modified_by": writer(connection)}
    statement = update(EXECUTION).where(EXECUTION.c.id == execution_id, *conditions)
    return connection.execute(statement.values(values)).rowcount == 1


def add_attempt(connection: Connection, attempt: Attempt) -> None:
    """Insert an attempt; an execution has at most one open attempt."""
    connection.execute(insert(ATTEMPT).values(attempt_row(attempt)))


def attempts(connection: Connection, execution_id: str) -> list[Attempt]:
    """Return the attempts of an execution, the first one first."""
    statement = select(ATTEMPT).where(ATTEMPT.c.execution == execution_id).order_by(ATTEMPT.c.number)
    return [attempt_of(row) for row in connection.execute(statement).mappings()]


def change_attempt(connection: Connection, attempt_id: str, **values: Any) -> None:  # noqa: ANN401  as above
    """Change an open attempt."""
    statement = update(ATTEMPT).where(ATTEMPT.c.id == attempt_id, ATTEMPT.c.ended_at.is_(None))
    connection.execute(statement.values(values))


def due(connection: Connection, now: datetime) -> list[Execution]:
    """Return the executions that wait for a dispatcher, or whose lease has expired."""
    waiting = (EXECUTION.c.state == ExecutionState.QUEUED.value) & (EXECUTION.c.priority > 0)
    held = EXECUTION.c.state.in_([ExecutionState.CLAIMED.value, ExecutionState.RUNNING.value])
    return some(connection, waiting | (held & (EXECUTION.c.lease_until <= now)))
