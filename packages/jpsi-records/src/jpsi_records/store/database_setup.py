"""Opens the records' database: creates missing tables, and migrates older ones.

`RecordsReader` uses it. If the database does not exist yet, readers see no records, and the first write
creates it.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, inspect, text

from ..errors import StoreError
from .database import Database, Transaction
from .schema import HEAD, METADATA


def open_database(url: str | URL, make: Callable[[], None] | None = None) -> Database:
    """Open the database at a SQLAlchemy URL.

    Args:
        url: the URL of the database.
        make: if given, the database need not exist yet: it is empty to readers, and the first writer calls
            this function to create directories and files, and then creates the tables.

    Raises:
        StoreError: it cannot be reached, or was written by a newer version of this package.
    """
    database = Database(url) if make is None else _UnmadeDatabase(url, make)
    try:
        if isinstance(database, _UnmadeDatabase):
            database.check()
        else:
            _check_version(database)
    except BaseException:
        database.close()
        raise
    return database


class _UnmadeDatabase(Database):
    """A database that may not exist yet; the first write creates it."""

    def __init__(self, url: str | URL, make: Callable[[], None]) -> None:
        super().__init__(url)
        self._make = make
        self._is_made = False
        self._lock = threading.RLock()
        self._empty: Database | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def check(self) -> bool:
        """Return True if the database exists.

        Raises:
            StoreError: it is unreadable, or of a newer version.
        """
        with self._lock:
            if not self._is_made and self._has_tables():
                _check_version(self)
                self._is_made = True
            return self._is_made

    def _has_tables(self) -> bool:
        if self.is_sqlite:
            return Path(self._url.database or "").exists()
        with self.transaction(writes=False) as tx:
            return _version(tx.connection) is not None

    @property
    def restricted_to(self) -> str | None:
        """The PostgreSQL role if row-level security shows it only its own records; None if it sees all."""
        return super().restricted_to if self.check() else None

    def reading(self) -> AbstractContextManager[Transaction]:
        """Begin a read transaction; before the first write, it reads a temporary empty database."""
        with self._lock:
            return super().reading() if self.check() else self._open_empty().reading()

    def writing(self) -> AbstractContextManager[Transaction]:
        """Begin a write transaction; the first creates the database if there is none."""
        with self._lock:
            if not self.check():
                self._make()
                self._make_tables()
                self._is_made = True
        return super().writing()

    def _make_tables(self) -> None:
        try:
            _check_version(self)
        except StoreError as e:
            if self.is_sqlite:
                raise
            msg = (
                "this database has no tables yet, which the role that is to be the dispatcher makes, by "
                f"`jpsi request dispatch`; {self.engine.url.username or 'your role'} cannot: {e}"
            )
            raise StoreError(msg, e) from e

    def _open_empty(self) -> Database:
        if self._empty is None:
            self._folder = tempfile.TemporaryDirectory(prefix="jpsi-records-")
            self._empty = open_database(f"sqlite:///{self._folder.name}/records.sqlite")
        return self._empty

    def close(self) -> None:
        """Close all connections, and remove the temporary empty database."""
        super().close()
        if self._empty is not None:
            self._empty.close()
            self._empty = None
        if self._folder is not None:
            self._folder.cleanup()


def _check_version(database: Database) -> None:
    with database.transaction(writes=False) as tx:
        version = _version(tx.connection)
    if version != HEAD:
        with database.transaction(writes=True) as tx:
            _migrate(tx.connection)


def _version(connection: Connection) -> str | None:
    """Return the revision of the last migration; None if there are no tables."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def _migrate(connection: Connection, wanted: str = "head") -> None:
    # Alembic is needed rarely and slow to import.
    from alembic.config import Config  # noqa: PLC0415
    from alembic.runtime.environment import EnvironmentContext  # noqa: PLC0415
    from alembic.script import ScriptDirectory  # noqa: PLC0415
    from alembic.util import CommandError  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")).replace("%", "%%"))
    steps = ScriptDirectory.from_config(config)

    def upgrade(version: Any, _: object) -> Any:  # noqa: ANN401  Alembic's
        # As Alembic's documentation shows for programs with a connection of their own.
        return steps._upgrade_revs(wanted, version)  # noqa: SLF001

    try:
        with EnvironmentContext(config, steps, fn=upgrade) as environment:
            # SQLite cannot alter most things in place: Alembic copies the table.
            environment.configure(connection=connection, target_metadata=METADATA, render_as_batch=True)
            environment.run_migrations()
    except CommandError as e:
        raise StoreError(f"these records are of another version of jpsi-records: {e}", e) from e
