"""Pilots that Slurm ends: no job is lost, and none runs twice unless retries are permitted."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import attrs
import psutil
import pytest

from jpsi import Job, JobAttributes, JobExecutor, JobState, Reason
from jpsi_pilot.config import PilotConfig
from jpsi_testing.conformance.base import Gate, Proof, shell
from jpsi_testing.waiting import eventually
from pilot_support import PATIENCE, final_status, spec_with_proof, wait_for_node


@pytest.fixture
def executor(config: PilotConfig) -> Iterator[JobExecutor]:
    with JobExecutor.get_instance("pilot", config=config) as executor:
        yield executor


def command(*words: str) -> str:
    """Return the output of a command of Slurm."""
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def slurm_jobs() -> list[str]:
    """Return the Slurm ids of the test's own pilots."""
    with JobExecutor.get_instance("nodes") as slurm:
        return [str(job.native_id) for job in slurm.recover()]


def test_both_nodes_of_a_pilot_run_jobs(executor: JobExecutor, tmp_path: Path) -> None:
    gate = Gate(tmp_path / "gate")
    jobs = [Job(gate.job()) for _ in range(8)]
    executor.submit_many(jobs)

    nodes = [wait_for_node(executor, job) for job in jobs]
    pilots = slurm_jobs()
    gate.open()

    assert sorted(nodes.count(node) for node in set(nodes)) == [4, 4]
    assert len(pilots) == 1
    assert [final_status(job).exit_code for job in jobs] == [0] * 8


def test_jobs_of_a_cancelled_pilot_fail_or_are_retried_and_pending_ones_run(
    executor: JobExecutor, tmp_path: Path
) -> None:
    gate = Gate(tmp_path / "gate")
    proofs = [Proof(tmp_path / f"proof {number}") for number in range(20)]
    once = [Job(spec_with_proof(proof, gate)) for proof in proofs[:10]]
    again = [
        Job(spec_with_proof(proof, gate, **{"pilot.retry_on_pilot_loss": True})) for proof in proofs[10:]
    ]
    for pair in zip(again, once, strict=True):
        executor.submit_many(pair)
    begun = [*proofs[:4], *proofs[10:14]]
    assert eventually(lambda: all(proof.runs for proof in begun), PATIENCE), begun

    (pilot,) = slurm_jobs()
    command("scancel", pilot)
    lost = [final_status(job) for job in once[:4]]
    gate.open()

    assert {(it.state, it.reason) for it in lost} == {(JobState.FAILED, Reason.NODE_FAIL)}
    assert [final_status(job).exit_code for job in [*once[4:], *again]] == [3] * 16
    runs = [proof.runs for proof in proofs]
    assert runs == [1] * 10 + [2] * 4 + [1] * 6


def test_a_killed_worker_loses_only_its_own_jobs(executor: JobExecutor, tmp_path: Path) -> None:
    gate = Gate(tmp_path / "gate")
    jobs = [Job(gate.job(3)) for _ in range(8)]
    executor.submit_many(jobs)
    for job in jobs:
        assert job.wait(PATIENCE, target_states=JobState.ACTIVE), job

    worker = next(it for it in psutil.process_iter(["cmdline"]) if is_worker(it, tmp_path))
    worker.kill()
    ends = [job.wait(0) for job in jobs]
    lost = [job for job in jobs if job.wait(10)]
    gate.open()

    assert ends == [None] * 8
    # the pilot decides how many run on which node
    assert 0 < len(lost) < len(jobs)
    assert {job.status.reason for job in lost} == {Reason.NODE_FAIL}
    assert {final_status(job).exit_code for job in jobs if job not in lost} == {3}


def is_worker(process: psutil.Process, folder: Path) -> bool:
    """Return True if a process is a worker of a pilot below a folder."""
    words = process.info["cmdline"] or []
    return words[4:5] == ["jpsi_pilot.dask.worker"] and words[5].startswith(f"{folder}/")


def test_no_job_is_ended_by_the_walltime_of_its_pilot(config: PilotConfig, tmp_path: Path) -> None:
    """Slurm counts minutes: a pilot has one for jobs and one to start, and the jobs take three."""
    short = attrs.evolve(
        config,
        nodes_per_pilot=1,
        cores_per_node=2,
        walltime=timedelta(seconds=50),
        margin=timedelta(seconds=30),
    )
    proofs = [Proof(tmp_path / f"proof {number}") for number in range(12)]
    limit = JobAttributes(duration=timedelta(seconds=25))
    with JobExecutor.get_instance("pilot", config=short) as executor:
        jobs = [Job(shell(f"{Proof.WRITE}; sleep 15", it.path, attributes=limit)) for it in proofs]
        executor.submit_many(jobs)
        assert [final_status(job).exit_code for job in jobs] == [0] * 12

    assert [proof.runs for proof in proofs] == [1] * 12
    journal = (tmp_path / "work" / "pilots" / "journal").read_text()
    assert journal.count('"what":"pilot",') > 1
