"""Slurm goes away and comes back: no job fails, none is lost, none runs twice."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

import jpsi
from jpsi import Job, JobAttributes, JobExecutor, JobSpec, JobState, Reason
from jpsi.testing.conformance_kit import Proof

PATIENCE = 240.0


def proving(path: Path, code: int, seconds: float = 0.0) -> Job:
    """A job that leaves a line in a file, and ends with this code after a while."""
    return Job(JobSpec("/bin/sh", ["-c", f"{Proof.WRITE}; sleep {seconds}; exit {code}", "sh", str(path)]))


def test_jobs_outlive_a_controller_that_is_down(
    executor: JobExecutor, tmp_path: Path, control: Callable[[str], None], is_long: bool
) -> None:
    running = [proving(tmp_path / f"{code}", code, seconds=3) for code in range(4)]
    for job in running:
        executor.submit(job)
    for job in running:
        assert job.wait(PATIENCE, JobState.ACTIVE)

    control("stop-controller")
    time.sleep(60 if is_long else 8)
    states = [job.status.state for job in running]
    refused = proving(tmp_path / "refused", 0)
    with pytest.raises(jpsi.SubmitException) as caught:
        executor.submit(refused)
    control("up")

    assert caught.value.transient
    assert refused.status.state is JobState.NEW
    assert JobState.CANCELED not in states
    assert [job.wait(PATIENCE).exit_code for job in running] == [0, 1, 2, 3]  # type: ignore[union-attr]  # None is no code either
    executor.submit(refused)
    assert refused.wait(PATIENCE).state is JobState.COMPLETED  # type: ignore[union-attr]
    assert [Proof(tmp_path / name).runs for name in ("0", "1", "2", "3", "refused")] == [1] * 5


def test_submission_to_a_frozen_controller_runs_once(
    executor: JobExecutor, tmp_path: Path, control: Callable[[str], None]
) -> None:
    """Sbatch gives up, and the job may be there all the same: it never runs beside the next attempt."""
    job = proving(tmp_path / "proof", 3)
    control("freeze-controller")
    try:
        with pytest.raises(jpsi.SubmitException) as caught:
            executor.submit(job)
    finally:
        control("thaw-controller")

    assert caught.value.transient
    executor.submit(job)
    status = job.wait(PATIENCE)
    assert status is not None
    assert status.exit_code == 3
    drained()
    assert Proof(tmp_path / "proof").runs == 1


def test_submission_whose_sbatch_was_killed_is_found(
    executor: JobExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = subprocess.run(["which", "sbatch"], capture_output=True, text=True, check=True).stdout.strip()
    wrapper = tmp_path / "bin" / "sbatch"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\n{real} "$@" >/dev/null\nkill -9 $$\n')
    wrapper.chmod(0o755)
    with monkeypatch.context() as patched:
        patched.setenv("PATH", f"{wrapper.parent}:/usr/bin:/bin")
        job = proving(tmp_path / "proof", 4)
        executor.submit(job)

    status = job.wait(PATIENCE)

    assert status is not None
    assert status.exit_code == 4
    assert Proof(tmp_path / "proof").runs == 1


def test_walltime_is_told(executor: JobExecutor, is_long: bool) -> None:
    if not is_long:
        pytest.skip("takes a minute and a half")
    trapping = 'trap "exit 0" TERM; while :; do sleep 1; done'
    jobs = [
        Job(JobSpec("/bin/sh", ["-c", text], attributes=JobAttributes(duration=timedelta(seconds=60))))
        for text in ("sleep 1000", trapping)
    ]
    for job in jobs:
        executor.submit(job)

    ends = [job.wait(PATIENCE) for job in jobs]

    assert [end and (end.state, end.reason) for end in ends] == [(JobState.FAILED, Reason.TIMEOUT)] * 2


def test_failed_node_is_told(executor: JobExecutor, control: Callable[[str], None], is_long: bool) -> None:
    if not is_long:
        pytest.skip("takes a minute")
    attributes = JobAttributes(custom_attributes={"slurm.nodelist": "node02", "slurm.no-requeue": True})
    job = Job(JobSpec("/bin/sleep", ["1000"], attributes=attributes))
    executor.submit(job)
    assert job.wait(PATIENCE, JobState.ACTIVE)

    control("kill-node node02")
    status = job.wait(PATIENCE)

    assert status is not None
    assert (status.state, status.reason) == (JobState.FAILED, Reason.NODE_FAIL)


def drained() -> None:
    """Wait until no job of this user is left, ghosts included."""
    for _ in range(600):
        if not subprocess.run(["squeue", "-h", "--me"], capture_output=True, check=True).stdout.strip():
            return
        time.sleep(0.2)
    pytest.fail("jobs are left")
