"""Pruning removes old jobs completely, and no job that a client may still need."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from jpsi_engine.spool import encode_status
from jpsi_engine.spool import spool as module
from jpsi_engine.spool.arrays import ArrayMember
from jpsi_engine.spool.pruning import is_pruning_due, prune
from jpsi_engine.spool.spool import Spool
from jpsi_engine.verdict.marker_verdict import has_exit_marker, never_ran_status
from jpsi_engine.verdict.markers import Marker

NOW = 1_767_225_600.0
DAY = 86_400.0
EXIT = "a1.1.exit.run.0"
_FINAL = "final.1.json"


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    made = Spool(tmp_path / "spool")
    made.open()
    return made


def make(spool: Spool, job_id: str, attempt: int = 1) -> None:
    """Write an attempt, and release its lock."""
    os.close(spool.prepare(job_id, attempt, {"id": job_id}, "exit 7\n"))


def touch(directory: str, name: str, time: float = NOW) -> None:
    path = Path(directory, name)
    path.touch()
    os.utime(path, (time, time))


def marker_names(found: dict[str, list[Marker]]) -> dict[str, list[str]]:
    return {job_id: sorted(it.name for it in markers) for job_id, markers in found.items()}


def job(spool: Spool, job_id: str, age: float, *names: str) -> None:
    """Make a job whose folder last changed so long ago."""
    make(spool, job_id)
    for name in names:
        if name == _FINAL:
            spool.finish(job_id, 1, encode_status(never_ran_status()))
        touch(spool.folder(job_id), name.format(job_id))
    os.utime(spool.folder(job_id), (NOW - age, NOW - age))


def ended(spool: Spool, job_id: str, age: float) -> None:
    job(spool, job_id, age, "{}.1.exit.run.0")


def test_final_jobs_beyond_the_age_are_removed_and_others_kept(spool: Spool) -> None:
    ended(spool, "old", 31 * DAY)
    ended(spool, "young", 29 * DAY)
    job(spool, "never-started", 31 * DAY)
    job(spool, "running", 31 * DAY, "claim.1")
    job(spool, "stopped", 31 * DAY, "stop.1.json", "{}.1.exit.run.143")
    job(spool, "stopped-final", 31 * DAY, "stop.1.json", _FINAL)

    prune(spool, NOW, 30 * DAY, 1000, has_exit_marker)

    assert sorted(spool.job_ids()) == ["never-started", "running", "stopped", "young"]


def test_final_jobs_beyond_the_count_are_removed_oldest_first(spool: Spool) -> None:
    for n in range(6):
        ended(spool, f"j{n}", n)

    prune(spool, NOW, 30 * DAY, 4, has_exit_marker)

    assert sorted(spool.job_ids()) == ["j0", "j1", "j2", "j3"]


def test_jobs_that_are_not_final_are_kept_for_any_count(spool: Spool) -> None:
    for n in range(4):
        job(spool, f"j{n}", n, "claim.1")
    ended(spool, "ended", 9)

    prune(spool, NOW, 0, 0, has_exit_marker)

    assert sorted(spool.job_ids()) == ["j0", "j1", "j2", "j3"]


def test_unconsumed_markers_are_moved_to_the_folders_of_their_jobs(spool: Spool) -> None:
    """This holds for old ones only: a client may be about to collect others, and some jobs have no folder."""
    job(spool, "a1", 0)
    job(spool, "a2", 0)
    touch(spool.events, EXIT, NOW - DAY)
    touch(spool.events, "a2.1.exit.run.0", NOW)
    touch(spool.events, "gone.1.exit.run.0", NOW - DAY)

    prune(spool, NOW, 30 * DAY, 1000, has_exit_marker)

    assert [path.name for path in Path(spool.events).iterdir()] == ["a2.1.exit.run.0"]
    assert marker_names({"a1": spool.consumed("a1")}) == {"a1": [EXIT]}


def test_files_of_an_interrupted_submission_are_pruned_by_age(spool: Spool) -> None:
    for job_id, age in (("empty-old", 31 * DAY), ("empty-young", DAY)):
        Path(spool.folder(job_id)).mkdir()
        os.utime(spool.folder(job_id), (NOW - age, NOW - age))

    prune(spool, NOW, 30 * DAY, 1000, has_exit_marker)

    assert spool.job_ids() == ["empty-young"]


def test_an_incomplete_job_is_left_alone_for_any_limits(spool: Spool) -> None:
    """Its folder exists a moment before its intent."""
    Path(spool.folder("a1")).mkdir()
    now = Path(spool.folder("a1")).stat().st_mtime

    prune(spool, now + 0.01, 0, 0, has_exit_marker)

    assert spool.job_ids() == ["a1"]


def test_stray_files_do_not_disturb_pruning(spool: Spool) -> None:
    Path(spool.jobs, "stray").touch()
    touch(spool.events, "stray", NOW - DAY)
    ended(spool, "old", 31 * DAY)

    prune(spool, NOW, 30 * DAY, 1000, has_exit_marker)

    assert spool.job_ids() == ["stray"]


@pytest.mark.parametrize("removed", ["claim.1", "old.1.exit.run.0", "run.1", "intent.1.json"])
def test_a_job_whose_removal_was_interrupted_stays_removed(
    spool: Spool, monkeypatch: pytest.MonkeyPatch, removed: str
) -> None:
    """Files are removed in any order, and the program may end after any of them."""
    job(spool, "old", 31 * DAY, "claim.1", "{}.1.exit.run.0")

    def remove_one(path: str, **options: bool) -> None:
        Path(path, removed).unlink()

    monkeypatch.setattr(module, "shutil", SimpleNamespace(**{**vars(shutil), "rmtree": remove_one}))
    prune(spool, NOW, 30 * DAY, 1000, has_exit_marker)

    assert spool.last_intent("old") is None or spool.is_final("old", has_exit_marker)


def test_names_that_the_callback_returns_stay_in_the_trash(spool: Spool) -> None:
    for job_id in ("a", "b"):
        Path(spool.folder(job_id)).mkdir()
        spool.remove(job_id)

    prune(spool, NOW, 30 * DAY, 4, has_exit_marker, removed=lambda _: ["a"])

    assert spool.trash() == ["a"]


def test_marker_of_a_job_without_folder_is_removed_in_the_end(spool: Spool) -> None:
    touch(spool.events, EXIT)
    touch(spool.events, "a2.1.exit.run.0", NOW + DAY)

    prune(spool, NOW + DAY + 1, 30 * DAY, 1000, has_exit_marker)

    assert [path.name for path in Path(spool.events).iterdir()] == ["a2.1.exit.run.0"]


# ------------------------------------------------------------------------------------------- arrays


def array(
    spool: Spool, name: str = "x", attempt: int = 1, job_ids: tuple[str, ...] = ("job1", "job2", "job3")
) -> None:
    """Make an array with a native id."""
    elements = [{"id": job_id, "attempt": attempt, "directory": "/", "spec": {}} for job_id in job_ids]
    lock = spool.arrays.prepare(name, {"id": name, "spec": {}}, elements, "exit 1\n", ["a\n"])
    spool.started(lock, "17")
    os.close(lock)


def end(spool: Spool, *job_ids: str) -> None:
    """Make exit markers of jobs, and collect them."""
    for job_id in job_ids:
        spool.adopt(job_id, 1, ArrayMember("x", int(job_id[-1])))
        Path(spool.folder(job_id), f"{job_id}.1.exit.run.0").touch()


def left(spool: Spool, days: float, keep_count: int = 100) -> set[str]:
    """Prune after so many days, and return the remaining names."""
    for folder in (*Path(spool.jobs).iterdir(), *Path(spool.arrays.arrays).iterdir()):
        os.utime(folder, (NOW, NOW))
    prune(spool, NOW + days * DAY, 30 * DAY, keep_count, has_exit_marker)
    assert list(Path(spool.root, "trash").iterdir()) == []
    return {path.name for root in (spool.jobs, spool.arrays.arrays) for path in Path(root).iterdir()}


def test_an_array_and_its_elements_are_removed_together(spool: Spool) -> None:
    array(spool)
    end(spool, "job1", "job2", "job3")

    assert left(spool, 29) == {"x", "job1", "job2", "job3"}
    assert left(spool, 31) == set()


def test_elements_are_kept_while_one_of_them_is_not_final(spool: Spool) -> None:
    """Without its folder, a final element would look like a queued one."""
    array(spool)
    end(spool, "job1", "job2")

    assert left(spool, 31) == {"x", "job1", "job2"}


def test_arrays_beyond_the_count_are_removed(spool: Spool) -> None:
    array(spool)
    end(spool, "job1", "job2", "job3")
    for number in range(5):
        os.close(spool.prepare(f"new{number}", 1, {"id": "a"}, "exit 1\n"))
        Path(spool.folder(f"new{number}"), f"new{number}.1.exit.run.0").touch()
    for folder in ("job1", "job2", "job3"):
        os.utime(spool.folder(folder), (NOW, NOW))
    os.utime(spool.arrays.folder("x"), (NOW, NOW))
    for number in range(5):
        os.utime(spool.folder(f"new{number}"), (NOW + DAY, NOW + DAY))

    prune(spool, NOW + 2 * DAY, 30 * DAY, 5, has_exit_marker)

    assert os.listdir(spool.arrays.arrays) == []  # noqa: PTH208  names are enough
    assert len(os.listdir(spool.jobs)) == 5  # noqa: PTH208


def test_an_array_is_as_old_as_its_youngest_element(spool: Spool) -> None:
    array(spool)
    end(spool, "job1", "job2", "job3")
    os.utime(spool.arrays.folder("x"), (NOW, NOW))
    for number in (1, 2, 3):
        ended = NOW + number * DAY
        os.utime(spool.folder(f"job{number}"), (ended, ended))

    prune(spool, NOW + 32 * DAY, 30 * DAY, 100, has_exit_marker)
    assert sorted(path.name for path in Path(spool.jobs).iterdir()) == ["job1", "job2", "job3"]
    prune(spool, NOW + 10 * DAY, 30 * DAY, 2, has_exit_marker)
    assert sorted(path.name for path in Path(spool.jobs).iterdir()) == ["job1", "job2", "job3"]

    prune(spool, NOW + 33 * DAY, 30 * DAY, 100, has_exit_marker)
    assert list(Path(spool.jobs).iterdir()) == []


def test_an_array_that_was_never_submitted_is_pruned(spool: Spool) -> None:
    array(spool)
    spool.arrays.revoke("x")
    spool.arrays.give_up("x", "it did not answer")

    assert left(spool, 29) == {"x"}
    assert left(spool, 31) == set()


def test_an_incomplete_array_is_removed(spool: Spool) -> None:
    array(spool)
    Path(spool.arrays.folder("x"), "intent.json").write_text("{")

    assert left(spool, 31) == set()


def test_a_job_that_was_submitted_again_outlives_its_array(spool: Spool) -> None:
    array(spool)
    end(spool, "job1", "job2", "job3")
    os.close(spool.prepare("job2", 2, {"id": "job2"}, "exit 1\n"))

    assert left(spool, 31) == {"x", "job1", "job2", "job3"}
    Path(spool.folder("job2"), "job2.2.exit.run.0").touch()
    assert "x" not in left(spool, 31)


def test_a_job_of_a_later_array_is_kept_when_its_first_array_is_removed(spool: Spool) -> None:
    array(spool, "x")
    spool.arrays.revoke("x")
    spool.arrays.give_up("x", "it did not answer")
    array(spool, "y", 2)
    for number in (1, 2, 3):
        spool.link_retry(f"job{number}", 2, ArrayMember("y", number))

    assert left(spool, 31) == {"y", "job1", "job2", "job3"}


def test_an_end_in_a_later_array_is_kept_while_that_array_exists(spool: Spool) -> None:
    """Without their folders, its final elements would look like queued ones."""
    array(spool, "x", 1, ("job1",))
    spool.arrays.revoke("x")
    array(spool, "y", 2, ("job1", "job2"))
    spool.link_retry("job1", 2, ArrayMember("y", 1))
    Path(spool.folder("job1"), "job1.2.exit.run.0").touch()

    assert left(spool, 31) == {"y", "job1"}
    end(spool, "job2")
    assert left(spool, 31) == set()


def test_a_final_job_is_kept_while_the_array_of_its_unstarted_attempt_exists(spool: Spool) -> None:
    """Only its folder records that it was submitted again as a single job."""
    array(spool, "x")
    spool.arrays.revoke("x")
    make(spool, "job1", 2)
    Path(spool.folder("job1"), "job1.2.exit.run.0").touch()

    assert left(spool, 31) == {"x", "job1"}
    assert left(spool, 31, keep_count=0) == {"x", "job1"}
    spool.arrays.give_up("x", "it did not answer")
    assert left(spool, 31) == set()


def test_a_final_job_is_kept_while_the_array_of_an_earlier_attempt_exists(spool: Spool) -> None:
    """Its client was killed before the folder of the job named the array."""
    make(spool, "job1")
    array(spool, "x", 2)
    spool.arrays.revoke("x")
    make(spool, "job1", 3)
    Path(spool.folder("job1"), "job1.3.exit.run.0").touch()

    assert left(spool, 31) == {"x", "job1"}


def test_folders_that_an_unreadable_array_may_need_are_kept(spool: Spool) -> None:
    Path(spool.arrays.folder("odd"), "intent.json").mkdir(parents=True)
    make(spool, "job1", 2)
    Path(spool.folder("job1"), "job1.2.exit.run.0").touch()

    assert left(spool, 31) == {"odd", "job1"}


def test_a_stray_file_among_the_arrays_is_removed(spool: Spool) -> None:
    Path(spool.arrays.folder("stray")).touch()

    assert left(spool, 31) == set()


def test_an_element_with_an_incomplete_link_is_kept_with_its_array(spool: Spool) -> None:
    array(spool)
    Path(spool.folder("job1")).mkdir()
    Path(spool.folder("job1"), "array.1").touch()

    assert left(spool, 31) == {"x", "job1"}


def test_an_unreadable_array_does_not_keep_other_jobs(spool: Spool) -> None:
    Path(spool.arrays.folder("odd"), "intent.json").mkdir(parents=True)
    array(spool)
    end(spool, "job1", "job2", "job3")

    assert left(spool, 31) == {"odd"}


# --------------------------------------------------------------------------------------------- the clock


@pytest.mark.parametrize("jump", [3600, -3600], ids=["forward", "back"])
def test_a_clock_jump_of_an_hour_removes_no_marker_whose_folder_is_not_visible_yet(
    spool: Spool, jump: int
) -> None:
    touch(spool.events, EXIT, NOW)

    prune(spool, NOW + jump, 30 * DAY, 100, has_exit_marker)
    make(spool, "a1")

    assert marker_names(spool.collect(["a1"])) == {"a1": [EXIT]}


@pytest.mark.parametrize("jump", [3600, -3600], ids=["forward", "back"])
def test_a_clock_jump_of_an_hour_removes_no_incomplete_job(spool: Spool, jump: int) -> None:
    lock = spool.reserve("a1", 1)
    os.utime(spool.folder("a1"), (NOW, NOW))

    prune(spool, NOW + jump, 30 * DAY, 0, has_exit_marker)

    spool.write_attempt(lock, "a1", 1, {"id": "a1"}, "exit 7\n")
    os.close(lock)
    intent = spool.last_intent("a1")
    assert intent is not None
    assert intent.content == {"id": "a1"}


def test_a_spool_is_pruned_once_in_an_hour(tmp_path: Path) -> None:
    now = 1_000_000.0

    due = [is_pruning_due(str(tmp_path), now + seconds) for seconds in (0.0, 1.0, 3599.0, 3600.0, 3601.0)]

    assert due == [True, False, False, True, False]


def test_a_spool_that_was_pruned_in_the_future_is_due(tmp_path: Path) -> None:
    """The clock of another host was ahead."""
    is_pruning_due(str(tmp_path), 1_000_000.0)

    assert is_pruning_due(str(tmp_path), 990_000.0)


def test_a_spool_whose_last_pass_cannot_be_recorded_is_due(tmp_path: Path) -> None:
    (tmp_path / "pruned").mkdir()
    os.utime(tmp_path / "pruned", (0, 0))

    assert is_pruning_due(str(tmp_path), 1_000_000.0)
