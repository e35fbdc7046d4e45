"""Queries: the read-only part of the interface to the records."""

from __future__ import annotations

import errno
import getpass
import os
from collections.abc import Callable, Collection
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sqlalchemy import ColumnElement
from sqlalchemy.sql.base import ReadOnlyColumnCollection

from jpsi.plugin import ConfigError
from jpsi_engine import make_private_directory, open_private

from ..errors import StoreError
from ..files import Blobs, Repositories
from ..inbox import refuse_in_job
from ..model import Attempt, Event, Execution, Interval, Request, RequestState
from ..store import (
    ACCOUNTING,
    EVENT,
    EXECUTION,
    REQUEST,
    Database,
    Transaction,
    events,
    executions,
    full_id,
    open_database,
    requests,
    sqlite_path,
    utc_now,
)


class RecordsReader:
    """Read access to requests, executions and their history.

    Args:
        directory: the directory of the records' files, and of the SQLite database if no URL is given.
        url: a database URL of SQLAlchemy: `postgresql+psycopg://…`, or `sqlite:///…`.
        user: the user of the records; None is the PostgreSQL role if it is restricted, else the login name.
        now: returns the current time.

    Raises:
        StateError: this process belongs to the job of an execution, which opens no records.
        StoreError: the records cannot be reached, or were written by a newer version.
    """

    def __init__(
        self,
        directory: Path | str,
        *,
        url: str | None = None,
        user: str | None = None,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        refuse_in_job()
        self.directory = Path(directory).absolute()
        place = self.directory / "records.sqlite"
        if self.directory.exists() and url is None:
            self._make_private()
        else:
            self._check_ancestors()
        self.now = now
        self.blobs = Blobs(self.directory / "blobs", self.make_directory)
        self.repositories = Repositories(self.directory / "git", self.make_directory)
        self.database = self._opened(url or f"sqlite:///{place}", is_beside=url is None)
        self.user = user or self.database.restricted_to or getpass.getuser()
        self.database.user, self.database.now = self.user, now
        self.database.before_commit = self._write_copies

    def _opened(self, url: str, *, is_beside: bool) -> Database:
        """Open the database; one that does not exist yet is created by the first write."""
        path = sqlite_path(url)

        def make() -> None:
            self.make_directory()
            if is_beside and path is not None:
                os.close(open_private(path, os.O_RDWR | os.O_CREAT))

        return open_database(url, None if path is not None and path.exists() else make)

    def _write_copies(self, tx: Transaction) -> None:
        """Write copies of the records that a transaction has changed, before its commit."""

    def make_directory(self) -> None:
        """Create the directory of the records' files if it is missing.

        Raises:
            StoreError: the directory cannot be created.
        """
        if not self.directory.exists():
            self._make_private()

    def _make_private(self) -> None:
        try:
            # Private: who can change the database decides which commands the user's dispatcher runs.
            make_private_directory(self.directory, "the directory of the records")
        except ConfigError as e:
            raise StoreError(str(e), e) from e
        except OSError as e:
            raise self._cannot_be_made(e) from e

    def _check_ancestors(self) -> None:
        above = next(it for it in self.directory.parents if os.path.lexists(it))
        if not above.is_dir():
            raise self._cannot_be_made(NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)))

    def _cannot_be_made(self, error: OSError) -> StoreError:
        msg = f"{self.directory}, where the records' files are to be, cannot be made: {error.strerror}"
        return StoreError(msg, error)

    @property
    def may_dispatch(self) -> bool:
        """True if this user may write executions; otherwise the dispatcher acts on the user's requests."""
        return self.database.restricted_to is None

    def request(self, request_id: str) -> Request:
        """Return a request by its id or by a unique prefix of it."""
        with self.database.reading() as tx:
            return requests.get(tx, full_id(tx, REQUEST.c.id, request_id))

    def requests(
        self, *, owner: str | None = None, state: RequestState | None = None, execution: str | None = None
    ) -> list[Request]:
        """Return requests, the oldest first, optionally only those of an owner, a state or an execution."""
        state_value = None if state is None else state.value
        conditions = _equal(REQUEST.c, owner=owner, state=state_value, execution=execution)
        with self.database.reading() as tx:
            return requests.some(tx, *conditions)

    def newest_requests(
        self, most: int, *, owner: str | None = None, before: str | None = None
    ) -> list[Request]:
        """Return at most `most` requests, the newest first; optionally of one owner, or older than an id."""
        conditions = _equal(REQUEST.c, owner=owner)
        conditions += [] if before is None else [REQUEST.c.id < before]
        with self.database.reading() as tx:
            return requests.newest(tx, most, *conditions)

    def newest_executions(self, most: int, *, before: str | None = None) -> list[Execution]:
        """Return at most `most` executions, the newest first; optionally only those older than an id."""
        conditions = [] if before is None else [EXECUTION.c.id < before]
        with self.database.reading() as tx:
            return executions.newest(tx, most, *conditions)

    def executions(self, ids: Collection[str]) -> dict[str, Execution]:
        """Return executions by id, without those that do not exist."""
        with self.database.reading() as tx:
            return {it.id: it for it in executions.of_ids(tx, ids)}

    def execution(self, execution_id: str) -> Execution:
        """Return an execution by its id or by a unique prefix of it."""
        with self.database.reading() as tx:
            return executions.get(tx, full_id(tx, EXECUTION.c.id, execution_id))

    def attempts(self, execution_id: str) -> list[Attempt]:
        """Return the attempts of an execution, the first one first."""
        with self.database.reading() as tx:
            return executions.attempts(tx, execution_id)

    @property
    def executions_directory(self) -> Path:
        """The directory of all executions' files."""
        return self.directory / "executions"

    def attempt_directory(self, attempt: Attempt) -> Path:
        """Return the directory of an attempt's files."""
        return self.execution_directory(attempt.execution) / str(attempt.number)

    def execution_directory(self, execution_id: str) -> Path:
        """Return the directory of an execution's files."""
        return self.executions_directory / execution_id

    def events(self, *, request: str | None = None, execution: str | None = None) -> list[Event]:
        """Return events in order, optionally only those of a request and an execution."""
        with self.database.reading() as tx:
            return events.some(tx, *_equal(EVENT.c, request=request, execution=execution))

    def usage(self, *, execution: str | None = None, user: str | None = None) -> list[Interval]:
        """Return accounting intervals in order, optionally only those of an execution and a user."""
        with self.database.reading() as tx:
            return events.intervals(tx, *_equal(ACCOUNTING.c, execution=execution, owner=user))

    def close(self) -> None:
        """Close the database."""
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _equal(columns: ReadOnlyColumnCollection[str, Any], **values: str | None) -> list[ColumnElement[bool]]:
    """Return the conditions that columns have the given values; None is no condition."""
    return [columns[name] == value for name, value in values.items() if value is not None]
