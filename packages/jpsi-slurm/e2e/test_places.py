"""Missing, full or unreadable directories and programs: the error names them, and no job is lost."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest
from real_slurm import (
    Control,
    custom,
    final_status,
    job_with_proof,
    path_without,
    wait_for_proof,
    wait_until_drained,
)

import jpsi
from jpsi import Evidence, Job, JobExecutor, JobState, Reason
from jpsi_slurm import SlurmConfig
from jpsi_testing.conformance.base import Gate, Proof, shell


def refused(executor: JobExecutor, job: Job, *words: str) -> jpsi.SubmitException:
    """Check that a submission fails with an error that has these words, and leaves the job NEW."""
    with pytest.raises(jpsi.SubmitException) as caught:
        executor.submit(job)
    assert job.status.state is JobState.NEW
    assert job.native_id is None
    for word in words:
        assert word in str(caught.value)
    return caught.value


def completes_once(executor: JobExecutor, job: Job, proof: Path) -> None:
    """Check that a submission that failed before now succeeds, and the job runs once."""
    executor.submit(job)
    assert final_status(job).exit_code == 0
    wait_until_drained(job)
    assert Proof(proof).runs == 1


@pytest.mark.parametrize("mode", [0o000, 0o500], ids=["unreadable", "unwritable"])
def test_work_directory_that_may_not_be_used(config: SlurmConfig, tmp_path: Path, mode: int) -> None:
    place = tmp_path / "place"
    place.mkdir(mode=mode)
    config = attrs.evolve(config, work_directory=place / "work")
    job = job_with_proof(tmp_path / "proof", 0)
    with JobExecutor.get_instance("slurm", config=config) as executor:
        refused(executor, job, str(place), "Permission denied")

        place.chmod(0o700)

        completes_once(executor, job, tmp_path / "proof")


def test_work_directory_that_may_not_be_written_any_more(executor: JobExecutor, tmp_path: Path) -> None:
    first, second = job_with_proof(tmp_path / "first", 3), job_with_proof(tmp_path / "proof", 0)
    executor.submit(first)
    assert final_status(first).exit_code == 3
    jobs = tmp_path / "work" / "slurm" / "jobs"
    jobs.chmod(0o500)

    refused(executor, second, str(jobs), "Permission denied")
    jobs.chmod(0o700)

    completes_once(executor, second, tmp_path / "proof")


def test_work_directory_that_is_a_file(config: SlurmConfig, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.touch()
    job = job_with_proof(tmp_path / "proof", 0)
    with JobExecutor.get_instance("slurm", config=config) as executor:
        refused(executor, job, str(work))

        work.unlink()

        completes_once(executor, job, tmp_path / "proof")


def test_work_directory_that_others_may_write(config: SlurmConfig, tmp_path: Path) -> None:
    work = tmp_path / "work" / "slurm"
    work.mkdir(parents=True)
    work.chmod(0o777)
    with pytest.raises(jpsi.ConfigError, match=r"chmod go-w"):
        JobExecutor.get_instance("slurm", config=config)

    work.chmod(0o700)
    with JobExecutor.get_instance("slurm", config=config) as executor:
        job = job_with_proof(tmp_path / "opened later", 0)
        work.chmod(0o777)
        with pytest.raises(jpsi.ConfigError, match=r"chmod go-w"):
            executor.submit(job)
        assert job.status.state is JobState.NEW

        work.chmod(0o700)

        completes_once(executor, job, tmp_path / "opened later")


def test_work_directory_that_was_removed(executor: JobExecutor, tmp_path: Path) -> None:
    first, second = job_with_proof(tmp_path / "first", 3), job_with_proof(tmp_path / "proof", 0)
    executor.submit(first)
    assert final_status(first).exit_code == 3
    shutil.rmtree(tmp_path / "work")

    completes_once(executor, second, tmp_path / "proof")


@pytest.fixture
def small(control: Control) -> Iterator[Path]:
    """Yield the path of a small file system."""
    try:
        control("mount")
    except AssertionError:
        pytest.skip("nothing can be mounted here")
    yield Path("/run/jpsi-ci/small")
    control("unmount")


def fill(small: Path) -> Path:
    """Fill a file system and return the file that fills it."""
    filler = small / "filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(1024))
    return filler


def test_full_work_directory(config: SlurmConfig, tmp_path: Path, small: Path) -> None:
    config = attrs.evolve(config, work_directory=small / "work")
    gate = Gate(tmp_path / "gate")
    running = Job(shell(f'echo ran >>"$2"; {Gate.WAIT}; exit 5', gate.path, tmp_path / "running"))
    endless = Job(shell('echo ran >>"$1"; exec sleep 1000', tmp_path / "endless"))
    late = job_with_proof(tmp_path / "proof", 0)
    with JobExecutor.get_instance("slurm", config=config) as executor:
        executor.submit(running)
        executor.submit(endless)
        wait_for_proof(tmp_path / "running")
        wait_for_proof(tmp_path / "endless")
        filler = fill(small)

        assert refused(executor, late, "No space left on device").transient
        # a running job ends normally: a marker takes no room
        gate.open()
        status = final_status(running)
        assert (status.exit_code, status.evidence) == (5, Evidence.MARKER)
        with pytest.raises(jpsi.SubmitException, match="No space left on device") as caught:
            endless.cancel()
        assert caught.value.transient
        assert endless.status.state is JobState.ACTIVE

        filler.unlink()
        endless.cancel()
        assert final_status(endless).state is JobState.CANCELED
        completes_once(executor, late, tmp_path / "proof")


def test_no_sbatch(executor: JobExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = job_with_proof(tmp_path / "proof", 0)
    with monkeypatch.context() as without:
        without.setenv("PATH", path_without("sbatch", tmp_path / "bin"))
        assert not refused(executor, job, "sbatch").transient

    completes_once(executor, job, tmp_path / "proof")


def test_sbatch_that_may_not_be_run(
    executor: JobExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = job_with_proof(tmp_path / "proof", 0)
    path = path_without("sbatch", tmp_path / "bin")
    Path(path, "sbatch").write_text("#!/bin/sh\n")
    with monkeypatch.context() as without:
        without.setenv("PATH", path)
        refused(executor, job, "sbatch", "ermission denied")

    completes_once(executor, job, tmp_path / "proof")


@pytest.mark.parametrize("program", ["squeue", "scontrol", "sacct"])
def test_without_the_other_commands_jobs_have_the_right_outcome(
    executor: JobExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    monkeypatch.setenv("PATH", path_without(program, tmp_path / "bin"))
    job = job_with_proof(tmp_path / "proof", 7)
    executor.submit(job)

    status = final_status(job)

    assert (status.exit_code, status.evidence) == (7, Evidence.MARKER)


@pytest.mark.long
def test_no_slurm_conf(executor: JobExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = job_with_proof(tmp_path / "proof", 0)
    with monkeypatch.context() as without:
        without.setenv("SLURM_CONF", str(tmp_path / "slurm.conf"))
        refused(executor, job, str(tmp_path / "slurm.conf"))

    completes_once(executor, job, tmp_path / "proof")


def test_a_job_whose_directories_were_deleted_reports_that(executor: JobExecutor, tmp_path: Path) -> None:
    """Slurm itself would end such a job without a message."""
    pre_launch, directory = tmp_path / "pre_launch", tmp_path / "directory"
    pre_launch.touch()
    directory.mkdir()
    held = custom(hold=True)
    jobs = {
        "directory": Job(shell("true", directory=directory, attributes=held)),
        "stdout": Job(shell("true", directory=tmp_path, stdout_path="directory/out", attributes=held)),
        "pre_launch": Job(shell("true", pre_launch=pre_launch, attributes=held)),
    }
    for job in jobs.values():
        executor.submit(job)
    directory.rmdir()
    pre_launch.unlink()

    for job in jobs.values():
        executor.release(job)

    reasons = {name: final_status(job).reason for name, job in jobs.items()}
    assert reasons == {"directory": Reason.SETUP, "stdout": Reason.SETUP, "pre_launch": Reason.PRE_LAUNCH}
