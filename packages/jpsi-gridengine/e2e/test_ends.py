"""The ends of jobs on a real Grid Engine, and the status that jpsi reports."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import jpsi
from jpsi import Job, JobAttributes, JobExecutor, JobSpec, JobState, Reason, ResourceSpecV1
from jpsi_gridengine import GridEngineConfig
from jpsi_testing.conformance.base import Gate, Proof, shell

PATIENCE = 120.0


@pytest.fixture
def executor(tmp_path: Path) -> Iterator[JobExecutor]:
    config = GridEngineConfig(
        work_directory=tmp_path / "work",
        node_environment="smp",
        shortest_interval=timedelta(seconds=0.5),
        longest_interval=timedelta(seconds=1),
        # as long as qacct was observed to take
        grace=timedelta(seconds=5),
    )
    with JobExecutor.get_instance("sge", config=config) as executor:
        yield executor


def test_several_processes_get_their_slots(executor: JobExecutor, tmp_path: Path) -> None:
    spec = shell(
        'echo "$NSLOTS $PE" > "$1"',
        tmp_path / "out",
        resources=ResourceSpecV1(node_count=1, process_count=1, cpu_cores_per_process=2, memory=1 << 20),
        launcher="single",
    )
    job = Job(spec)
    executor.submit(job)

    status = job.wait(PATIENCE)

    assert status is not None
    assert status.state is JobState.COMPLETED
    assert (tmp_path / "out").read_text() == "2 smp\n"


def test_a_time_limit_is_reported(executor: JobExecutor) -> None:
    job = Job(shell("sleep 1000", attributes=JobAttributes(duration=timedelta(seconds=2))))
    executor.submit(job)

    status = job.wait(PATIENCE)

    assert status is not None
    assert (status.state, status.reason) == (JobState.FAILED, Reason.TIMEOUT)


def test_a_job_ended_by_another_cause_does_not_count_as_completed(executor: JobExecutor) -> None:
    """Grid Engine reports jobs that qdel ended and killed jobs alike."""
    job = Job(shell("sleep 1000"))
    executor.submit(job)
    assert job.wait(PATIENCE, JobState.ACTIVE)

    subprocess.run(["qdel", job.native_id or ""], check=True)

    status = job.wait(PATIENCE)
    assert status is not None
    assert (status.state, status.reason, status.exit_code) == (JobState.FAILED, Reason.SIGNAL, 137), status


def test_a_parallel_task_does_not_end_its_job(executor: JobExecutor, tmp_path: Path) -> None:
    """The task has an account at once, the job seconds after its end."""
    text = 'qrsh -inherit "$(head -n 1 "$PE_HOSTFILE" | cut -d " " -f 1)" true; : > "$1"; sleep 1000'
    spec = shell(
        text,
        tmp_path / "started",
        resources=ResourceSpecV1(process_count=1, cpu_cores_per_process=2),
        launcher="single",
    )
    job = Job(spec)
    executor.submit(job)
    assert job.wait(PATIENCE, JobState.ACTIVE)
    _until((tmp_path / "started").exists)

    subprocess.run(["qdel", job.native_id or ""], check=True)

    status = job.wait(PATIENCE)
    assert status is not None
    assert (status.state, status.reason, status.exit_code) == (JobState.FAILED, Reason.SIGNAL, 137), status


def _until(has_happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not has_happened():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_many_jobs_are_queried_together(executor: JobExecutor) -> None:
    jobs = [Job(shell("kill -9 $PPID; kill -9 $$", launcher="single")) for _ in range(3)]
    for job in jobs:
        executor.submit(job)

    ends = [job.wait(PATIENCE) for job in jobs]

    assert {it.state for it in ends if it} == {JobState.FAILED}


def test_a_pending_job_deleted_by_others_is_lost(executor: JobExecutor) -> None:
    job = Job(shell("true", attributes=JobAttributes(custom_attributes={"gridengine.h": True})))
    executor.submit(job)

    subprocess.run(["qdel", job.native_id or ""], check=True)

    status = job.wait(PATIENCE)
    assert status is not None
    assert (status.state, status.reason) == (JobState.FAILED, Reason.LOST)


def test_a_pending_job_is_cancelled(executor: JobExecutor) -> None:
    job = Job(shell("true", attributes=JobAttributes(custom_attributes={"gridengine.h": True})))
    executor.submit(job)

    job.cancel()

    status = job.wait(PATIENCE)
    assert status is not None
    assert (status.state, status.exit_code) == (JobState.CANCELED, None)


@pytest.mark.long
def test_exit_code_99_requeues_a_job(executor: JobExecutor, tmp_path: Path) -> None:
    proof = Proof(tmp_path / "proof")
    job = Job(shell(f'{Proof.WRITE}; [ "$(wc -l < "$1")" -gt 1 ] && exit 5; exit 99', proof.path))
    executor.submit(job)

    status = job.wait(PATIENCE)

    assert status is not None
    assert status.exit_code == 5
    assert proof.runs == 2


def test_exit_code_100_is_reported_while_grid_engine_holds_the_job(executor: JobExecutor) -> None:
    job = Job(shell("exit 100"))
    executor.submit(job)

    status = job.wait(PATIENCE)

    assert status is not None
    assert status.exit_code == 100
    subprocess.run(["qdel", job.native_id or ""], check=True)


def test_a_job_is_held_and_released(executor: JobExecutor, tmp_path: Path) -> None:
    job = Job(shell("exit 3", attributes=JobAttributes(custom_attributes={"gridengine.h": True})))
    executor.submit(job)
    executor.release(job)

    status = job.wait(PATIENCE)

    assert status is not None
    assert status.exit_code == 3


def test_a_submission_without_an_id_is_found(
    executor: JobExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proof = Proof(tmp_path / "proof")
    real = subprocess.run(["which", "qsub"], capture_output=True, text=True, check=True).stdout.strip()
    wrapper = tmp_path / "bin" / "qsub"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\n{real} "$@" >/dev/null\nkill -9 $$\n')
    wrapper.chmod(0o755)
    gate = Gate(tmp_path / "gate")
    job = Job(
        shell(f"{Gate.WAIT}; shift; {Proof.WRITE}; exit 4", gate.path, proof.path, name="2nd run, of <a>")
    )
    with monkeypatch.context() as patched:
        patched.setenv("PATH", f"{wrapper.parent}:/usr/bin:/bin")
        executor.submit(job)
    gate.open()

    status = job.wait(PATIENCE)

    assert status is not None
    assert status.exit_code == 4
    assert proof.runs == 1


def test_an_invalid_spec_is_refused_before_its_submission(executor: JobExecutor) -> None:
    spec = JobSpec("/bin/true", resources=ResourceSpecV1(node_count=2, process_count=4))

    with pytest.raises(jpsi.InvalidJobException, match="no option for the slots of each node"):
        executor.submit(Job(spec))
