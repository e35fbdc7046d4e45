"""A fake of the dispatcher: the records that it writes when a job starts and ends."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from jpsi_records.model.entities import Execution, ExecutionState
from jpsi_records.model.request_spec import RequestSpec, read_request_spec
from jpsi_records.records.records import Records
from jpsi_records.store.ledger import catch_up, expire, move

#: Opens records as a user's program does.
Client = Callable[[str], Records]


class Clock:
    """A clock that a test advances."""

    def __init__(self) -> None:
        self.time = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time

    def advance(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


def spec(*command: str, **more: Any) -> RequestSpec:
    """Return the request spec of a command."""
    return read_request_spec({"command": list(command or ("true",)), **more})


def prepare_round(records: Records) -> None:
    """Prepare a round, as a dispatcher does before it looks for executions to run."""
    with records.database.writing() as tx:
        catch_up(tx)
        expire(tx)
    records.advance()


def start(records: Records, execution: str) -> Execution:
    """Record the start of a job."""
    now = records.now()
    with records.database.writing() as tx:
        assert move(tx, execution, ExecutionState.RUNNING, started_at=now)
    return records.execution(execution)


def finish(records: Records, execution: str, exit_code: int = 0, **more: Any) -> Execution:
    """Record the end of a job."""
    now = records.now()
    values = {"exit_code": exit_code, "finished_at": now, **more}
    with records.database.writing() as tx:
        assert move(tx, execution, ExecutionState.COMPLETE, **values)
    return records.execution(execution)
