"""Copies of the records beside the files of jobs, from which a database that was lost is made again."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import attrs
from sqlalchemy import Connection, Table, insert, select

from .errors import StoreError
from .model import ExecutionState
from .reading import Reading
from .store import events, executions, requests
from .store.rows import attempt_row, execution_row, request_row
from .store.schema import ATTEMPT, EVENT, EXECUTION, REQUEST, Moment

_NAME = "record.json"
_VERSION = 1


@attrs.frozen(slots=True)
class Restored:
    """What was made again."""

    executions: int
    requests: int
    #: The copies that cannot be read, each with the reason.
    unreadable: tuple[str, ...] = ()


def keep_copy(records: Reading, execution_id: str) -> None:
    """Write what the records say of an execution beside the files of its jobs.

    Raises:
        StoreError: it cannot be written.
    """
    with records.database.reading() as connection:
        document = _document(connection, execution_id)
    path = records.directory / "executions" / execution_id / _NAME
    beside = path.with_name(f".{_NAME}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_text(json.dumps(document, default=datetime.isoformat, indent=1))
        beside.replace(path)
    except OSError as e:
        msg = f"{path} cannot be written: {e.strerror}"
        raise StoreError(msg, e) from e


def _document(connection: Connection, execution_id: str) -> dict[str, Any]:
    row = connection.execute(select(EXECUTION).where(EXECUTION.c.id == execution_id)).mappings().one()
    asked = requests.some(connection, REQUEST.c.execution == execution_id)
    return {
        "v": _VERSION,
        "execution": {"program": row["program"], "is_shared": row["is_shared"]}
        | execution_row(executions.get(connection, execution_id)),
        "requests": [request_row(it) for it in asked],
        "attempts": [attempt_row(it) for it in executions.attempts(connection, execution_id)],
        "events": _events(connection, execution_id, [it.id for it in asked]),
    }


def _events(connection: Connection, execution_id: str, asked: Collection[str]) -> list[dict[str, Any]]:
    """What has happened to an execution and to requests, with what accounting is made of."""
    rows = connection.execute(
        select(EVENT)
        .where((EVENT.c.execution == execution_id) | EVENT.c.request.in_(asked))
        .order_by(EVENT.c.seq)
    )
    return [dict(row) for row in rows.mappings()]


def reindex(records: Reading) -> Restored:
    """Put into the records what only the copies still have.

    An execution that has not ended is adopted by the next dispatcher, as one whose dispatcher is gone. A
    request that was satisfied at once by what was there has no copy, and is not made again.

    Raises:
        StoreError: the records cannot be written.
    """
    unreadable: list[str] = []
    found = list(_copies(records.directory, unreadable.append))
    now = records.now()
    with records.database.writing() as connection:
        new = [it for it in found if _is_missing(connection, EXECUTION, it["execution"])]
        for it in new:
            late = {} if _has_ended(it["execution"]) else {"lease_until": now}
            connection.execute(insert(EXECUTION).values({**_row(EXECUTION, it["execution"]), **late}))
        count = 0
        for it in found:
            for request in it["requests"]:
                if _is_missing(connection, REQUEST, request):
                    count += 1
                    connection.execute(insert(REQUEST).values(_row(REQUEST, request)))
            for attempt in it["attempts"]:
                if _is_missing(connection, ATTEMPT, attempt):
                    connection.execute(insert(ATTEMPT).values(_row(ATTEMPT, attempt)))
        _add_events(connection, found)
        told = {"executions": len(new), "requests": count}
        events.add(connection, now, "reindexed", data=told)
    return Restored(len(new), count, tuple(unreadable))


def _add_events(connection: Connection, found: Sequence[Mapping[str, Any]]) -> None:
    """Add the events that are missing, in the order in which they happened."""
    missing = []
    for it in found:
        asked = [request["id"] for request in it["requests"]]
        known = [_what(event) for event in _events(connection, it["execution"]["id"], asked)]
        # Copies of an older version hold none.
        events_there = [_row(EVENT, event) for event in it.get("events", ())]
        missing += [event for event in events_there if _what(event) not in known]
    for event in sorted(missing, key=lambda event: (event["time"], event["seq"])):
        connection.execute(insert(EVENT).values(_what(event)))


def _what(event: Mapping[str, Any]) -> dict[str, Any]:
    """An event without its number, which is the database's own."""
    return {name: value for name, value in event.items() if name != "seq"}


def _copies(directory: Path, complain: Callable[[str], None]) -> Iterator[Mapping[str, Any]]:
    for path in sorted(directory.glob(f"executions/*/{_NAME}")):
        try:
            document = json.loads(path.read_text())
            if document["v"] != _VERSION:
                complain(f"{path} was written by a newer version")
                continue
        except (OSError, ValueError, KeyError, TypeError) as e:
            complain(f"{path}: {e}")
            continue
        yield document


def _is_missing(connection: Connection, table: Table, row: Mapping[str, Any]) -> bool:
    return connection.execute(select(table.c.id).where(table.c.id == row["id"])).first() is None


def _has_ended(row: Mapping[str, Any]) -> bool:
    return ExecutionState(row["state"]).ended


def _row(table: Table, document: Mapping[str, Any]) -> dict[str, Any]:
    return {
        column.name: datetime.fromisoformat(value) if isinstance(column.type, Moment) and value else value
        for column in table.columns
        for value in [document[column.name]]
    }
