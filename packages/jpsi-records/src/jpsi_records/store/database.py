"""Connects to the database of the records, and begins read and write transactions.

All of jpsi-records uses it. SQLite's or PostgreSQL's locks ensure that only one process writes at a time. On
a network file system they may not work. There a lock file admits one process at a time, also for reading: a
reader could take the journal of a running transaction for that of a crashed one, and roll it back.
"""

from __future__ import annotations

import contextlib
import functools
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from jpsi_engine import is_on_network

from ..errors import StoreError
from .file_lock import FileLock

# The time that a process waits for another; most transactions take milliseconds.
_TIMEOUT_SECONDS = 60
_RETRY_SECONDS = 0.02
# The key of PostgreSQL's advisory lock for the one writer; any constant works.
_WRITER_KEY = 0x6A707369


def utc_now() -> datetime:
    """Return the current time of this machine in UTC."""
    return datetime.now(UTC)


@attrs.frozen(slots=True)
class Changed:
    """The ids of the records that a transaction has changed."""

    requests: set[str] = attrs.field(factory=set)
    #: The executions that it has inserted, or whose placement it has changed.
    executions: set[str] = attrs.field(factory=set)
    #: The names of collections that it has set.
    collections: set[str] = attrs.field(factory=set)


@attrs.frozen(slots=True)
class Transaction:
    """A read or write transaction."""

    connection: sa.Connection
    #: The time of all its changes.
    now: datetime
    #: The user who writes, for `modified_by`; empty if not set.
    user: str
    changed: Changed = attrs.field(factory=Changed)

    @property
    def is_sqlite(self) -> bool:
        """True in an SQLite file, False on a PostgreSQL server."""
        return self.connection.dialect.name == "sqlite"

    def execute(self, statement: sa.Executable) -> sa.CursorResult[Any]:
        """Execute a statement."""
        return self.connection.execute(statement)


class Database:
    """A database for any thread, and for any number of processes that each open it."""

    def __init__(self, url: str | sa.URL) -> None:
        #: The user who writes, for `modified_by`; empty if not set.
        self.user = ""
        #: Returns the time of a transaction.
        self.now: Callable[[], datetime] = utc_now
        #: Called before the commit of a transaction that has changed something.
        self.before_commit: Callable[[Transaction], None] | None = None
        self._url = _parse_url(url)
        self._file_lock = self._lock_if_on_network()
        # On a network file system, only a newly opened file shows what other machines have written.
        more: dict[str, Any] = {} if self._file_lock is None else {"poolclass": sa.NullPool}
        try:
            self.engine = sa.create_engine(self._url, **more)
        except ImportError as e:
            from jpsi.plugin import install_command  # noqa: PLC0415  with the registry of plugins

            msg = f"{e}, which PostgreSQL needs; try: {install_command('jpsi-records[postgresql]')}"
            raise StoreError(msg, e) from e
        if self.is_sqlite:
            # A write-ahead log needs memory that all processes share, so they must be on one machine.
            _set_up_sqlite(self.engine, "WAL" if self._file_lock is None else "DELETE")

    @property
    def is_sqlite(self) -> bool:
        """True for an SQLite file, False for a PostgreSQL server."""
        return self._url.get_backend_name() == "sqlite"

    @functools.cached_property
    def restricted_to(self) -> str | None:
        """The PostgreSQL role if row-level security shows it only its own records; None if it sees all."""
        if self.is_sqlite:
            return None
        with self.reading() as tx:
            return tx.execute(sa.text("SELECT current_user WHERE row_security_active('execution')")).scalar()

    @functools.cached_property
    def owner(self) -> str:
        """The PostgreSQL role that owns the tables, and so may write all of them."""
        statement = "SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = 'execution'::regclass"
        with self.reading() as tx:
            return str(tx.execute(sa.text(statement)).scalar())

    def _lock_if_on_network(self) -> FileLock | None:
        path = sqlite_path(self._url)
        if path is None or not is_on_network(str(path.absolute().parent)):
            return None
        return FileLock(Path(f"{path.absolute()}-turn"), timeout=_TIMEOUT_SECONDS)

    def reading(self) -> AbstractContextManager[Transaction]:
        """Begin a read transaction, which sees one consistent state of the records.

        Raises:
            StoreError: the database cannot be reached, or is not one of this package.
        """
        return self.transaction(writes=False)

    def writing(self) -> AbstractContextManager[Transaction]:
        """Begin a write transaction when no other is open; it is committed as a whole, or rolled back.

        Raises:
            StoreError: the database cannot be reached or written to.
        """
        return self.transaction(writes=True)

    @contextlib.contextmanager
    def transaction(self, *, writes: bool) -> Iterator[Transaction]:
        """Begin a transaction.

        A subclass checks the tables in `reading` and `writing`; this does not.
        """
        try:
            with (
                contextlib.nullcontext() if self._file_lock is None else self._file_lock.acquire(),
                self.engine.connect().execution_options(jpsi_writes=writes) as connection,
                connection.begin(),
            ):
                if writes and not self.is_sqlite:
                    connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": _WRITER_KEY})
                tx = Transaction(connection, self.now(), self.user)
                yield tx
                if self.before_commit is not None and tx.changed != Changed():
                    self.before_commit(tx)
        except SQLAlchemyError as e:
            reason = e.orig if isinstance(e, DBAPIError) else e
            raise StoreError(f"the records cannot be {'written' if writes else 'read'}: {reason}", e) from e

    def close(self) -> None:
        """Close all connections; a later use opens new ones."""
        self.engine.dispose()


