"""The text is given to a real shell, as the other side would give it to one."""

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
    root = tmp_path / "it's far"
    for folder in ("jobs/a1", "arrays/b2"):
        (root / folder).mkdir(parents=True)
    return root


def _said(text: str) -> str:
    return subprocess.run(["sh"], input=text, capture_output=True, text=True, check=False).stdout


def _told(root: Path, *folders: str) -> RemoteFolders:
    told = parse_folders(_said(render_content(str(root), folders)))
    assert told is not None
    return told


def test_all_jobs_and_arrays_are_named(root: Path) -> None:
    assert parse_listing(_said(render_listing(str(root)))) == ["jobs/a1", "arrays/b2"]


def test_where_nothing_was_sent_yet_there_is_none(tmp_path: Path) -> None:
    assert parse_listing(_said(render_listing(str(tmp_path / "missing")))) == []
    assert _told(tmp_path / "missing", "jobs/a1").folders == []


def test_what_cannot_be_entered_is_not_taken_for_empty(tmp_path: Path) -> None:
    (tmp_path / "root").touch()

    assert parse_listing(_said(render_listing(str(tmp_path / "root")))) is None
    assert parse_folders(_said(render_content(str(tmp_path / "root"), ["jobs/a1"]))) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a directory to somebody else")
def test_what_belongs_to_somebody_else_is_not_entered(root: Path) -> None:
    os.chown(root, 1, 1)

    assert parse_listing(_said(render_listing(str(root)))) is None
    assert parse_folders(_said(render_content(str(root), ["jobs/a1"]))) is None


def test_what_is_in_folders_is_told(root: Path) -> None:
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

    told = _told(root, "jobs/a1", "jobs/missing", "arrays/b2")

    (job, array) = told.folders
    assert set(job.times) == {"intent.1.json", "claim.1", "array.2", "run.1", "a1.1.exit.run.0"}
    assert set(job.times.values()) == {5 * _SECOND}
    assert {name: text.strip() for name, text in job.texts.items()} == {
        "intent.1.json": '{"id": "a1"}',
        "claim.1": "17",
        "array.2": "b2 3",
    }
    assert array.name == "arrays/b2"
    assert array.texts["intent.json"].splitlines() == ['{"count": 1}', '{"id": "c3"}']
    assert told.clock_ns is not None


def test_of_an_array_that_is_known_only_what_may_be_new_is_told(root: Path) -> None:
    (root / "arrays/b2/intent.json").write_text("much")
    (root / "arrays/b2/claim").write_text("17")

    told = parse_folders(_said(render_content(str(root), ["arrays/b2"], is_mirrored=True)))

    assert told is not None
    (folder,) = told.folders
    assert folder.texts == {"claim": "17"}


def test_text_that_looks_like_something_else_is_text(root: Path) -> None:
    (root / "jobs/a1/intent.1.json").write_text("folder jobs/x\nmarker 5 x.1.active\nend\n\n{}\n")

    (job,) = _told(root, "jobs/a1").folders

    assert job.name == "jobs/a1"
    assert job.texts["intent.1.json"].rstrip("\n") == "folder jobs/x\nmarker 5 x.1.active\nend\n\n{}"
    assert set(job.times) == {"intent.1.json"}


def test_names_that_nobody_gives_are_left_out(root: Path) -> None:
    for name in ("two words", "it's", "-x", "line\nbreak"):
        (root / "jobs/a1" / name).touch()

    assert _told(root, "jobs/a1").folders == [RemoteFolder("jobs/a1", {}, {})]


@pytest.mark.parametrize("name", ["jobs/..", "jobs/../a1", "jobs/a1/..", "jobs/", "events/a1", "/jobs/a1"])
def test_no_name_that_is_told_leads_to_another_directory(name: str) -> None:
    assert parse_listing(f"{name}\nend\n") == []
    assert parse_folders(f"folder {name}\nend\n") == RemoteFolders([], None)


@pytest.mark.parametrize("name", ["..", "../x", "final.1.json", "get.1", "run.1", "intent.1.json/../x"])
def test_no_text_is_taken_that_was_not_asked_for(name: str) -> None:
    told = parse_folders(f"folder jobs/a1\ntext {name}\n {{}}\nmarker 5 {name}/x\nend\n")

    assert told == RemoteFolders([RemoteFolder("jobs/a1", {}, {})], None)


@pytest.mark.parametrize("length", range(0, 80, 7))
def test_an_answer_that_is_cut_short_tells_nothing(root: Path, length: int) -> None:
    (root / "jobs/a1/claim.1").write_text("17\n")
    said = _said(render_content(str(root), ["jobs/a1"]))
    assert length < len(said) - 2

    assert parse_folders(said[:length]) is None
    assert parse_listing("jobs/a1\njobs/") is None
    assert parse_listing("") is None


def test_folders_are_removed(root: Path) -> None:
    (root / "jobs/a1/claim.1").write_text("17\n")

    _said(render_removal(str(root), ["jobs/a1", "arrays/a1"]))

    assert parse_listing(_said(render_listing(str(root)))) == ["arrays/b2"]


def test_folders_of_jobs_whose_files_wait_to_be_got_stay(root: Path) -> None:
    (root / "jobs/c3").mkdir()
    (root / "staged/a1").mkdir(parents=True)

    _said(render_removal_unless_staged(str(root), ["a1", "b2", "c3"]))

    assert parse_listing(_said(render_listing(str(root)))) == ["jobs/a1"]


def test_what_comes_into_a_folder_as_it_is_removed_does_not_keep_it(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "rm"
    program.parent.mkdir()
    once = f'[ -e "$0.ran" ] || {{ : >"$0.ran"; : >"{root}/jobs/a1/a1.1.active"; exit 1; }}'
    program.write_text(f'#!/bin/sh\n{once}\nexec {shutil.which("rm")} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")

    _said(render_removal(str(root), ["jobs/a1"]))

    assert parse_listing(_said(render_listing(str(root)))) == ["arrays/b2"]
