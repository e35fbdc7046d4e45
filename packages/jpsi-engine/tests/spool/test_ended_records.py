"""Copies of the records of ended jobs: they never differ from what the files of the jobs say."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from jpsi import JobState, JobStatus
from jpsi_engine.spool import encode_status, ended_records, job_records
from jpsi_engine.spool.job_records import JobRecord, JobRecords

NATIVE_ID = "12.34.5774e025"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a spool in which every job that has ended is copied."""
    monkeypatch.setattr(job_records, "_MANY", 1)
    monkeypatch.setattr(ended_records, "_MIN_CHANGES", 0)
    # a test does not wait
    monkeypatch.setattr(ended_records, "_SETTLED_SECONDS", -3600.0)
    for name in ("jobs", "arrays", "events"):
        (tmp_path / name).mkdir()
    return tmp_path


def add_job(root: Path, job_id: str, *endings: str, attempt: int = 1, native_id: str = NATIVE_ID) -> Path:
    folder = root / "jobs" / job_id
    folder.mkdir(exist_ok=True)
    intent = {
        "id": job_id,
        "attempt": attempt,
        "executor": "local",
        "version": "1",
        "time": "2026-01-01T00:00:00+00:00",
        "directory": "/",
        "spec": {"executable": "/bin/true", "name": f"attempt {attempt}"},
    }
    (folder / f"intent.{attempt}.json").write_text(f"{json.dumps(intent)}\n{native_id}")
    if native_id:
        (folder / f"claim.{attempt}").write_text("12")
    for ending in endings:
        (folder / f"{job_id}.{attempt}.{ending}").touch()
    return folder


def read(root: Path) -> dict[str, JobRecord]:
    records = JobRecords(str(root), lambda *_: (), are_processes=True).read()
    return {record.job_id: record for record in records}


def copies(root: Path) -> dict[str, object]:
    content: dict[str, dict[str, object]] = json.loads((root / "ended.json").read_text())
    return content["jobs"]


def test_a_copy_says_what_the_files_say(root: Path) -> None:
    add_job(root, "one", "exit.run.0")
    folder = add_job(root, "two", "signalled", "exit.run.143", attempt=12)
    (folder / "stop.12.json").write_text(json.dumps({"why": "cancel", "time": "2026-01-01T00:00:00+00:00"}))
    final = encode_status(JobStatus(JobState.CANCELED))
    (add_job(root, "three") / "final.1.json").write_text(json.dumps(final))
    of_files = read(root)
    assert copies(root).keys() == {"one", "two", "three"}

    of_copies = read(root)

    assert of_copies == of_files


def test_files_of_a_copied_job_are_not_opened(root: Path) -> None:
    folder = add_job(root, "one", "exit.run.0")
    before = read(root)

    # the folder is the same and has no new file
    with (folder / "intent.1.json").open("r+") as file:
        file.write("damaged")

    assert read(root) == before


def test_a_new_file_counts(root: Path) -> None:
    folder = add_job(root, "one", "exit.run.0")
    read(root)

    add_job(root, "one", attempt=2, native_id="")

    assert read(root)["one"].attempt == 2
    assert "one" not in copies(root)
    (folder / "one.2.exit.run.3").touch()
    assert [marker.code for marker in read(root)["one"].markers] == [3]


def test_a_new_marker_counts(root: Path) -> None:
    add_job(root, "one", "exit.run.75")
    read(root)

    (root / "events" / "one.1.1.active").touch()

    assert sorted(marker.kind for marker in read(root)["one"].markers) == ["active", "exit"]


def test_a_folder_with_the_times_of_another_is_another(root: Path) -> None:
    folder = add_job(root, "one", "exit.run.0")
    read(root)
    times = folder.stat()

    folder.rename(root / "old")
    os.utime(add_job(root, "one", "exit.run.7"), ns=(times.st_atime_ns, times.st_mtime_ns))

    assert [marker.code for marker in read(root)["one"].markers] == [7]


def test_a_removed_job_is_gone(root: Path) -> None:
    folder = add_job(root, "one", "exit.run.0")
    add_job(root, "two", "exit.run.0")
    read(root)

    folder.rename(root / "trash")

    assert read(root).keys() == copies(root).keys() == {"two"}


@pytest.mark.parametrize("native_id", ["", NATIVE_ID])
def test_a_job_that_has_not_ended_is_not_copied(root: Path, native_id: str) -> None:
    add_job(root, "one", "exit.run.0")
    add_job(root, "two", *([] if native_id else ["exit.run.0"]), native_id=native_id)

    read(root)

    assert copies(root).keys() == {"one"}


def test_a_folder_that_may_change_again_at_the_same_time_is_not_copied(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_job(root, "one", "exit.run.0")
    monkeypatch.setattr(ended_records, "_SETTLED_SECONDS", 3600.0)

    read(root)

    assert not (root / "ended.json").exists()


DAMAGED = {
    "empty": "",
    "no JSON": "{",
    "no mapping": "[]",
    "another version": '{"version": 0, "jobs": {"one": []}}',
    "jobs of another kind": '{"version": 1, "jobs": []}',
    "entry of another kind": '{"version": 1, "jobs": {"one": 7}}',
    "empty entry": '{"version": 1, "jobs": {"one": []}}',
    "entry without markers": '{"version": 1, "jobs": {"one": {"0": 7}}}',
    "short entry": '{"version": 1, "jobs": {"one": [[]]}}',
}


@pytest.mark.parametrize("text", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file_is_as_none(root: Path, text: str) -> None:
    add_job(root, "one", "exit.run.0")
    before = read(root)

    (root / "ended.json").write_text(text)

    assert read(root) == before
    assert copies(root).keys() == {"one"}


def test_a_damaged_copy_is_as_none(root: Path) -> None:
    folder = add_job(root, "one", "exit.run.0")
    before, status = read(root), folder.stat()

    entry = [[status.st_ino, status.st_ctime_ns], [["not", "a", "marker"]], 1]
    (root / "ended.json").write_text(json.dumps({"version": 1, "jobs": {"one": entry}}))

    assert read(root) == before


def test_jobs_are_read_where_no_copy_can_be_written(root: Path) -> None:
    add_job(root, "one", "exit.run.0")
    (root / "ended.json").mkdir()

    assert read(root).keys() == {"one"}


def test_few_changes_do_not_rewrite_the_file(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_job(root, "one", "exit.run.0")
    read(root)
    monkeypatch.setattr(ended_records, "_MIN_CHANGES", 1)

    add_job(root, "two", "exit.run.0")

    assert read(root).keys() == {"one", "two"}
    assert copies(root).keys() == {"one"}
