"""The root of a spool is checked each time before it is used, with what leads to it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import jpsi
from jpsi.contract import ownership
from jpsi.model.errors import ConfigError
from jpsi_engine.spool.spool import Spool

GROUP = 12345


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    spool = Spool(tmp_path / "work/local/machine")
    spool.open()
    return spool


def make(spool: Spool, job_id: str = "a1", attempt: int = 1) -> None:
    os.close(spool.prepare(job_id, attempt, {"id": job_id}, "exit 7\n"))


def in_group(path: Path) -> Callable[[str], os.stat_result]:
    """Return an lstat(2) that reports a group with several members."""

    def look(at: str) -> os.stat_result:
        found = os.lstat(at)
        return os.stat_result((*found[:5], GROUP, *found[6:10])) if at == str(path) else found

    return look


def test_parent_that_others_can_change_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    """A user who can rename a directory on the path could replace the scripts of others."""
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)

    with pytest.raises(ConfigError, match=r"open can be written by others \(yours, mode 0777\)"):
        Spool(tmp_path / "open/work/local").open()

    assert list((tmp_path / "open").iterdir()) == []


@pytest.mark.parametrize("mode", [0o755, 0o1777, 0o1775], ids="{:o}".format)
def test_parent_that_others_cannot_change_is_accepted(tmp_path: Path, mode: int) -> None:
    (tmp_path / "way").mkdir()
    (tmp_path / "way").chmod(mode)

    Spool(tmp_path / "way/work/local").open()


@pytest.mark.parametrize("is_private", [False, True], ids=["shared", "private"])
def test_group_that_can_change_a_parent_must_be_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_private: bool
) -> None:
    (tmp_path / "way").mkdir()
    (tmp_path / "way").chmod(0o770)
    monkeypatch.setattr(ownership, "look", in_group(tmp_path / "way"))
    monkeypatch.setattr(ownership, "_is_private", lambda group, _: group == GROUP and is_private)
    spool = Spool(tmp_path / "way/work")

    if is_private:
        spool.open()
    else:
        with pytest.raises(ConfigError, match=rf"mode 0770: group {GROUP}\); change that: chmod go-w"):
            spool.open()


def test_parents_are_checked_again_at_each_use(spool: Spool, tmp_path: Path) -> None:
    make(spool)
    (tmp_path / "work").chmod(0o777)

    with pytest.raises(ConfigError, match="work can be written by others"):
        make(spool, "a2")
    with pytest.raises(PermissionError, match="work can be written by others"):
        spool.collect(["a1"])

    (tmp_path / "work").chmod(0o755)
    make(spool, "a2")
    assert spool.collect(["a1"]) == {"a1": []}


@pytest.mark.parametrize("name", ["jobs", "arrays", "events", "trash"])
@pytest.mark.parametrize("kind", ["link", "open"])
def test_folders_are_checked_again_at_each_use(spool: Spool, tmp_path: Path, name: str, kind: str) -> None:
    folder = Path(spool.root, name)
    if kind == "link":
        (tmp_path / "theirs").mkdir()
        folder.rmdir()
        folder.symlink_to(tmp_path / "theirs")
    else:
        folder.chmod(0o777)

    with pytest.raises(ConfigError, match="is a symbolic link" if kind == "link" else "mode 0777"):
        make(spool)
    with pytest.raises(ConfigError):
        spool.arrays.prepare("b1", {}, [], "", [])
    with pytest.raises(ConfigError):
        Spool(Path(spool.root)).open()
    assert not (tmp_path / "theirs").exists() or list((tmp_path / "theirs").iterdir()) == []


@pytest.mark.parametrize("name", ["jobs", "arrays", "events", "trash"])
def test_missing_folder_does_not_affect_other_folders(spool: Spool, name: str) -> None:
    make(spool)
    if name == "jobs":
        Path(spool.folder("a1")).rename(Path(spool.root, "trash/a1"))
    Path(spool.root, name).rmdir()

    make(spool, "a2")

    assert spool.collect(["a2"]) == {"a2": []}


@pytest.mark.parametrize("kind", ["link", "open"])
def test_folder_of_a_job_is_checked_at_each_use(spool: Spool, tmp_path: Path, kind: str) -> None:
    """A script that another user put there does not run, and no error suggests to submit it again."""
    make(spool)
    folder = Path(spool.folder("a1"))
    if kind == "link":
        folder.rename(tmp_path / "theirs")
        folder.symlink_to(tmp_path / "theirs")
    else:
        folder.chmod(0o777)

    with pytest.raises(ConfigError, match=r"the folder of a job .* is not safe to use"):
        spool.reserve("a1", 2)
    with pytest.raises(PermissionError, match=r"the folder of a job .* is not safe to use"):
        spool.last_intent("a1")


def test_intent_that_is_a_link_is_not_read(spool: Spool, tmp_path: Path) -> None:
    make(spool)
    intent = Path(spool.folder("a1"), "intent.1.json")
    intent.rename(tmp_path / "theirs")
    intent.symlink_to(tmp_path / "theirs")

    with pytest.raises(OSError, match="symbolic links"):
        spool.last_intent("a1")


def test_nothing_is_judged_again_while_nothing_changes(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []

    def look(path: str) -> os.stat_result:
        looks.append(path)
        return os.lstat(path)

    monkeypatch.setattr(ownership, "look", look)
    monkeypatch.setattr(ownership, "problem", pytest.fail)
    monkeypatch.setattr(ownership, "walk", pytest.fail)

    make(spool)

    assert len(looks) == len(set(looks)) == 1 + spool.root.count("/") + 4


@pytest.mark.parametrize("parent", [True, False], ids=["parent", "work directory"])
def test_executor_in_an_unsafe_place_is_refused_when_it_is_made(tmp_path: Path, parent: bool) -> None:
    work = tmp_path / "parent/work"
    work.mkdir(parents=True)
    (work.parent if parent else work).chmod(0o777)

    with pytest.raises(ConfigError, match=r"the work directory .* chmod go-w .*; or choose another"):
        jpsi.JobExecutor("local", config=jpsi.ExecutorConfig(work_directory=work))

    assert list(work.iterdir()) == []


def test_executor_whose_parent_becomes_unsafe_submits_nothing(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    executor = jpsi.JobExecutor("local", config=jpsi.ExecutorConfig(work_directory=tmp_path / "work"))
    (tmp_path / "work").chmod(0o777)
    job = jpsi.Job(jpsi.JobSpec("/bin/true"))

    with pytest.raises(ConfigError, match="work can be written by others"):
        executor.submit(job)

    assert job.status.state is jpsi.JobState.NEW
    assert job.native_id is None
