"""Pilots that Slurm ends: nothing is lost with them, and nothing runs twice unless it may."""

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
from pilot_support import PATIENCE, end, proving, wait_for_node


@pytest.fixture
def executor(config: PilotConfig) -> Iterator[JobExecutor]:
    with JobExecutor.get_instance("pilot", config=config) as executor:
        yield executor


def command(*words: str) -> str:
    """What a command of Slurm prints."""
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def slurm_jobs() -> list[str]:
    """The ids of the test's own pilots that Slurm has."""
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
    assert [end(job).exit_code for job in jobs] == [0] * 8


def test_jobs_of_a_pilot_that_was_cancelled_fail_or_run_again_and_those_that_waited_run(
    executor: JobExecutor, tmp_path: Path
) -> None:
    gate = Gate(tmp_path / "gate")
    proofs = [Proof(tmp_path / f"proof {number}") for number in range(20)]
    once = [Job(proving(proof, gate)) for proof in proofs[:10]]
    again = [Job(proving(proof, gate, **{"pilot.retry_on_pilot_loss": True})) for proof in proofs[10:]]
    for pair in zip(again, once, strict=True):
        executor.submit_many(pair)
    begun = [*proofs[:4], *proofs[10:14]]
    assert eventually(lambda: all(proof.runs for proof in begun), PATIENCE), begun

    (pilot,) = slurm_jobs()
    command("scancel", pilot)
    lost = [end(job) for job in once[:4]]
    gate.open()

    assert {(it.state, it.reason) for it in lost} == {(JobState.FAILED, Reason.NODE_FAIL)}
    assert [end(job).exit_code for job in [*once[4:], *again]] == [3] * 16
    runs = [proof.runs for proof in proofs]
    assert runs == [1] * 10 + [2] * 4 + [1] * 6


def test_a_killed_worker_takes_its_own_jobs_alone(executor: JobExecutor, tmp_path: Path) -> None:
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
    # how many run where is the pilot's to say
    assert 0 < len(lost) < len(jobs)
    assert {job.status.reason for job in lost} == {Reason.NODE_FAIL}
    assert {end(job).exit_code for job in jobs if job not in lost} == {3}


def is_worker(process: psutil.Process, folder: Path) -> bool:
    """Whether it is one of the pilots below a folder."""
    words = process.info["cmdline"] or []
    return words[4:5] == ["jpsi_pilot.dask.worker"] and words[5].startswith(f"{folder}/")


def test_no_job_is_touched_by_the_end_of_a_pilots_walltime(config: PilotConfig, tmp_path: Path) -> None:
    """Slurm counts minutes: a pilot has one for jobs and one to start, and there is work for three."""
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
        assert [end(job).exit_code for job in jobs] == [0] * 12

    assert [proof.runs for proof in proofs] == [1] * 12
    journal = (tmp_path / "work" / "pilots" / "journal").read_text()
    assert journal.count('"what":"pilot",') > 1
