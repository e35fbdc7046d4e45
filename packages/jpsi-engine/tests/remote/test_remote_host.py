"""The mirror of a remote host: it has the changes that clients on other hosts made there."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from jpsi.contract.config import BatchConfig
from jpsi_engine.remote.remote_host import RemoteHost
from jpsi_engine.spool.spool import Spool, stop_file
from jpsi_engine.verdict import CANCEL, Stop
from jpsi_engine.verdict.markers import parse
from jpsi_testing import RemoteTransport


@pytest.fixture
def host(tmp_path: Path) -> RemoteHost:
    host = RemoteHost(Spool(tmp_path / "mirror"), RemoteTransport(tmp_path / "remote home"), BatchConfig())
    host.spool.open()
    return host


@pytest.fixture
def remote_folder(host: RemoteHost) -> Path:
    """Return the remote folder of a job."""
    folder = Path(host.layout().jobs) / "a1"
    folder.mkdir(parents=True)
    (folder / "intent.1.json").write_text('{"id": "a1", "attempt": 1}\n')
    (folder / "claim.1").write_text("17\n")
    return folder


def test_a_later_attempt_of_another_host_is_mirrored_with_its_claim(
    host: RemoteHost, remote_folder: Path
) -> None:
    host.import_other_jobs()
    (remote_folder / "intent.2.json").write_text('{"id": "a1", "attempt": 2}\n')
    (remote_folder / "claim.2").write_text("18\n")

    assert host.refresh(["jobs/a1"])

    intent, claim = host.spool.last_intent("a1"), host.spool.claim("a1", 2)
    assert intent is not None
    assert claim is not None
    assert (intent.attempt, intent.native_id, claim.text) == (2, None, "18")


def test_a_cancellation_is_known_on_other_hosts(
    host: RemoteHost, remote_folder: Path, tmp_path: Path
) -> None:
    host.import_other_jobs()
    for job_id in ("a1", "without a folder"):
        Path(host.spool.folder(job_id)).mkdir(exist_ok=True)
        host.spool.stop(job_id, 1, Stop(CANCEL, datetime(2026, 1, 1, tzinfo=UTC)))
    host.share_files([stop_file("a1", 1), stop_file("without a folder", 1)])

    other = RemoteHost(Spool(tmp_path / "other" / "mirror"), host._transport, BatchConfig())
    other.spool.open()
    other.import_other_jobs()

    assert other.spool.read_stop("a1", 1) == host.spool.read_stop("a1", 1)
    assert (remote_folder / "stop.1.json").stat().st_mode & 0o777 == 0o600
    assert [it.name for it in remote_folder.parent.iterdir()] == ["a1"]


def test_a_cancellation_that_cannot_be_shared_is_still_recorded(host: RemoteHost) -> None:
    host.share_files([stop_file("a1", 1)])


def test_a_mirrored_attempt_stays_as_it_is(host: RemoteHost, remote_folder: Path) -> None:
    """The local intent has the native id."""
    host.import_other_jobs()
    intent = Path(host.spool.folder("a1"), "intent.1.json")
    with intent.open("a") as file:
        file.write("\n17")
    before = intent.read_text()
    (remote_folder / "claim.1").write_text("18\n")

    assert host.refresh(["jobs/a1"])

    assert intent.read_text() == before
    assert host.spool.claim("a1", 1) is not None


def test_an_incomplete_mirror_of_a_killed_client_is_removed_later(
    host: RemoteHost, remote_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Path(host.spool.root)
    (root / "draft.folder").mkdir()
    (root / "draft.folder" / "intent.1.json").touch()
    (root / "draft.marker").touch()

    host.import_other_jobs()
    assert sorted(it.name for it in root.glob("draft.*")) == ["draft.folder", "draft.marker"]
    monkeypatch.setattr("jpsi_engine.remote.folder_mirror._DRAFT_SECONDS", -1.0)
    host.import_other_jobs()

    assert not list(root.glob("draft.*"))
    assert host.spool.job_ids() == ["a1"]


def test_markers_in_the_folder_of_a_job_are_found_with_it_and_later(
    host: RemoteHost, remote_folder: Path
) -> None:
    (remote_folder / "a1.1.active").touch()
    host.import_other_jobs()
    (remote_folder / "a1.1.exit.run.7").touch()

    assert host.refresh(["jobs/a1"])

    assert sorted(it.kind for it in host.spool.collect(["a1"])["a1"]) == ["active", "exit"]


@pytest.mark.parametrize(
    ("name", "expected"), [("a1.1.exit.launch.125", True), ("a1.1.exit.run.1", False), ("a1.1.active", False)]
)
def test_the_log_of_a_failed_launcher_is_mirrored_before_the_failure_is_published(
    host: RemoteHost, remote_folder: Path, name: str, expected: bool
) -> None:
    host.import_other_jobs()
    (remote_folder / "launch.1").write_text("mpirun: no such host\n")
    marker = parse(name, 0)
    assert marker is not None

    host.fetch_launcher_log(marker)

    words = Path(host.spool.folder("a1"), "launch.1")
    assert words.exists() is expected
    assert not expected or words.read_text() == "mpirun: no such host\n"


def test_the_failure_of_a_launcher_is_published_with_or_without_its_log(
    host: RemoteHost, remote_folder: Path
) -> None:
    marker = parse("a1.1.exit.launch.125", 0)
    assert marker is not None

    host.import_other_jobs()
    host.fetch_launcher_log(marker)
    assert isinstance(host._transport, RemoteTransport)
    host._transport.down()
    host.fetch_launcher_log(marker)

    assert not Path(host.spool.folder("a1"), "launch.1").exists()


def test_a_remote_folder_that_cannot_be_removed_is_not_imported_again(
    host: RemoteHost, remote_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of another user in the folder is one cause; a client would import the job again."""
    (remote_folder.parent / "b2").mkdir()
    program = tmp_path / "bin" / "rm"
    program.parent.mkdir()
    others = f'for it do [ "$it" = jobs/a1 ] || {shutil.which("rm")} -rf "$it"; done'
    program.write_text(f"#!/bin/sh\n{others}\nexit 1\n")
    program.chmod(0o755)

    with monkeypatch.context() as patched:
        patched.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
        assert host.remove(["a1", "b2"]) == {"a1"}

    assert [it.name for it in remote_folder.parent.iterdir()] == ["a1"]
    assert not host.remove(["a1"])
    assert not list(remote_folder.parent.iterdir())


def test_removal_of_missing_folders_succeeds(host: RemoteHost) -> None:
    assert not host.remove(["a1"])
