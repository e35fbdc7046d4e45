"""Opens records: makes the tables where there are none, and brings those of an older version up to date."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, inspect, text

from ..errors import StoreError
from .database import Database
from .schema import HEAD, METADATA


def open_database(url: str | URL) -> Database:
    """The records at a URL of SQLAlchemy.

    Raises:
        StoreError: they cannot be reached, or a newer version of this package has made them.
    """
    database = Database(url)
    try:
        _check_version(database)
    except BaseException:
        database.close()
        raise
    return database


def _check_version(database: Database) -> None:
    with database.reading() as connection:
        version = _version(connection)
    if version != HEAD:
        with database.writing() as connection:
            _bring_up_to_date(connection)


def _version(connection: Connection) -> str | None:
    """How far the migrations of these records have come; None if they have no tables."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def _bring_up_to_date(connection: Connection, wanted: str = "head") -> None:
    # Rarely needed, and slow to import.
    from alembic.config import Config  # noqa: PLC0415
    from alembic.runtime.environment import EnvironmentContext  # noqa: PLC0415
    from alembic.script import ScriptDirectory  # noqa: PLC0415
    from alembic.util import CommandError  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")).replace("%", "%%"))
    steps = ScriptDirectory.from_config(config)

    def upgrade(version: Any, _: object) -> Any:  # noqa: ANN401  Alembic's
        # As its documentation has it for programs that bring their own connection.
        return steps._upgrade_revs(wanted, version)  # noqa: SLF001

    try:
        with EnvironmentContext(config, steps, fn=upgrade) as environment:
            # SQLite changes a table by making it anew.
            environment.configure(connection=connection, target_metadata=METADATA, render_as_batch=True)
            environment.run_migrations()
    except CommandError as e:
        msg = f"these records are of another version of jpsi-records: {e}"
        raise StoreError(msg, e) from e
