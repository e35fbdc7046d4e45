"""Outages of Slurm: no job fails, is lost, or runs twice."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest
from real_slurm import PATIENCE, Control, final_status, job_with_proof, wait_until_drained

import jpsi
from jpsi import JobExecutor, JobState
from jpsi_testing.conformance.base import Proof


def test_jobs_outlive_a_controller_that_is_down(
    executor: JobExecutor, tmp_path: Path, control: Control, is_long: bool
) -> None:
    running = [job_with_proof(tmp_path / f"{code}", code, seconds=3) for code in range(4)]
    for job in running:
        executor.submit(job)
    for job in running:
        assert job.wait(PATIENCE, JobState.ACTIVE)

    control("stop-controller")
    time.sleep(60 if is_long else 8)
    states = [job.status.state for job in running]
    refused = job_with_proof(tmp_path / "refused", 0)
    with pytest.raises(jpsi.SubmitException) as caught:
        executor.submit(refused)
    control("up")

    assert caught.value.transient
    assert refused.status.state is JobState.NEW
    assert JobState.CANCELED not in states
    assert [final_status(job).exit_code for job in running] == [0, 1, 2, 3]
    executor.submit(refused)
    assert final_status(refused).state is JobState.COMPLETED
    assert [Proof(tmp_path / name).runs for name in ("0", "1", "2", "3", "refused")] == [1] * 5


def test_submission_to_a_frozen_controller_runs_once(
    executor: JobExecutor, tmp_path: Path, control: Control
) -> None:
    """Here sbatch times out, and the job may exist all the same; it never runs beside the next attempt."""
    job = job_with_proof(tmp_path / "proof", 3)
    control("freeze-controller")
    try:
        with pytest.raises(jpsi.SubmitException) as caught:
            executor.submit(job)
    finally:
        control("thaw-controller")

    assert caught.value.transient
    executor.submit(job)
    assert final_status(job).exit_code == 3
    wait_until_drained(job)
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
        job = job_with_proof(tmp_path / "proof", 4)
        executor.submit(job)

    assert final_status(job).exit_code == 4
    assert Proof(tmp_path / "proof").runs == 1
