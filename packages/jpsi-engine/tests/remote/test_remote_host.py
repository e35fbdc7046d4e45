"""What is mirrored here of where files are elsewhere: what another machine has done there is found."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from jpsi.contract.config import BatchConfig
from jpsi_engine.remote.remote_host import RemoteHost
from jpsi_engine.spool.spool import Spool, stop_file
from jpsi_engine.verdict.markers import parse
from jpsi_testing import RemoteTransport


@pytest.fixture
def side(tmp_path: Path) -> RemoteHost:
    side = RemoteHost(Spool(tmp_path / "mirror"), RemoteTransport(tmp_path / "far home"), BatchConfig())
    side.spool.open()
    return side


@pytest.fixture
def far(side: RemoteHost) -> Path:
    """The folder of a job over there."""
    folder = Path(side.layout().jobs) / "a1"
    folder.mkdir(parents=True)
    (folder / "intent.1.json").write_text('{"id": "a1", "attempt": 1}\n')
    (folder / "claim.1").write_text("17\n")
    return folder


def test_a_later_attempt_of_another_machine_is_taken_with_its_claim(side: RemoteHost, far: Path) -> None:
    side.import_other_jobs()
    (far / "intent.2.json").write_text('{"id": "a1", "attempt": 2}\n')
    (far / "claim.2").write_text("18\n")

    assert side.refresh(["jobs/a1"])

    intent, claim = side.spool.last_intent("a1"), side.spool.claim("a1", 2)
    assert intent is not None
    assert claim is not None
    assert (intent.attempt, intent.native_id, claim.text) == (2, None, "18")


def test_a_request_to_end_is_known_to_other_machines(side: RemoteHost, far: Path, tmp_path: Path) -> None:
    side.import_other_jobs()
    for job_id in ("a1", "without a folder"):
        Path(side.spool.folder(job_id)).mkdir(exist_ok=True)
        side.spool.stop(job_id, 1, {"why": "cancel", "time": "2026-01-01T00:00:00+00:00"})
    side.share_files([stop_file("a1", 1), stop_file("without a folder", 1)])

    other = RemoteHost(Spool(tmp_path / "other" / "mirror"), side._transport, BatchConfig())
    other.spool.open()
    other.import_other_jobs()

    assert other.spool.read_stop("a1", 1) == side.spool.read_stop("a1", 1)
    assert (far / "stop.1.json").stat().st_mode & 0o777 == 0o600
    assert [it.name for it in far.parent.iterdir()] == ["a1"]


def test_a_request_to_end_that_cannot_be_passed_on_is_made_all_the_same(side: RemoteHost) -> None:
    side.share_files([stop_file("a1", 1)])


def test_an_attempt_that_is_here_stays_as_it_is(side: RemoteHost, far: Path) -> None:
    """It knows its native id."""
    side.import_other_jobs()
    intent = Path(side.spool.folder("a1"), "intent.1.json")
    with intent.open("a") as file:
        file.write("\n17")
    before = intent.read_text()
    (far / "claim.1").write_text("18\n")

    assert side.refresh(["jobs/a1"])

    assert intent.read_text() == before
    assert side.spool.claim("a1", 1) is not None


def test_what_a_client_that_was_killed_has_left_half_found_is_removed_later(
    side: RemoteHost, far: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Path(side.spool.root)
    (root / "draft.folder").mkdir()
    (root / "draft.folder" / "intent.1.json").touch()
    (root / "draft.marker").touch()

    side.import_other_jobs()
    assert sorted(it.name for it in root.glob("draft.*")) == ["draft.folder", "draft.marker"]
    monkeypatch.setattr("jpsi_engine.remote.folder_mirror._DRAFT_SECONDS", -1.0)
    side.import_other_jobs()

    assert not list(root.glob("draft.*"))
    assert side.spool.job_ids() == ["a1"]


def test_markers_in_the_folder_of_a_job_are_found_with_it_and_later(side: RemoteHost, far: Path) -> None:
    (far / "a1.1.active").touch()
    side.import_other_jobs()
    (far / "a1.1.exit.run.7").touch()

    assert side.refresh(["jobs/a1"])

    assert sorted(it.kind for it in side.spool.collect(["a1"])["a1"]) == ["active", "exit"]


@pytest.mark.parametrize(
    ("name", "expected"), [("a1.1.exit.launch.125", True), ("a1.1.exit.run.1", False), ("a1.1.active", False)]
)
def test_what_a_launcher_said_that_failed_is_here_when_that_is_told(
    side: RemoteHost, far: Path, name: str, expected: bool
) -> None:
    side.import_other_jobs()
    (far / "launch.1").write_text("mpirun: no such host\n")
    marker = parse(name, 0)
    assert marker is not None

    side.fetch_launcher_log(marker)

    words = Path(side.spool.folder("a1"), "launch.1")
    assert words.exists() is expected
    assert not expected or words.read_text() == "mpirun: no such host\n"


def test_that_a_launcher_failed_is_told_whether_its_words_are_to_be_had_or_not(
    side: RemoteHost, far: Path
) -> None:
    marker = parse("a1.1.exit.launch.125", 0)
    assert marker is not None

    side.import_other_jobs()
    side.fetch_launcher_log(marker)
    assert isinstance(side._transport, RemoteTransport)
    side._transport.down()
    side.fetch_launcher_log(marker)

    assert not Path(side.spool.folder("a1"), "launch.1").exists()


def test_what_cannot_be_removed_there_is_still_known_to_be_removed(
    side: RemoteHost, far: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as a folder with a file of somebody else: the job would be found again, as one from elsewhere."""
    (far.parent / "b2").mkdir()
    program = tmp_path / "bin" / "rm"
    program.parent.mkdir()
    others = f'for it do [ "$it" = jobs/a1 ] || {shutil.which("rm")} -rf "$it"; done'
    program.write_text(f"#!/bin/sh\n{others}\nexit 1\n")
    program.chmod(0o755)

    with monkeypatch.context() as patched:
        patched.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
        assert side.remove(["a1", "b2"]) == {"a1"}

    assert [it.name for it in far.parent.iterdir()] == ["a1"]
    assert not side.remove(["a1"])
    assert not list(far.parent.iterdir())


def test_where_nothing_is_nothing_has_to_be_removed(side: RemoteHost) -> None:
    assert not side.remove(["a1"])
