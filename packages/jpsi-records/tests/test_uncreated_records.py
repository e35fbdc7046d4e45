"""Records that do not exist yet: the first writer creates them, readers do not."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from sqlalchemy import create_engine, inspect

from fake_dispatcher import Client, spec
from forked_jpsi import run_as_text
from jpsi_records.dispatch.dispatcher import Dispatcher
from jpsi_records.errors import NotFoundError, StateError, StoreError
from jpsi_records.records.records import Records


@pytest.mark.clause("records-preview")
@pytest.mark.parametrize("is_beside", [True, False])
def test_a_preview_creates_no_database(tmp_path: Path, is_beside: bool) -> None:
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
def test_a_preview_creates_no_tables(url: str, tmp_path: Path) -> None:
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
def test_a_reader_that_opened_before_the_tables_existed_cannot_dispatch(
    url: str, early_role: Client, client: Client
) -> None:
    reader = early_role("ca")
    assert reader.requests() == []
    with pytest.raises(StoreError, match="no tables yet, which the role that is to be the dispatcher makes"):
        reader.submit(spec("a"))

    client("server").submit(spec("a"))

    assert not reader.may_dispatch
    with pytest.raises(StateError, match="only the owner of the tables"):
        Dispatcher(reader)


def test_the_first_writer_creates_the_database_and_earlier_readers_use_it(tmp_path: Path) -> None:
    with Records(tmp_path / "records") as reader, Records(tmp_path / "records") as writer:
        assert reader.requests() == []

        request = writer.submit(spec("a"))

        assert reader.request(request.id) == request
        assert reader.cancel(request.id).priority == 0
        assert writer.request(request.id).priority == 0


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


def test_without_permission_to_create_only_a_preview_succeeds(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with Records(tmp_path / "open" / "records") as records:
        assert records.preview(spec("a")).runs
        with pytest.raises(StoreError, match="can be written by others"):
            records.submit(spec("a"))

    assert list((tmp_path / "open").iterdir()) == []


def test_the_command_creates_no_file(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("command: ['true']")

    done = run_as_text("request", "preview", "a.yaml", "--records", "records", cwd=tmp_path)

    assert "a new execution would run" in done.stdout
    assert not (tmp_path / "records").exists()
