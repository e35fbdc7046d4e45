"""Dozens of short jobs while processes are killed: none is lost, and none runs twice without permission."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import attrs
import psutil
import pytest

from jpsi import Job, JobAttributes, JobExecutor, JobSpec, Reason
from jpsi_pilot.config import PilotConfig
from jpsi_testing.conformance.base import Proof, shell
from jpsi_testing.waiting import eventually
from pilot_support import agent_pid
from test_losses import command, final_status, is_worker, slurm_jobs

# Of each kind: with and without retries.
JOBS = 30


def kill_worker(folder: Path) -> None:
    next(it for it in psutil.process_iter(["cmdline"]) if is_worker(it, folder)).kill()


def cancel_pilot(_folder: Path) -> None:
    command("scancel", slurm_jobs()[0])


def kill_agent(folder: Path) -> None:
    os.kill(agent_pid(folder / "work" / "pilots"), signal.SIGKILL)


def short(proof: Proof, *, again: bool) -> JobSpec:
    """Return a job that writes a line, and ends soon."""
    attributes = JobAttributes(
        duration=timedelta(minutes=1), custom_attributes={"pilot.retry_on_pilot_loss": again}
    )
    return shell(f"{Proof.WRITE}; sleep 0.5; exit 3", proof.path, attributes=attributes)


@pytest.mark.parametrize("kill", [kill_worker, cancel_pilot, kill_agent])
def test_whatever_is_killed_each_job_has_one_end(
    config: PilotConfig, tmp_path: Path, kill: Callable[[Path], None], rounds: int
) -> None:
    with JobExecutor.get_instance("pilot", config=attrs.evolve(config, max_pilots=2)) as executor:
        for number in range(rounds):
            proofs = [Proof(tmp_path / f"{number} {job}") for job in range(2 * JOBS)]
            again = [Job(short(proof, again=True)) for proof in proofs[:JOBS]]
            once = [Job(short(proof, again=False)) for proof in proofs[JOBS:]]
            for pair in zip(again, once, strict=True):
                executor.submit_many(pair)

            assert eventually(lambda: sum(proof.runs for proof in proofs) >= JOBS)  # noqa: B023  at once
            kill(tmp_path)

            runs_of = {job.id: proof for job, proof in zip([*again, *once], proofs, strict=True)}
            assert [final_status(job).exit_code for job in again] == [3] * JOBS
            for job in once:
                status, runs = final_status(job), runs_of[job.id].runs
                assert (status.exit_code, runs) == (3, 1) or status.reason is Reason.NODE_FAIL, status
                assert runs <= 1, job
