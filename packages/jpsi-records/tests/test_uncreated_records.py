"""Records that are not there yet are made by whoever writes first, and not by who looks."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from sqlalchemy import create_engine, inspect

from fake_dispatcher import Client, spec
from jpsi_records.dispatch.dispatcher import Dispatcher
from jpsi_records.errors import NotFoundError, StateError, StoreError
from jpsi_records.records.records import Records


@pytest.mark.clause("records-preview")
@pytest.mark.parametrize("is_beside", [True, False])
def test_a_preview_makes_no_database(tmp_path: Path, is_beside: bool) -> None:
    url = None if is_beside else f"sqlite:///{tmp_path}/other.sqlite"
    with Records(tmp_path / "records", url=url) as records:
        assert records.preview(spec("a")).runs
        assert records.find(spec("a")) is None
        assert (records.requests(), records.events(), records.usage()) == ([], [], [])
        assert records.may_dispatch
        with pytest.raises(NotFoundError):
            records.request("a")

    assert list(tmp_path.rglob("*.sqlite*")) == []
    assert not (tmp_path / "records").exists()


@pytest.mark.clause("records-preview")
@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_a_preview_makes_no_tables(url: str, tmp_path: Path) -> None:
    server = create_engine(url)
    with Records(tmp_path / "records", url=url) as records:
        assert records.preview(spec("a")).runs
        assert records.find(spec("a")) is None
        assert (records.requests(), records.events(), records.usage()) == ([], [], [])
        assert records.may_dispatch
        with server.connect() as connection:
            assert inspect(connection).get_table_names() == []
        assert not (tmp_path / "records").exists()

        request = records.submit(spec("a"))

        assert records.requests() == [request]
        assert (tmp_path / "records").stat().st_mode & 0o777 == 0o700
    server.dispose()


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_who_has_looked_before_the_tables_were_made_is_no_dispatcher_of_them(
    url: str, early_role: Client, client: Client
) -> None:
    looking = early_role("ca")
    assert looking.requests() == []
    with pytest.raises(StoreError, match="no tables yet, which the role that is to be the dispatcher makes"):
        looking.submit(spec("a"))

    client("server").submit(spec("a"))

    assert not looking.may_dispatch
    with pytest.raises(StateError, match="only the owner of the tables"):
        Dispatcher(looking)


def test_whoever_writes_first_makes_it_and_who_has_looked_before_sees_that(tmp_path: Path) -> None:
    with Records(tmp_path / "records") as looking, Records(tmp_path / "records") as writing:
        assert looking.requests() == []

        request = writing.submit(spec("a"))

        assert looking.request(request.id) == request
        assert looking.cancel(request.id).priority == 0
        assert writing.request(request.id).priority == 0


def test_reading_creates_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()

    with Records(tmp_path / "records") as records:
        records.draft(spec("a"))
        assert list((tmp_path / "tmp").iterdir()) == []


def test_the_directory_is_always_private(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("1")
    with Records(tmp_path / "records") as records:
        records.put(tmp_path / "in")

    assert (tmp_path / "records").stat().st_mode & 0o777 == 0o700


def test_where_nothing_can_be_made_a_preview_does_and_a_request_is_refused(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with Records(tmp_path / "open" / "records") as records:
        assert records.preview(spec("a")).runs
        with pytest.raises(StoreError, match="can be written by others"):
            records.submit(spec("a"))

    assert list((tmp_path / "open").iterdir()) == []


def test_the_command_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("command: ['true']")
    command = [sys.executable, "-m", "jpsi_cli", "request", "preview", "a.yaml", "--records", "records"]

    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path, timeout=300)

    assert "a new execution would run" in done.stdout
    assert not (tmp_path / "records").exists()