def sqlite_path(url: str | sa.URL) -> Path | None:
    """Return the file of an SQLite database; None for other databases, and for one in memory.

    Raises:
        StoreError: the URL is invalid.
    """
    found = _parse_url(url)
    if found.get_backend_name() != "sqlite" or not found.database or found.database == ":memory:":
        return None
    return Path(found.database)


def _parse_url(url: str | sa.URL) -> sa.URL:
    """Return a parsed URL, with the driver that this package depends on.

    Raises:
        StoreError: the URL is invalid, or its database is neither SQLite nor PostgreSQL.
    """
    try:
        found = sa.make_url(url)
    except SQLAlchemyError as e:
        # The URL may contain a password.
        msg = "this is no URL of a database; one is postgresql+psycopg://server/name or sqlite:////a/file"
        raise StoreError(msg, e) from e
    if found.get_backend_name() not in {"sqlite", "postgresql"}:
        raise StoreError(f"records are kept in SQLite or PostgreSQL, and not in {found.get_backend_name()}")
    # SQLAlchemy's default driver is another.
    needs_driver = found.drivername == "postgresql"
    return found.set(drivername="postgresql+psycopg") if needs_driver else found


def _set_up_sqlite(engine: sa.Engine, journal_mode: str) -> None:
    @sa.event.listens_for(engine, "connect")
    def set_up(connection: Any, _: object) -> None:  # noqa: ANN401  the type depends on the driver
        # Turn off the driver's own BEGIN: it comes only before the first write, not before the first read.
        connection.isolation_level = None
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout = {_TIMEOUT_SECONDS * 1000}")
        _set_journal_mode(cursor, journal_mode)
        cursor.execute("PRAGMA synchronous = FULL")
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.close()

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        # Take the write lock at once: SQLite refuses it to a transaction that has read before another wrote.
        is_writing = connection.get_execution_options().get("jpsi_writes", True)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if is_writing else "BEGIN")


def _set_journal_mode(cursor: sqlite3.Cursor, mode: str) -> None:
    # While another process does the same with a new file, SQLite refuses this at once, whatever the timeout.
    end = time.monotonic() + _TIMEOUT_SECONDS
    while True:
        try:
            cursor.execute(f"PRAGMA journal_mode = {mode}")
        except sqlite3.OperationalError as e:
            # the error may be one of several that are kinds of this one
            if e.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
        else:
            return
        time.sleep(_RETRY_SECONDS)
