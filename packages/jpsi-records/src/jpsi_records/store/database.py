"""The connection to the database: how transactions begin, so that there is one writer at a time.

SQLite's own locks see to that, or PostgreSQL's. On a file system of several machines whoever reads has to
wait, too: without locks, a journal that is being written looks like one that was left behind.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
from sqlalchemy import URL, Connection, Engine, NullPool, create_engine, event, make_url, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from ..errors import StoreError
from .file_lock import Turns
from .filesystems import is_on_network

# How long a writer waits for another; each writes for milliseconds.
_PATIENCE_SECONDS = 60
# Any number, as long as it is always the same: whoever writes holds it until the end of the transaction.
_WRITER = 0x6A707369


@attrs.frozen(slots=True)
class Changed:
    """The ids of what a transaction has changed."""

    requests: set[str] = attrs.field(factory=set)
    #: Those that it has made.
    executions: set[str] = attrs.field(factory=set)
    #: The names of collections that it has given.
    collections: set[str] = attrs.field(factory=set)


def changed_in(connection: Connection) -> Changed:
    """Return what a transaction has changed so far, for others to add to it."""
    found: Changed = connection.get_execution_options().get("jpsi_changed", Changed())
    return found


def writer(connection: Connection) -> str:
    """Return who writes; empty if nobody in particular."""
    found: str = connection.get_execution_options().get("jpsi_user", "")
    return found


class Database:
    """One database. Any thread may use it, and any process that opens it by itself."""

    def __init__(self, url: str | URL) -> None:
        #: Who writes, for `modified_by`; empty if nobody in particular.
        self.user = ""
        #: What is done at the end of a transaction that has changed requests or made executions.
        self.before_commit: Callable[[Connection, Changed], None] | None = None
        self._url = _checked(url)
        self._turns = self._turns_if_shared()
        # A file of several machines is only read anew by who opens it anew.
        more: dict[str, Any] = {} if self._turns is None else {"poolclass": NullPool}
        try:
            self.engine = create_engine(self._url, **more)
        except ImportError as e:
            msg = f"{e}, which PostgreSQL needs; try: pip install 'jpsi-records[postgresql]'"
            raise StoreError(msg, e) from e
        if self.is_sqlite:
            # With a write-ahead log all users must share memory, which machines do not.
            _set_up_sqlite(self.engine, "WAL" if self._turns is None else "DELETE")

    @property
    def is_sqlite(self) -> bool:
        """Whether it is a file that SQLite reads, and not a PostgreSQL server."""
        return self._url.get_backend_name() == "sqlite"

    @functools.cached_property
    def restricted_to(self) -> str | None:
        """The user to whom PostgreSQL restricts what is read and written; None if it restricts nobody."""
        if self.is_sqlite:
            return None
        with self.reading() as connection:
            asked = text("SELECT current_user WHERE row_security_active('execution')")
            return connection.execute(asked).scalar()

    @functools.cached_property
    def owner(self) -> str:
        """The role that owns the tables in PostgreSQL, and so may write everything."""
        with self.reading() as connection:
            asked = "SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = 'execution'::regclass"
            return str(connection.execute(text(asked)).scalar())

    def _turns_if_shared(self) -> Turns | None:
        path = self._url.database
        if not self.is_sqlite or not path or not is_on_network(Path(path).absolute().parent):
            return None
        return Turns(Path(f"{Path(path).absolute()}-turn"), patience=_PATIENCE_SECONDS)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that sees one state of the records.

        Raises:
            StoreError: the database cannot be reached, or is not one of this package.
        """
        with self._transaction(writes=False) as connection:
            yield connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction of the one writer; everything or nothing of it is kept.

        Raises:
            StoreError: the database cannot be reached or written to.
        """
        with self._transaction(writes=True) as connection:
            if not self.is_sqlite:
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _WRITER})
            yield connection

    @contextlib.contextmanager
    def _transaction(self, *, writes: bool) -> Iterator[Connection]:
        changed = Changed()
        options: dict[str, Any] = {"jpsi_writes": writes, "jpsi_user": self.user, "jpsi_changed": changed}
        try:
            with (
                contextlib.nullcontext() if self._turns is None else self._turns.turn(),
                self.engine.connect().execution_options(**options) as connection,
                connection.begin(),
            ):
                yield connection
                if self.before_commit is not None and changed != Changed():
                    self.before_commit(connection, changed)
        except DBAPIError as e:
            msg = f"the records cannot be {'written' if writes else 'read'}: {e.orig}"
            raise StoreError(msg, e) from e
        except SQLAlchemyError as e:
            msg = f"the records cannot be {'written' if writes else 'read'}: {e}"
            raise StoreError(msg, e) from e

    def close(self) -> None:
        """Close what is open; whoever uses it again opens it again."""
        self.engine.dispose()


def sqlite_path(url: str | URL) -> Path | None:
    """Return the file of an SQLite database; None if it is another, or has none.

    Raises:
        StoreError: this is no URL of a database.
    """
    found = _checked(url)
    if found.get_backend_name() != "sqlite" or not found.database or found.database == ":memory:":
        return None
    return Path(found.database)


def _checked(url: str | URL) -> URL:
    """A URL of a database that this package knows."""
    try:
        found = make_url(url)
    except SQLAlchemyError as e:
        # which may hold a password
        msg = "this is no URL of a database; one is postgresql+psycopg://server/name or sqlite:////a/file"
        raise StoreError(msg, e) from e
    if found.get_backend_name() not in {"sqlite", "postgresql"}:
        msg = f"records are kept in SQLite or PostgreSQL, and not in {found.get_backend_name()}"
        raise StoreError(msg)
    # the driver that this package brings; SQLAlchemy would take another
    is_open = found.drivername == "postgresql"
    return found.set(drivername="postgresql+psycopg") if is_open else found


def _set_up_sqlite(engine: Engine, journal_mode: str) -> None:
    @event.listens_for(engine, "connect")
    def set_up(connection: Any, _: object) -> None:  # noqa: ANN401  of whichever driver
        # Else the driver begins transactions by itself, and late.
        connection.isolation_level = None
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout = {_PATIENCE_SECONDS * 1000}")
        cursor.execute(f"PRAGMA journal_mode = {journal_mode}")
        cursor.execute("PRAGMA synchronous = FULL")
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.close()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # A transaction that reads first and then wants to write could not wait for another.
        is_writing = connection.get_execution_options().get("jpsi_writes", True)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if is_writing else "BEGIN")
