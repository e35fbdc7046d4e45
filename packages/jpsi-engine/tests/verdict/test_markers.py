"""Markers: facts in the names of empty files."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jpsi_engine.verdict.markers import Marker, parse, scan

ids = st.from_regex(r"[a-z0-9-]{1,8}", fullmatch=True)
details = st.from_regex(r"[A-Za-z_]{1,8}", fullmatch=True)


def touch(directory: Path, *names: str) -> None:
    for name in names:
        (directory / name).touch()


def names(markers: list[Marker]) -> list[str]:
    return sorted(marker.name for marker in markers)


@given(ids, st.integers(1, 99), details, st.integers(0, 255))
def test_exit_marker_has_phase_and_code(job_id: str, run: int, phase: str, code: int) -> None:
    name = f"{job_id}.{run}.exit.{phase}.{code}"

    assert parse(name, 5) == Marker(job_id, run, 0, "exit", phase, code, 5, name)


@given(ids, st.integers(1, 99), st.sampled_from(["active", "signalled"]))
def test_other_markers_have_only_a_kind(job_id: str, attempt: int, kind: str) -> None:
    name = f"{job_id}.{attempt}.{kind}"

    assert parse(name, 5) == Marker(job_id, attempt, 0, kind, "", None, 5, name)


@given(ids, st.integers(1, 99), st.integers(1, 99))
def test_marker_of_a_restart_has_its_number(job_id: str, attempt: int, restart: int) -> None:
    name = f"{job_id}.{attempt}.{restart}.exit.run.7"

    assert parse(name, 5) == Marker(job_id, attempt, restart, "exit", "run", 7, 5, name)


@pytest.mark.parametrize(
    "name",
    [
        *("", ".", "a1", "a1.1", "a1.1.exit", "a1.1.exit.run", "a1.1.exit.run.", "a1.1.exit.run.x"),
        *("a1.1.exit.run.-1", "a1.1.exit.run.7.8", "a1..exit.run.7", "a1.x.exit.run.7", "a1.²1.exit.run.7"),
        *("a1.\u0661.exit.run.7", "a1.1.exit.run.\u0667", "a1.1.left.run.7", "a1..signalled"),
        *("a1.1.signalled.TERM", "a1.x.signalled", "a1.signalled"),
        *("intent.1.json", "run.1", "claim.1", "stop.1.json", "final.1.json", "phase.1", "stdout", "stderr"),
        *("intent.1.json.123.456", "final.1.json.123.456", "stop.1.json.123.456"),
    ],
)
def test_other_files_of_the_spool_are_no_markers(name: str) -> None:
    assert parse(name, 0) is None


@given(st.text())
def test_no_name_makes_parsing_raise(name: str) -> None:
    marker = parse(name, 7)

    assert marker is None or (marker.name, marker.time_ns) == (name, 7)


def test_a_marker_has_the_time_of_its_file(tmp_path: Path) -> None:
    touch(tmp_path, "a1.1.exit.run.0")
    os.utime(tmp_path / "a1.1.exit.run.0", ns=(0, 1_767_225_600_500_000_000))

    (marker,) = scan(str(tmp_path))

    assert marker.time_ns == 1_767_225_600_500_000_000
    assert marker.time == datetime(2026, 1, 1, 0, 0, 0, 500_000, tzinfo=UTC)


def test_scan_finds_every_marker_and_nothing_else(tmp_path: Path) -> None:
    touch(tmp_path, "a1.1.exit.run.0", "a2.3.exit.stdin.125", "stdout", "claim.1")
    (tmp_path / "folder").mkdir()

    assert names(scan(str(tmp_path))) == ["a1.1.exit.run.0", "a2.3.exit.stdin.125"]


def test_scan_finds_only_the_requested_jobs(tmp_path: Path) -> None:
    """An id that is a prefix of another does not match it."""
    touch(tmp_path, "a1.1.exit.run.0", "a11.1.exit.run.0", "b.1.exit.run.0")

    assert names(scan(str(tmp_path), {"a1", "c"})) == ["a1.1.exit.run.0"]
    assert scan(str(tmp_path), set()) == []


def test_marker_that_is_moved_during_a_scan_is_left_out(tmp_path: Path) -> None:
    """Another process has moved it to the job's folder."""
    touch(tmp_path, "a1.1.exit.run.0", "a2.1.exit.run.0")

    class Wanted(frozenset[str]):
        def __contains__(self, job_id: object) -> bool:
            if job_id == "a1":
                (tmp_path / "a1.1.exit.run.0").unlink()
            return True

    assert names(scan(str(tmp_path), Wanted())) == ["a2.1.exit.run.0"]


def test_missing_directory_raises(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        scan(str(tmp_path / "missing"))
