"""Shell programs for folders of a remote spool, run by a real shell as on the remote host."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from jpsi_engine.remote.folders import (
    RemoteFolder,
    RemoteFolders,
    parse_folders,
    parse_listing,
    render_content,
    render_listing,
    render_removal,
    render_removal_unless_staged,
)

_SECOND = 1_000_000_000


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "it's remote"
    for folder in ("jobs/a1", "arrays/b2"):
        (root / folder).mkdir(parents=True)
    return root


def _run(text: str) -> str:
    return subprocess.run(["sh"], input=text, capture_output=True, text=True, check=False).stdout


def _read_folders(root: Path, *folders: str) -> RemoteFolders:
    found = parse_folders(_run(render_content(str(root), folders)))
    assert found is not None
    return found


def test_all_jobs_and_arrays_are_named(root: Path) -> None:
    assert parse_listing(_run(render_listing(str(root)))) == ["jobs/a1", "arrays/b2"]


def test_a_missing_root_has_no_folders(tmp_path: Path) -> None:
    assert parse_listing(_run(render_listing(str(tmp_path / "missing")))) == []
    assert _read_folders(tmp_path / "missing", "jobs/a1").folders == []


def test_an_inaccessible_root_does_not_count_as_empty(tmp_path: Path) -> None:
    (tmp_path / "root").touch()

    assert parse_listing(_run(render_listing(str(tmp_path / "root")))) is None
    assert parse_folders(_run(render_content(str(tmp_path / "root"), ["jobs/a1"]))) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a directory to another user")
def test_a_folder_of_another_user_is_not_entered(root: Path) -> None:
    os.chown(root, 1, 1)

    assert parse_listing(_run(render_listing(str(root)))) is None
    assert parse_folders(_run(render_content(str(root), ["jobs/a1"]))) is None


def test_the_content_of_folders_is_read(root: Path) -> None:
    for name, text in {
        "intent.1.json": '{"id": "a1"}',
        "claim.1": "17\n",
        "array.2": "b2 3\n",
        "run.1": "echo no\n",
        "a1.1.exit.run.0": "",
    }.items():
        (root / "jobs/a1" / name).write_text(text)
        os.utime(root / "jobs/a1" / name, ns=(5 * _SECOND, 5 * _SECOND))
    (root / "arrays/b2/intent.json").write_text('{"count": 1}\n{"id": "c3"}')

    found = _read_folders(root, "jobs/a1", "jobs/missing", "arrays/b2")

    (job, array) = found.folders
    assert set(job.times) == {"intent.1.json", "claim.1", "array.2", "run.1", "a1.1.exit.run.0"}
    assert set(job.times.values()) == {5 * _SECOND}
    assert {name: text.strip() for name, text in job.texts.items()} == {
        "intent.1.json": '{"id": "a1"}',
        "claim.1": "17",
        "array.2": "b2 3",
    }
    assert array.name == "arrays/b2"
    assert array.texts["intent.json"].splitlines() == ['{"count": 1}', '{"id": "c3"}']
    assert found.clock_ns is not None


def test_only_new_files_of_a_mirrored_array_are_read(root: Path) -> None:
    (root / "arrays/b2/intent.json").write_text("much")
    (root / "arrays/b2/claim").write_text("17")

    found = parse_folders(_run(render_content(str(root), ["arrays/b2"], is_mirrored=True)))

    assert found is not None
    (folder,) = found.folders
    assert folder.texts == {"claim": "17"}


def test_text_that_looks_like_a_header_is_text(root: Path) -> None:
    (root / "jobs/a1/intent.1.json").write_text("folder jobs/x\nmarker 5 x.1.active\nend\n\n{}\n")

    (job,) = _read_folders(root, "jobs/a1").folders

    assert job.name == "jobs/a1"
    assert job.texts["intent.1.json"].rstrip("\n") == "folder jobs/x\nmarker 5 x.1.active\nend\n\n{}"
    assert set(job.times) == {"intent.1.json"}


def test_names_that_jpsi_never_gives_are_left_out(root: Path) -> None:
    for name in ("two words", "it's", "-x", "line\nbreak"):
        (root / "jobs/a1" / name).touch()

    assert _read_folders(root, "jobs/a1").folders == [RemoteFolder("jobs/a1", {}, {})]


@pytest.mark.parametrize("name", ["jobs/..", "jobs/../a1", "jobs/a1/..", "jobs/", "events/a1", "/jobs/a1"])
def test_no_name_in_the_output_leads_to_another_directory(name: str) -> None:
    assert parse_listing(f"{name}\nend\n") == []
    assert parse_folders(f"folder {name}\nend\n") == RemoteFolders([], None)


@pytest.mark.parametrize("name", ["..", "../x", "final.1.json", "get.1", "run.1", "intent.1.json/../x"])
def test_unrequested_text_is_ignored(name: str) -> None:
    found = parse_folders(f"folder jobs/a1\ntext {name}\n {{}}\nmarker 5 {name}/x\nend\n")

    assert found == RemoteFolders([RemoteFolder("jobs/a1", {}, {})], None)


@pytest.mark.parametrize("length", range(0, 80, 7))
def test_truncated_output_is_ignored(root: Path, length: int) -> None:
    (root / "jobs/a1/claim.1").write_text("17\n")
    output = _run(render_content(str(root), ["jobs/a1"]))
    assert length < len(output) - 2

    assert parse_folders(output[:length]) is None
    assert parse_listing("jobs/a1\njobs/") is None
    assert parse_listing("") is None


def test_folders_are_removed(root: Path) -> None:
    (root / "jobs/a1/claim.1").write_text("17\n")

    _run(render_removal(str(root), ["jobs/a1", "arrays/a1"]))

    assert parse_listing(_run(render_listing(str(root)))) == ["arrays/b2"]


def test_folders_of_jobs_with_pending_stage_out_stay(root: Path) -> None:
    (root / "jobs/c3").mkdir()
    (root / "staged/a1").mkdir(parents=True)

    _run(render_removal_unless_staged(str(root), ["a1", "b2", "c3"]))

    assert parse_listing(_run(render_listing(str(root)))) == ["jobs/a1"]


def test_a_file_made_during_the_removal_of_its_folder_does_not_keep_it(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "rm"
    program.parent.mkdir()
    once = f'[ -e "$0.ran" ] || {{ : >"$0.ran"; : >"{root}/jobs/a1/a1.1.active"; exit 1; }}'
    program.write_text(f'#!/bin/sh\n{once}\nexec {shutil.which("rm")} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")

    _run(render_removal(str(root), ["jobs/a1"]))

    assert parse_listing(_run(render_listing(str(root)))) == ["arrays/b2"]
