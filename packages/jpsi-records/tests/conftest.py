"""Records of each test, on SQLite and on PostgreSQL."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text

from fake_dispatcher import Client, Clock
from fake_engines import FAKE_ENGINE, InstallEngine, path_without_engines
from jpsi_records.records.records import Records
from jpsi_records.store.database_setup import open_database

#: The URL of a server on which databases can be created, as ci/postgres/up prints it.
SERVER = "JPSI_CI_POSTGRES"


@pytest.fixture(autouse=True)
def state_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the user's jobs and configuration from each test."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path / "site-config"))
    monkeypatch.delenv("JPSI_CONFIG", raising=False)
    monkeypatch.delenv("JPSI_PLUGIN_PATH", raising=False)


@pytest.fixture
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> InstallEngine:
    """Return a function that puts fake engines on a PATH without real ones."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("STAND_IN_ROOT", str(tmp_path / "inside"))
    monkeypatch.setenv("PATH", path_without_engines(os.environ["PATH"], folder))

    def on_path_(name: str) -> Path:
        (folder / name).write_text(FAKE_ENGINE)
        (folder / name).chmod(0o755)
        return folder

    return on_path_


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Yield the URL of a new database."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'records.sqlite'}"
        return
    if SERVER not in os.environ:
        pytest.skip(f"{SERVER} names no server; ci/postgres/up starts one")
    server = create_engine(os.environ[SERVER], isolation_level="AUTOCOMMIT")
    name = f"test_{os.urandom(6).hex()}"
    with server.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    yield make_url(os.environ[SERVER]).set(database=name).render_as_string(hide_password=False)
    with server.connect() as connection:
        connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
    server.dispose()


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a database of SQLite with all tables: to make them takes longer than most tests."""
    file = tmp_path_factory.mktemp("empty") / "records.sqlite"
    open_database(f"sqlite:///{file}").close()
    return file


@pytest.fixture
def client(url: str, tmp_path: Path, clock: Clock, empty_database: Path) -> Iterator[Client]:
    """Yield a function that opens the records as a user; each call opens them anew."""
    opened: list[Records] = []
    file = Path(make_url(url).database or "") if url.startswith("sqlite:") else None

    def open_(user: str) -> Records:
        if file and not file.exists():
            shutil.copy(empty_database, file)
        opened.append(Records(tmp_path / "records", url=url, user=user, now=clock))
        return opened[-1]

    yield open_
    for it in opened:
        it.close()


@pytest.fixture
def role(url: str, early_role: Client) -> Client:
    """Return a function that opens the records as a user of PostgreSQL who does not own the tables."""
    open_database(url).close()
    return early_role


@pytest.fixture
def early_role(url: str, tmp_path: Path, clock: Clock) -> Iterator[Client]:
    """Yield a function like `role`, before the tables are created."""
    server = create_engine(url, isolation_level="AUTOCOMMIT")
    opened: dict[str, Records] = {}

    def open_(name: str) -> Records:
        user = f"{name}_{make_url(url).database}"
        if user not in opened:
            with server.connect() as connection:
                connection.execute(text(f"CREATE ROLE {user} LOGIN"))
            as_user = make_url(url).set(username=user).render_as_string(hide_password=False)
            opened[user] = Records(tmp_path / "records", url=as_user, now=clock)
        return opened[user]

    yield open_
    for user, it in opened.items():
        it.close()
        with server.connect() as connection:
            connection.execute(text(f"DROP ROLE {user}"))
    server.dispose()


@pytest.fixture
def records(client: Client) -> Records:
    return client("ca")
