"""Copies of the records as files beside the job files; `reindex` restores a lost database from them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import attrs
from sqlalchemy import Table, insert, select

from ..errors import StoreError
from ..files import make_parent_directory, write_whole
from ..model import ExecutionState, Request, RequestState
from ..store import (
    ATTEMPT,
    COLLECTION,
    EVENT,
    EXECUTION,
    REQUEST,
    Moment,
    Transaction,
    events,
    executions,
    ledger,
    requests,
    row_of,
)
from .queries import RecordsReader

# Each execution's record is in the execution's directory; requests have a directory of their own.
# Versions before 0.2 stored requests that were satisfied at once beside their executions.
_NAME, _REQUESTS = "record.json", "requests"
# The names of collections; the file is named by the name's digest, as a name may be any text.
_COLLECTIONS = "names"
_PLACES = (f"executions/*/{_NAME}", f"executions/*/{_REQUESTS}/*.json", f"{_REQUESTS}/*.json")
_VERSION = 1


@attrs.frozen(slots=True)
class Restored:
    """The result of `reindex`."""

    executions: int
    requests: int
    #: The number of restored collection names.
    names: int = 0
    #: The unreadable copies, each with the reason.
    unreadable: tuple[str, ...] = ()


def write_copy(records: RecordsReader, execution_id: str) -> None:
    """Write the record of an execution beside the files of its jobs.

    Raises:
        StoreError: the copy cannot be written.
    """
    with records.database.reading() as tx:
        _write_execution_copy(records, tx, execution_id)


def write_changed_copies(records: RecordsReader, tx: Transaction) -> None:
    """Write copies of the requests, new executions and names that a transaction has changed.

    This happens before the commit: if the commit fails, there is a copy of a change that no caller has seen.
    The opposite order could lose a change that a caller has seen.

    Raises:
        StoreError: a copy cannot be written.
    """
    for execution_id in sorted(tx.changed.executions):
        _write_execution_copy(records, tx, execution_id)
    for request_id in sorted(tx.changed.requests):
        write_request_copy(records, tx, requests.get(tx, request_id))
    for name in sorted(tx.changed.collections):
        _write_name_copy(records, tx, name)


class NameCopies:
    """Copies of the collection names set by users who may not write copies themselves."""

    def __init__(self, records: RecordsReader) -> None:
        self._records = records
        self._known: dict[str, datetime] = {}

    def keep(self, tx: Transaction) -> None:
        """Write the names that have changed since the last call.

        Raises:
            StoreError: a copy cannot be written.
        """
        for row in tx.execute(select(COLLECTION.c.name, COLLECTION.c.modified_at)).all():
            if self._known.get(row.name) != row.modified_at:
                _write_name_copy(self._records, tx, row.name)
                self._known[row.name] = row.modified_at


def _write_name_copy(records: RecordsReader, tx: Transaction, name: str) -> None:
    row = tx.execute(select(COLLECTION).where(COLLECTION.c.name == name)).mappings().one()
    digest = hashlib.sha256(name.encode()).hexdigest()
    path = records.directory / _COLLECTIONS / f"{digest}.json"
    _write(records, path, {"v": _VERSION, "collection": dict(row)})


def write_request_copy(records: RecordsReader, tx: Transaction, request: Request) -> None:
    """Write the record of a request.

    Raises:
        StoreError: the copy cannot be written.
    """
    document = {"v": _VERSION, "requests": [row_of(request)], "events": _events(tx, request.id)}
    _write(records, request_copy(records, request.id), document)


def request_copy(records: RecordsReader, request_id: str) -> Path:
    """Return the path of a request's copy."""
    return records.directory / _REQUESTS / f"{request_id}.json"


def _write(records: RecordsReader, path: Path, document: Mapping[str, Any]) -> None:
    records.make_directory()
    try:
        if path.parent.name in {_REQUESTS, _COLLECTIONS}:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # mkdir applies the umask; chmod does not.
            path.parent.chmod(0o700)
        else:
            make_parent_directory(records.executions_directory)
            path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(document, default=datetime.isoformat, indent=1))
    except OSError as e:
        msg = f"{path} cannot be written: {e.strerror}"
        raise StoreError(msg, e) from e


def _write_execution_copy(records: RecordsReader, tx: Transaction, execution_id: str) -> None:
    statement = select(EXECUTION).where(EXECUTION.c.id == execution_id)
    interested = requests.some(tx, REQUEST.c.execution == execution_id)
    document = {
        "v": _VERSION,
        "execution": dict(tx.execute(statement).mappings().one()),
        "requests": [row_of(it) for it in interested],
        "attempts": [row_of(it) for it in executions.attempts(tx, execution_id)],
        "events": _events(tx, *(it.id for it in interested), execution=execution_id),
    }
    _write(records, records.execution_directory(execution_id) / _NAME, document)


def _events(tx: Transaction, *request_ids: str, execution: str | None = None) -> list[dict[str, Any]]:
    """Return the events of requests and of an execution as rows, including those for accounting."""
    of_request, of_execution = EVENT.c.request.in_(request_ids), EVENT.c.execution == execution
    concerned = of_request if execution is None else of_request | of_execution
    rows = tx.execute(select(EVENT).where(concerned).order_by(EVENT.c.seq))
    return [dict(row) for row in rows.mappings()]


