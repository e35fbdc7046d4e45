"""Reads and writes the tables of executions and attempts, in the caller's transaction.

`ledger` and the dispatcher use it; equal requests that are committed at the same time get one execution
(`add`).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import Any

from sqlalchemy import ColumnElement, insert, select, text, update
from sqlalchemy.dialects import postgresql, sqlite

from ..model import Attempt, Execution, ExecutionState
from .database import Transaction
from .rows import fetch, fetch_one, row_of
from .schema import ATTEMPT, EXECUTION, LIVE

# The largest number of values in a statement, which databases limit.
_AT_ONCE = 500

#: The condition on executions that wait for a dispatcher.
WAITING = (EXECUTION.c.state == ExecutionState.QUEUED.value) & (EXECUTION.c.priority > 0)
#: The condition on executions that a dispatcher holds.
HELD = EXECUTION.c.state.in_([ExecutionState.CLAIMED.value, ExecutionState.RUNNING.value])


def get(tx: Transaction, execution_id: str) -> Execution:
    """Return an execution, or raise `NotFoundError`."""
    return fetch_one(tx, Execution, EXECUTION, execution_id)


def some(tx: Transaction, *conditions: ColumnElement[bool]) -> list[Execution]:
    """Return the executions that meet the conditions: by descending priority, then the oldest first."""
    statement = select(EXECUTION).where(*conditions)
    return fetch(tx, Execution, statement.order_by(EXECUTION.c.priority.desc(), EXECUTION.c.id))


def newest(tx: Transaction, most: int, *conditions: ColumnElement[bool]) -> list[Execution]:
    """Return at most `most` executions that meet the conditions, the newest first."""
    statement = select(EXECUTION).where(*conditions).order_by(EXECUTION.c.id.desc())
    return fetch(tx, Execution, statement.limit(most))


def of_ids(tx: Transaction, ids: Collection[str]) -> list[Execution]:
    """Return the executions with one of these ids."""
    return [it for portion in _portions(ids) for it in some(tx, EXECUTION.c.id.in_(portion))]


def of_fingerprints(tx: Transaction, fingerprints: Collection[str]) -> list[Execution]:
    """Return the executions with one of these fingerprints, including those of other users."""
    return [it for portion in _portions(fingerprints) for it in _of_fingerprints(tx, portion)]


def _of_fingerprints(tx: Transaction, portion: list[str]) -> list[Execution]:
    if tx.is_sqlite:
        return some(tx, EXECUTION.c.fingerprint.in_(portion))
    statement = text("SELECT * FROM same_computation(:wanted)").bindparams(wanted=portion)
    return fetch(tx, Execution, statement.columns(*EXECUTION.columns))


def _portions(values: Collection[str]) -> Iterator[list[str]]:
    wanted = list(values)
    for start in range(0, len(wanted), _AT_ONCE):
        yield wanted[start : start + _AT_ONCE]


def of_program(tx: Transaction, preimage: str, most: int) -> list[Execution]:
    """Return at most `most` executions with the program of a canonical key, the newest first."""
    statement = select(EXECUTION).where(EXECUTION.c.program == _program(preimage))
    return fetch(tx, Execution, statement.order_by(EXECUTION.c.created_at.desc()).limit(most))


def _program(preimage: str) -> str:
    members = json.loads(preimage)
    program: str = (*members["command"], members.get("container_image"))[0]
    return program


def due(tx: Transaction) -> list[Execution]:
    """Return the executions that wait for a dispatcher, or whose lease has expired."""
    return some(tx, WAITING | (HELD & (EXECUTION.c.lease_until <= tx.now)))


def add(tx: Transaction, execution: Execution, *, is_shared: bool) -> Execution:
    """Insert an execution, or return the shared one with the same fingerprint that has not ended.

    Concurrent callers get the same execution.
    """
    row = {**row_of(execution), "program": _program(execution.preimage), "is_shared": int(is_shared)}
    dialect = sqlite if tx.is_sqlite else postgresql
    statement = dialect.insert(EXECUTION).values({**row, "modified_by": tx.user})
    live = text(LIVE)
    if tx.execute(
        statement.on_conflict_do_nothing(index_elements=["fingerprint"], index_where=live)
    ).rowcount:
        tx.changed.executions.add(execution.id)
        return get(tx, execution.id)
    (found,) = some(tx, (EXECUTION.c.fingerprint == execution.fingerprint) & live)
    return found


# The columns of a lease; a change of them is no change of the record.
_LEASE = frozenset({"holder", "lease_until"})


def change(
    tx: Transaction,
    execution_id: str,
    *conditions: ColumnElement[bool],
    **values: Any,  # noqa: ANN401  columns are of any type
) -> bool:
    """Change an execution if the conditions hold; return True if they did.

    `modified_at` and `modified_by` change as well, unless only the lease changes.
    """
    if not values.keys() <= _LEASE:
        values |= {"modified_at": tx.now, "modified_by": tx.user}
    statement = update(EXECUTION).where(EXECUTION.c.id == execution_id, *conditions)
    return tx.execute(statement.values(values)).rowcount == 1


def place(tx: Transaction, execution: Execution) -> None:
    """Change where a waiting execution will run, as `execution` says; its copy is written again."""
    values = {
        "placement": execution.placement,
        "recorded": execution.recorded,
        "attempts": execution.attempts,
    }
    change(tx, execution.id, EXECUTION.c.state == ExecutionState.QUEUED.value, **values)
    tx.changed.executions.add(execution.id)


def add_attempt(tx: Transaction, attempt: Attempt) -> None:
    """Insert an attempt; an execution has at most one open attempt."""
    tx.execute(insert(ATTEMPT).values(row_of(attempt)))


def attempts(tx: Transaction, execution_id: str) -> list[Attempt]:
    """Return the attempts of an execution, the first one first."""
    statement = select(ATTEMPT).where(ATTEMPT.c.execution == execution_id)
    return fetch(tx, Attempt, statement.order_by(ATTEMPT.c.number))


def change_attempt(tx: Transaction, attempt_id: str, **values: Any) -> None:  # noqa: ANN401  as above
    """Change an open attempt."""
    statement = update(ATTEMPT).where(ATTEMPT.c.id == attempt_id, ATTEMPT.c.ended_at.is_(None))
    tx.execute(statement.values(values))
