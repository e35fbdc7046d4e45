"""Copies each record to a file beside the job files; `reindex` restores a lost database from the copies.

`Records` writes the copies before each commit.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import attrs
from sqlalchemy import Table, insert, select

from .. import store
from ..errors import store_errors
from ..files import make_parent_directory, write_whole
from ..model import ExecutionState, Request, RequestState
from .queries import RecordsReader

# The copy in the directory of an execution.
_NAME = "record.json"
# The directory of the copies of requests.
_REQUESTS = "requests"
# The directory of the copies of collection names. A file is named by the digest of the name, which may be any
# text.
_COLLECTIONS = "names"
# Versions before 0.2 stored requests that were satisfied at once beside their executions.
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


def write_changed_copies(records: RecordsReader, tx: store.Transaction) -> None:
    """Write copies of the requests, executions and names that a transaction has changed.

    This happens before the commit: if the commit fails, there is a copy of a change that no caller has seen.
    The opposite order could lose a change that a caller has seen.

    Raises:
        StoreError: a copy cannot be written.
    """
    for execution_id in sorted(tx.changed.executions):
        _write_execution_copy(records, tx, execution_id)
    for request_id in sorted(tx.changed.requests):
        write_request_copy(records, tx, store.requests.get(tx, request_id))
    for name in sorted(tx.changed.collections):
        _write_name_copy(records, tx, name)


def write_new_names(records: RecordsReader, tx: store.Transaction, written: dict[str, datetime]) -> None:
    """Write copies of the collection names that were set by users who may not write copies themselves.

    Args:
        records: the records.
        tx: a transaction.
        written: the times of the names that have a copy; those of the new ones are added.

    Raises:
        StoreError: a copy cannot be written.
    """
    for row in tx.execute(select(store.COLLECTION.c.name, store.COLLECTION.c.modified_at)).all():
        if written.get(row.name) != row.modified_at:
            _write_name_copy(records, tx, row.name)
            written[row.name] = row.modified_at


def _write_name_copy(records: RecordsReader, tx: store.Transaction, name: str) -> None:
    row = tx.execute(select(store.COLLECTION).where(store.COLLECTION.c.name == name)).mappings().one()
    digest = hashlib.sha256(name.encode()).hexdigest()
    path = records.directory / _COLLECTIONS / f"{digest}.json"
    _write(records, path, {"v": _VERSION, "collection": dict(row)})


def write_request_copy(records: RecordsReader, tx: store.Transaction, request: Request) -> None:
    """Write the record of a request.

    Raises:
        StoreError: the copy cannot be written.
    """
    document = {"v": _VERSION, "requests": [store.row_of(request)], "events": _events(tx, request.id)}
    _write(records, request_copy(records, request.id), document)


def request_copy(records: RecordsReader, request_id: str) -> Path:
    """Return the path of a request's copy."""
    return records.directory / _REQUESTS / f"{request_id}.json"


def _write(records: RecordsReader, path: Path, document: Mapping[str, Any]) -> None:
    records.make_directory()
    with store_errors(f"{path} cannot be written"):
        if path.parent.name in {_REQUESTS, _COLLECTIONS}:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # mkdir applies the umask; chmod does not.
            path.parent.chmod(0o700)
        else:
            make_parent_directory(records.executions_directory)
            path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(document, default=datetime.isoformat, indent=1))


def _write_execution_copy(records: RecordsReader, tx: store.Transaction, execution_id: str) -> None:
    statement = select(store.EXECUTION).where(store.EXECUTION.c.id == execution_id)
    interested = store.requests.some(tx, store.REQUEST.c.execution == execution_id)
    document = {
        "v": _VERSION,
        "execution": dict(tx.execute(statement).mappings().one()),
        "requests": [store.row_of(it) for it in interested],
        "attempts": [store.row_of(it) for it in store.executions.attempts(tx, execution_id)],
        "events": _events(tx, *(it.id for it in interested), execution=execution_id),
    }
    _write(records, records.execution_directory(execution_id) / _NAME, document)