def reindex(records: RecordsReader) -> Restored:
    """Insert the records that exist as copies only.

    A restored execution that has not ended gets an expired lease, so that the next dispatcher takes it.

    Raises:
        StoreError: the records cannot be written.
    """
    unreadable: list[str] = []
    found = list(_copies(records.directory, _PLACES, unreadable.append))
    names = list(_copies(records.directory, [f"{_COLLECTIONS}/*.json"], unreadable.append))
    with records.database.writing() as tx:
        made = [_add_execution(tx, it["execution"]) for it in found if "execution" in it]
        added = [_add_request(tx, it, unreadable.append) for it in _newest(found)]
        for attempt in (attempt for it in found for attempt in it.get("attempts", ())):
            if _is_missing(tx, ATTEMPT, attempt["id"]):
                tx.execute(insert(ATTEMPT).values(_row(ATTEMPT, attempt)))
        _add_events(tx, found)
        for it in found:
            if "execution" in it and not _is_missing(tx, EXECUTION, it["execution"]["id"]):
                ledger.settle(tx, it["execution"]["id"])
        named = [_add_name(tx, it["collection"]) for it in names]
        restored = Restored(sum(made), sum(added), sum(named), tuple(unreadable))
        counts: dict[str, Any] = attrs.asdict(restored)
        del counts["unreadable"]
        events.add(tx, "reindexed", **counts)
    return restored


def _newest(found: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the most recently changed copy of each request; of equally recent ones, the last read."""
    rows = sorted((row for it in found for row in it["requests"]), key=lambda row: str(row["modified_at"]))
    newest = {row["id"]: row for row in rows}
    return [newest[name] for name in sorted(newest)]


def _add_execution(tx: Transaction, row: Mapping[str, Any]) -> bool:
    """Insert an execution if it is missing; return True if it was."""
    if not _is_missing(tx, EXECUTION, row["id"]):
        return False
    # Versions before 0.2 did not record when and by which user it was changed.
    row = {"modified_at": row["finished_at"] or row["created_at"], "modified_by": "", **row}
    late = {} if ExecutionState(row["state"]).ended else {"lease_until": tx.now}
    tx.execute(insert(EXECUTION).values({**_row(EXECUTION, row), **late}))
    return True


def _add_request(tx: Transaction, row: Mapping[str, Any], complain: Callable[[str], None]) -> bool:
    """Insert a request if it is missing; return True if it was inserted."""
    if not _is_missing(tx, REQUEST, row["id"]):
        return False
    is_over = row["state"] == RequestState.FINAL.value
    if not is_over and row["execution"] is not None and _is_missing(tx, EXECUTION, row["execution"]):
        # The dispatcher assigns another execution.
        row = {**row, "execution": None}
    for needed in (row["execution"], row["parent"]):
        if needed is not None and _is_missing(tx, EXECUTION, needed):
            complain(f"request {row['id']} is left out, as execution {needed} is not there")
            return False
    tx.execute(insert(REQUEST).values(_row(REQUEST, row)))
    return True


def _add_name(tx: Transaction, row: Mapping[str, Any]) -> bool:
    """Insert the name of a collection if it is missing; return True if it was."""
    wanted = select(COLLECTION.c.name).where(COLLECTION.c.name == row["name"])
    if tx.execute(wanted).first() is not None:
        return False
    tx.execute(insert(COLLECTION).values(_row(COLLECTION, row)))
    return True


def _add_events(tx: Transaction, found: Sequence[Mapping[str, Any]]) -> None:
    """Insert the missing events in the order of their times."""
    known: set[str] = set()
    there: dict[str, dict[str, Any]] = {}
    for it in found:
        request_ids = (request["id"] for request in it["requests"])
        execution = it["execution"]["id"] if "execution" in it else None
        known |= {_what(event) for event in _events(tx, *request_ids, execution=execution)}
        # Copies of older versions hold no events; several copies may hold the same event.
        events_there = (_row(EVENT, event) for event in it.get("events", ()))
        there |= {_what(event): event for event in events_there}
    missing = [event for what, event in there.items() if what not in known]
    for event in sorted(missing, key=lambda event: (event["time"], event["seq"])):
        tx.execute(insert(EVENT).values({name: it for name, it in event.items() if name != "seq"}))


def _what(event: Mapping[str, Any]) -> str:
    """Return an event as text without its number, which the database assigns."""
    members = {name: value for name, value in event.items() if name != "seq"}
    return json.dumps(members, default=datetime.isoformat, sort_keys=True)


def _copies(
    directory: Path, places: Iterable[str], complain: Callable[[str], None]
) -> Iterator[Mapping[str, Any]]:
    for path in sorted(it for pattern in places for it in directory.glob(pattern)):
        try:
            document = json.loads(path.read_text())
            if document["v"] != _VERSION:
                complain(f"{path} was written by a newer version")
                continue
        except (OSError, ValueError, KeyError, TypeError) as e:
            complain(f"{path}: {e}")
            continue
        yield document


def _is_missing(tx: Transaction, table: Table, row_id: str) -> bool:
    return tx.execute(select(table.c.id).where(table.c.id == row_id)).first() is None


def _row(table: Table, document: Mapping[str, Any]) -> dict[str, Any]:
    return {
        column.name: datetime.fromisoformat(value) if isinstance(column.type, Moment) and value else value
        for column in table.columns
        for value in [document[column.name]]
    }
