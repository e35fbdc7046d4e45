from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import text

from fake_dispatcher import spec
from jpsi_records.errors import StoreError
from jpsi_records.records.records import Records
from jpsi_records.store import database as databases
from jpsi_records.store.database import Database
from jpsi_records.store.database_setup import _migrate
from jpsi_records.store.database_setup import open_database as opened
from jpsi_records.store.schema import HEAD, METADATA
from jpsi_testing.threads import in_this_thread

MADE = "2026-01-01T00:00:00.000000+00:00"


@pytest.fixture
def open_database() -> Iterator[Callable[[str], Database]]:
    """Yield a function that opens databases; close them after the test."""
    found: list[Database] = []

    def open_(url: str) -> Database:
        found.append(opened(url))
        return found[-1]

    yield open_
    for it in found:
        it.close()


def test_the_migrations_create_the_tables_of_this_version(
    url: str, open_database: Callable[[str], Database]
) -> None:
    database = open_database(url)

    with database.reading() as tx:
        context = MigrationContext.configure(tx.connection, opts={"compare_type": True})
        found = compare_metadata(context, METADATA)

    assert found == []


def test_records_of_the_first_version_are_migrated(url: str, tmp_path: Path) -> None:
    """Every later version reads the records of a release."""
    database = Database(url)
    with database.writing() as tx:
        _migrate(tx.connection, "0001")
        for statement in (Path(__file__).with_name("first_version.sql")).read_text().split(";\n"):
            tx.connection.exec_driver_sql(statement)
    database.close()

    with Records(tmp_path / "records", url=url, user="ca") as records:
        (request,) = records.requests()
        execution = records.execution(request.execution or "")

        assert (request.priority, request.labels, request.spec) == (2, {"a": "b"}, spec("sort", "-u"))
        assert (execution.exit_code, execution.finished_at) == (0, datetime(2026, 1, 1, 0, 0, 2, tzinfo=UTC))
        assert (execution.modified_at, execution.modified_by) == (execution.finished_at, "")
        assert [it.job for it in records.attempts(execution.id)] == ["j1"]
        assert [it.kind for it in records.events()] == ["created"]
        assert [(it.priority, it.state.value) for it in records.usage()] == [(2, "queued")]
        assert records.find(spec("sort", "-u")) == execution
        with records.database.reading() as tx:
            assert tx.execute(text("SELECT version_num FROM alembic_version")).scalar() == HEAD


def test_requests_that_were_cancelled_before_this_version_are_cancelled(url: str, tmp_path: Path) -> None:
    """One that had priority zero from the start was not cancelled, and neither one that is wanted again."""
    requests = {"cancelled": 0, "held": 0, "wanted": 1}
    database = Database(url)
    with database.writing() as tx:
        _migrate(tx.connection, "0004")
        for name, priority in requests.items():
            tx.connection.exec_driver_sql(
                "INSERT INTO request (id, owner, state, request_spec, priority, name, description, labels, "
                f"created_at, modified_at, modified_by) VALUES ('{name}', 'ca', 'committed', "
                f"'{{\"command\": [\"a\"]}}', {priority}, '', '', '{{}}', '{MADE}', '{MADE}', 'ca')"
            )
        for name in ("cancelled", "wanted"):
            tx.connection.exec_driver_sql(
                "INSERT INTO event (time, kind, request, data) "
                f"VALUES ('{MADE}', 'priority', '{name}', '{{}}')"
            )
    database.close()

    with Records(tmp_path / "records", url=url, user="ca") as records:
        found = {it.id: it.state.value for it in records.requests()}

    assert found == {"cancelled": "cancelled", "held": "committed", "wanted": "committed"}


def test_records_of_a_newer_version_are_not_changed(
    url: str, open_database: Callable[[str], Database]
) -> None:
    with open_database(url).writing() as tx:
        tx.execute(text("UPDATE alembic_version SET version_num = '9999'"))

    with pytest.raises(StoreError, match="another version"):
        open_database(url)


def test_an_unreachable_database_is_reported(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be read"):
        opened(f"sqlite:///{tmp_path / 'missing' / 'records.sqlite'}")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("no url", "no URL of a database"),
        ("mysql://server/records", "and not in mysql"),
        ("postgresql+pg8000://server/records", "install 'jpsi-records"),
    ],
)
def test_an_unusable_database_is_reported(url: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=message):
        opened(url)


def test_the_driver_need_not_be_named() -> None:
    database = Database("postgresql://server/records")

    assert database.engine.dialect.driver == "psycopg"


def test_a_directory_that_cannot_be_created_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(StoreError, match="cannot be created: Not a directory"):
        Records(tmp_path / "file" / "records")


@pytest.mark.parametrize(
    ("is_on_network", "mode"), [(False, "wal"), (True, "delete")], ids=["here", "network"]
)
def test_the_journal_mode_suits_the_file_system(
    is_on_network: bool, mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(databases, "is_on_network", lambda path: is_on_network)
    database = Database(f"sqlite:///{tmp_path / 'records.sqlite'}")

    with database.reading() as tx:
        found = tx.connection.exec_driver_sql("PRAGMA journal_mode").scalar()
    database.close()

    assert found == mode


def test_processes_that_create_a_database_together_wait_for_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "records.sqlite"
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    waited: list[float] = []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        other.commit()

    monkeypatch.setattr(databases.time, "sleep", in_this_thread(wait, time.sleep))
    database = Database(f"sqlite:///{path}")

    with database.reading() as tx:
        assert tx.connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
    database.close()
    other.close()

    assert len(waited) == 1


def test_a_database_in_memory_is_independent_of_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(databases, "is_on_network", lambda path: True)
    database = Database("sqlite:///:memory:")

    with database.writing() as tx:
        tx.execute(text("CREATE TABLE numbers (number INTEGER)"))
        is_locked_by_file = bool(list(tmp_path.iterdir()))
    with database.reading() as tx:
        found = tx.execute(text("SELECT count(*) FROM numbers")).scalar()
    database.close()

    assert found == 0
    assert not is_locked_by_file


def test_a_failed_migration_is_rolled_back(url: str, open_database: Callable[[str], Database]) -> None:
    database = open_database(url)

    def fail() -> None:
        with database.writing() as tx:
            tx.execute(text("DELETE FROM alembic_version"))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    with database.reading() as tx:
        assert tx.execute(text("SELECT count(*) FROM alembic_version")).scalar() == 1