def _events(tx: store.Transaction, *request_ids: str, execution: str | None = None) -> list[dict[str, Any]]:
    """Return the events of requests and of an execution as rows, including those for accounting."""
    of_request, of_execution = store.EVENT.c.request.in_(request_ids), store.EVENT.c.execution == execution
    concerned = of_request if execution is None else of_request | of_execution
    rows = tx.execute(select(store.EVENT).where(concerned).order_by(store.EVENT.c.seq))
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
        changed = _requests_with_new_priorities(found)
        current = [_with_current_state(it, changed) for it in _newest(found)]
        added = [_add_request(tx, it, unreadable.append) for it in current]
        for attempt in (attempt for it in found for attempt in it.get("attempts", ())):
            _insert_missing(tx, store.ATTEMPT, attempt)
        _add_events(tx, found)
        for it in found:
            if "execution" in it and not _is_missing(tx, store.EXECUTION, it["execution"]["id"]):
                store.ledger.settle(tx, it["execution"]["id"])
        named = [_insert_missing(tx, store.COLLECTION, it["collection"]) for it in names]
        restored = Restored(sum(made), sum(added), sum(named), tuple(unreadable))
        counts: dict[str, Any] = attrs.asdict(restored)
        del counts["unreadable"]
        store.events.add(tx, "reindexed", **counts)
    return restored


def _newest(found: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the most recently changed copy of each request; of equally recent ones, the last read."""
    rows = sorted((row for it in found for row in it["requests"]), key=lambda row: str(row["modified_at"]))
    newest = {row["id"]: row for row in rows}
    return [newest[name] for name in sorted(newest)]


def _requests_with_new_priorities(found: Iterable[Mapping[str, Any]]) -> Collection[str | None]:
    # Copies of older versions hold no events.
    events = (event for it in found for event in it.get("events", ()))
    return {it["request"] for it in events if it["kind"] == "priority"}


def _with_current_state(row: Mapping[str, Any], changed: Collection[str | None]) -> Mapping[str, Any]:
    """Return a request with the state that migration 0005 gives to one whose priority was set to zero."""
    is_cancelled = row["state"] == RequestState.COMMITTED.value and row["priority"] <= 0
    return {**row, "state": RequestState.CANCELLED.value} if is_cancelled and row["id"] in changed else row


def _insert_missing(tx: store.Transaction, table: Table, row: Mapping[str, Any]) -> bool:
    """Insert a row if it is missing; return True if it was."""
    (key,) = table.primary_key.columns
    if not _is_missing(tx, table, row[key.name]):
        return False
    tx.execute(insert(table).values(_row(table, row)))
    return True


def _is_missing(tx: store.Transaction, table: Table, row_id: str) -> bool:
    (key,) = table.primary_key.columns
    return tx.execute(select(key).where(key == row_id)).first() is None


def _add_execution(tx: store.Transaction, row: Mapping[str, Any]) -> bool:
    # Versions before 0.2 did not record when and by which user it was changed.
    row = {"modified_at": row["finished_at"] or row["created_at"], "modified_by": "", **row}
    late = {} if ExecutionState(row["state"]).ended else {"lease_until": tx.now.isoformat()}
    return _insert_missing(tx, store.EXECUTION, {**row, **late})


def _add_request(tx: store.Transaction, row: Mapping[str, Any], complain: Callable[[str], None]) -> bool:
    """Insert a request if it is missing; return True if it was inserted."""
    if not _is_missing(tx, store.REQUEST, row["id"]):
        return False
    is_over = row["state"] == RequestState.FINAL.value
    if not is_over and row["execution"] is not None and _is_missing(tx, store.EXECUTION, row["execution"]):
        # The dispatcher assigns another execution.
        row = {**row, "execution": None}
    for needed in (row["execution"], row["parent"]):
        if needed is not None and _is_missing(tx, store.EXECUTION, needed):
            complain(f"request {row['id']} is left out, as execution {needed} is not there")
            return False
    return _insert_missing(tx, store.REQUEST, row)


def _add_events(tx: store.Transaction, found: Sequence[Mapping[str, Any]]) -> None:
    """Insert the missing events in the order of their times."""
    known: set[str] = set()
    there: dict[str, dict[str, Any]] = {}
    for it in found:
        request_ids = (request["id"] for request in it["requests"])
        execution = it["execution"]["id"] if "execution" in it else None
        known |= {_what(event) for event in _events(tx, *request_ids, execution=execution)}
        # Copies of older versions hold no events; several copies may hold the same event.
        events_there = (_row(store.EVENT, event) for event in it.get("events", ()))
        there |= {_what(event): event for event in events_there}
    missing = [event for what, event in there.items() if what not in known]
    for event in sorted(missing, key=lambda event: (event["time"], event["seq"])):
        tx.execute(insert(store.EVENT).values({name: it for name, it in event.items() if name != "seq"}))


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


def _row(table: Table, document: Mapping[str, Any]) -> dict[str, Any]:
    return {
        column.name: datetime.fromisoformat(value)
        if isinstance(column.type, store.Moment) and value
        else value
        for column in table.columns
        for value in [document[column.name]]
    }
