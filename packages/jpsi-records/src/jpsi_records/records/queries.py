"""What there is in the records: the half of the door that changes nothing."""

from __future__ import annotations

import errno
import getpass
import os
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from jpsi.plugin import ConfigError
from jpsi.plugin.kit import make_private_directory, open_private

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
    UnmadeDatabase,
    events,
    executions,
    full_id,
    open_database,
    requests,
    sqlite_path,
)


def utc_now() -> datetime:
    """Return the time of this machine."""
    return datetime.now(UTC)


class Reading:
    """Requests and executions, as they are.

    Args:
        directory: where files are kept, and the database as well if no other is given.
        url: a database, as SQLAlchemy has it: `postgresql+psycopg://…`, or `sqlite:///…`.
        user: who asks; None is who runs the program, or whom PostgreSQL takes him for.
        now: tells the time.

    Raises:
        StateError: this process belongs to the job of an execution, which opens no records.
        StoreError: the records cannot be reached, or are of a newer version.
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
        self.database.user = self.user

    def _opened(self, url: str, *, is_beside: bool) -> Database:
        """The database; one that is not there yet is made by whoever writes first."""
        path = sqlite_path(url)
        if path is not None and path.exists():
            return open_database(url)

        def make() -> None:
            self.make_directory()
            if is_beside and path is not None:
                os.close(open_private(path, os.O_RDWR | os.O_CREAT))

        database = UnmadeDatabase(url, make)
        try:
            database.check()
        except BaseException:
            database.close()
            raise
        return database

    def make_directory(self) -> None:
        """Make the directory for files, unless it is there.

        Raises:
            StoreError: it cannot be made.
        """
        if not self.directory.exists():
            self._make_private()

    def _make_private(self) -> None:
        try:
            # whoever can change the database asks for what the user's dispatcher runs
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
        """Whether executions may be written; if not, a dispatcher sees to what follows from requests."""
        return self.database.restricted_to is None

    def request(self, request_id: str) -> Request:
        """The request with an id, or with one that begins like that."""
        with self.database.reading() as connection:
            return requests.get(connection, full_id(connection, REQUEST.c.id, request_id))

    def requests(
        self, *, owner: str | None = None, state: RequestState | None = None, execution: str | None = None
    ) -> list[Request]:
        """The requests, the oldest first: all of them, or those of one owner, state or execution."""
        conditions = [
            column == value
            for column, value in (
                (REQUEST.c.owner, owner),
                (REQUEST.c.state, None if state is None else state.value),
                (REQUEST.c.execution, execution),
            )
            if value is not None
        ]
        with self.database.reading() as connection:
            return requests.some(connection, *conditions)

    def newest_requests(
        self, most: int, *, owner: str | None = None, before: str | None = None
    ) -> list[Request]:
        """So many requests, the newest first: of one owner, and of those made before another."""
        conditions = [] if owner is None else [REQUEST.c.owner == owner]
        conditions += [] if before is None else [REQUEST.c.id < before]
        with self.database.reading() as connection:
            return requests.newest(connection, most, *conditions)

    def newest_executions(self, most: int, *, before: str | None = None) -> list[Execution]:
        """So many executions, the newest first: of those made before another."""
        conditions = [] if before is None else [EXECUTION.c.id < before]
        with self.database.reading() as connection:
            return executions.newest(connection, most, *conditions)

    def executions(self, ids: Collection[str]) -> dict[str, Execution]:
        """The executions with these ids, by id; those that are not there are left out."""
        with self.database.reading() as connection:
            return {it.id: it for it in executions.of_ids(connection, ids)}

    def execution(self, execution_id: str) -> Execution:
        """The execution with an id, or with one that begins like that."""
        with self.database.reading() as connection:
            return executions.get(connection, full_id(connection, EXECUTION.c.id, execution_id))

    def attempts(self, execution_id: str) -> list[Attempt]:
        """The jobs of an execution, the first first."""
        with self.database.reading() as connection:
            return executions.attempts(connection, execution_id)

    @property
    def executions_directory(self) -> Path:
        """Where the files of all executions are."""
        return self.directory / "executions"

    def attempt_directory(self, attempt: Attempt) -> Path:
        """Where the files of an attempt are."""
        return self.execution_directory(attempt.execution) / str(attempt.number)

    def execution_directory(self, execution_id: str) -> Path:
        """Where the files of an execution are."""
        return self.executions_directory / execution_id

    def events(self, *, request: str | None = None, execution: str | None = None) -> list[Event]:
        """What has happened, in order: all of it, or what has to do with a request or an execution."""
        conditions = [] if request is None else [EVENT.c.request == request]
        conditions += [] if execution is None else [EVENT.c.execution == execution]
        with self.database.reading() as connection:
            return events.some(connection, *conditions)

    def usage(self, *, execution: str | None = None, user: str | None = None) -> list[Interval]:
        """The intervals of accounting, in order: all of them, or those of an execution or a user."""
        conditions = [] if execution is None else [ACCOUNTING.c.execution == execution]
        conditions += [] if user is None else [ACCOUNTING.c.owner == user]
        with self.database.reading() as connection:
            return events.intervals(connection, *conditions)

    def close(self) -> None:
        """Close the database."""
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
