"""Opening of the records' database: missing tables are created, and older ones are migrated."""

from __future__ import annotations

import contextlib
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, inspect, text

from ..errors import StoreError
from .database import Database
from .schema import HEAD, METADATA


def open_database(url: str | URL) -> Database:
    """Open the database at a SQLAlchemy URL.

    Raises:
        StoreError: it cannot be reached, or was written by a newer version of this package.
    """
    database = Database(url)
    try:
        _check_version(database)
    except BaseException:
        database.close()
        raise
    return database


class UnmadeDatabase(Database):
    """A database that may not exist yet: it is empty to readers, and the first writer creates it.

    Args:
        url: the URL of the database.
        make: called before the tables are created, to create directories and files.
    """

    def __init__(self, url: str | URL, make: Callable[[], None]) -> None:
        super().__init__(url)
        self._make = make
        self._is_made = False
        self._lock = threading.RLock()
        self._empty: Database | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def check(self) -> None:
        """Raise `StoreError` if the database exists and is unreadable or of a newer version."""
        with self._lock:
            self._is_there()

    @property
    def restricted_to(self) -> str | None:
        """The user to whom PostgreSQL's row-level security restricts access; None without a restriction."""
        with self._lock:
            return super().restricted_to if self._is_there() else None

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """Begin a read transaction; before the first write, it reads a temporary empty database."""
        with self._lock:
            database = None if self._is_there() else self._nothing()
        with super().reading() if database is None else database.reading() as connection:
            yield connection

    def _is_there(self) -> bool:
        if not self._is_made and self._has_tables():
            _check_version(super())
            self._is_made = True
        return self._is_made

    def _has_tables(self) -> bool:
        if self.is_sqlite:
            return Path(self._url.database or "").exists()
        with super().reading() as connection:
            return _version(connection) is not None

    @contextlib.contextmanager
    def writing(self) -> Iterator[Connection]:
        """Begin the one write transaction; it is committed as a whole, or rolled back."""
        with self._lock:
            if not self._is_there():
                self._make()
                self._make_tables()
                self._is_made = True
        with super().writing() as connection:
            yield connection

    def _make_tables(self) -> None:
        try:
            _check_version(super())
        except StoreError as e:
            if self.is_sqlite:
                raise
            msg = (
                "this database has no tables yet, which the role that is to be the dispatcher makes, by "
                f"`jpsi request dispatch`; {self.engine.url.username or 'your role'} cannot: {e}"
            )
            raise StoreError(msg, e) from e

    def _nothing(self) -> Database:
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


def _check_version(database: Any) -> None:  # noqa: ANN401  a Database, or super() of one
    with database.reading() as connection:
        version = _version(connection)
    if version != HEAD:
        with database.writing() as connection:
            _bring_up_to_date(connection)


def _version(connection: Connection) -> str | None:
    """Return the revision of the last migration; None if there are no tables."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def _bring_up_to_date(connection: Connection, wanted: str = "head") -> None:
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
        msg = f"these records are of another version of jpsi-records: {e}"
        raise StoreError(msg, e) from e
