"""Files of jpsi and its runner are private with every umask; a job has the umask of the user."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import attrs
import pytest

import jpsi
from jpsi import Job, JobExecutor, JobSpec, JobState
from jpsi_testing import RemoteTransport
from jpsi_testing.conformance.base import shell
from jpsi_testing.waiting import eventually
from remote_jobs import CONFIG, end, executor_of

UMASKS = [0o000, 0o022, 0o137, 0o777]


@contextlib.contextmanager
def umask(number: int) -> Iterator[None]:
    before = os.umask(number)
    try:
        yield
    finally:
        os.umask(before)


class Make(Protocol):
    """A function that makes an executor."""

    def __call__(self, *prologue: str) -> JobExecutor: ...


@pytest.fixture(params=["local", "batch", "remote"])
def make(request: pytest.FixtureRequest, remote_transport: RemoteTransport) -> Make:
    def executor(*prologue: str) -> JobExecutor:
        config = attrs.evolve(CONFIG, prologue=prologue)
        if request.param == "local":
            return JobExecutor("local", config=jpsi.ExecutorConfig(prologue=prologue))
        if request.param == "batch":
            return JobExecutor.get_instance("toy", config=config)
        return executor_of(remote_transport, config)

    return executor


def roots(tmp_path: Path) -> list[Path]:
    """Return the folders of the spools on both hosts; their parents are made as well."""
    places = [tmp_path / "state/jpsi", tmp_path / "remote home/.local"]
    return [place for place in places if place.exists()]


def modes(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """Yield the paths in the spools and their modes."""
    for root in roots(tmp_path):
        for path in (root, *root.rglob("*")):
            # a marker may be moved to its folder meanwhile
            with contextlib.suppress(FileNotFoundError):
                yield path, path.lstat().st_mode


def open_to_others(tmp_path: Path) -> list[str]:
    """Return the paths in the spools that other users can access."""
    return [f"{path} {stat.filemode(mode)}" for path, mode in modes(tmp_path) if mode & 0o077]


def not_private(tmp_path: Path) -> list[str]:
    """Return the paths in the spools that do not have their final mode."""
    found = list(modes(tmp_path))
    assert len(found) > 1
    return [
        f"{path} {stat.filemode(mode)}"
        for path, mode in found
        if stat.S_IMODE(mode) != (0o700 if stat.S_ISDIR(mode) else 0o600)
    ]


def output(executor: JobExecutor, job: Job) -> str:
    found = executor.output(job)
    part = None if found is None else found.read()
    return "" if part is None else part.data.decode()


@pytest.mark.parametrize("number", UMASKS, ids="{:03o}".format)
def test_everything_is_private_and_the_job_has_its_own_umask(make: Make, tmp_path: Path, number: int) -> None:
    with umask(number), make() as executor:
        plain, failing, long = Job(shell("umask")), Job(shell("umask; exit 3")), Job(shell("sleep 1000"))
        for job in (plain, failing, long):
            executor.submit(job)
        several = [Job(shell("umask")) for _ in range(3)]
        executor.submit_many(several)
        eventually(lambda: long.status.state is JobState.ACTIVE)
        assert open_to_others(tmp_path) == []
        long.cancel()

        assert end(failing).exit_code == 3
        assert end(long).state is JobState.CANCELED
        for job in (plain, failing, *several):
            assert end(job).final
            assert output(executor, job) == f"{number:04o}\n"
        assert not_private(tmp_path) == []


@pytest.mark.parametrize("number", UMASKS, ids="{:03o}".format)
def test_scripts_of_the_user_have_their_umask_and_may_set_another(
    make: Make, tmp_path: Path, number: int
) -> None:
    """A pre_launch that sets a umask sets it for the job."""
    (tmp_path / "before.sh").write_text("umask; umask 0027\n")
    (tmp_path / "after.sh").write_text("umask\n")
    spec = shell("umask")
    spec.pre_launch, spec.post_launch = tmp_path / "before.sh", tmp_path / "after.sh"

    with umask(number), make("true") as executor:
        job = Job(spec)
        executor.submit(job)
        assert end(job).exit_code == 0

        assert output(executor, job) == f"{number:04o}\n0027\n0027\n"
        assert not_private(tmp_path) == []


def test_files_that_the_user_names_have_the_umask_of_the_user(make: Make, tmp_path: Path) -> None:
    place = tmp_path / "runs"
    spec = JobSpec("/bin/sh", ["-c", "mkdir made; echo >made/file"], create_directory=True)
    spec.directory, spec.stdout_path, spec.stderr_path = place, place / "out", place / "err"

    with umask(0o026), make() as executor:
        job = Job(spec)
        executor.submit(job)
        assert end(job).exit_code == 0

        found = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (place, *place.rglob("*"))}
        assert found == {"runs": 0o751, "made": 0o751, "file": 0o640, "out": 0o640, "err": 0o640}
        assert not_private(tmp_path) == []


@pytest.mark.parametrize("number", [0o000, 0o022], ids="{:03o}".format)
def test_staging_leaves_nothing_open_to_others(make: Make, tmp_path: Path, number: int) -> None:
    (tmp_path / "in").write_text("in")
    (tmp_path / "in").chmod(0o644)
    (tmp_path / "tree").mkdir()
    (tmp_path / "moved").write_text("moved")
    spec = shell("umask >out; cat in")
    spec.stage_in = [
        jpsi.StageIn(tmp_path / "in", "in"),
        jpsi.StageIn(tmp_path / "tree", "tree"),
        jpsi.StageIn(tmp_path / "moved", "moved", mode=jpsi.StagingMode.MOVE),
    ]
    spec.stage_out = [jpsi.StageOut("out", tmp_path / "out")]
    spec.directory, spec.create_directory = tmp_path / "runs", True

    with umask(number), make() as executor:
        job = Job(spec)
        executor.submit(job)
        status = end(job)

        assert (status.exit_code, status.message) == (0, None)
        assert (tmp_path / "out").read_text() == f"{number:04o}\n"
        assert not_private(tmp_path) == []


@pytest.mark.parametrize("number", [0o000, 0o777], ids="{:03o}".format)
def test_recovery_leaves_nothing_open_to_others(make: Make, tmp_path: Path, number: int) -> None:
    with umask(number):
        with make() as executor:
            job = Job(shell("umask"))
            executor.submit(job)
            other = Job(shell("sleep 1000"))
            executor.submit(other)
        with make() as executor:
            found = executor.recover()
            for it in found:
                if it.id == other.id:
                    it.cancel()
                end(it)
            assert other.id in {it.id for it in found}
            # a draft has no final mode yet
            assert eventually(lambda: not_private(tmp_path) == [])
