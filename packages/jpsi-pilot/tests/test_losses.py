"""Lost workers, pilots and agents: no job is lost, and none runs twice unless retries are permitted."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from jpsi import Job, JobAttributes, JobExecutor, JobSpec, JobState, Reason
from jpsi_pilot.client import process_name
from jpsi_pilot.config import PilotConfig
from jpsi_pilot.node import read_node_log
from jpsi_testing.conformance.base import Gate, Proof, shell
from jpsi_testing.waiting import eventually
from pilot_losses import LossTests, pytest_generate_tests, terminate_pilot  # noqa: F401  pytest calls it
from pilot_support import (
    PATIENCE,
    agent_pid,
    end_agent,
    final_status,
    processes,
    running_job,
    spec_with_proof,
)

WORKER = "jpsi_pilot.dask.worker"
SUPERVISOR = "jpsi_pilot.node.node_supervisor"


@pytest.fixture(params=[(), ("true",)], ids=["program", "script"])
def config(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[PilotConfig]:
    """Return a configuration with pilots of two cores, whose jobs are started as programs or as scripts."""
    yield PilotConfig(
        prologue=request.param,
        work_directory=tmp_path / "work",
        cores_per_node=2,
        idle_time=timedelta(seconds=30),
        kill_delay=timedelta(seconds=0.5),
        shortest_interval=timedelta(seconds=0.1),
        longest_interval=timedelta(seconds=0.3),
        grace=timedelta(seconds=1),
    )
    end_agent(tmp_path / "work" / "pilots")


@pytest.fixture
def folder(config: PilotConfig) -> Path:
    """Return the agent's folder."""
    assert config.work_directory is not None
    return config.work_directory / "pilots"


@pytest.fixture
def executor(config: PilotConfig) -> Iterator[JobExecutor]:
    """Yield an executor with these pilots."""
    with JobExecutor.get_instance("pilot", config=config) as executor:
        yield executor


def kill_worker(folder: Path) -> None:
    (worker,) = processes(folder, WORKER)
    worker.kill()


def kill_supervisor(folder: Path) -> None:
    (supervisor,) = processes(folder, SUPERVISOR)
    supervisor.kill()


def kill_both(folder: Path) -> None:
    (supervisor,), (worker,) = processes(folder, SUPERVISOR), processes(folder, WORKER)
    for it in (supervisor, worker):
        it.suspend()
    for it in (supervisor, worker):
        it.kill()


def starters(folder: Path) -> list[int]:
    """Return the processes that start programs for the workers of this agent."""
    logs = map(read_node_log, folder.glob("pilots/*/nodes/*"))
    pids = [(it.starter, int(it.starter.partition(".")[0])) for it in logs if it.starter]
    return [pid for name, pid in pids if process_name(pid) == name]


def kill_starter(folder: Path) -> None:
    for pid in starters(folder):
        os.kill(pid, signal.SIGKILL)


def kill_worker_and_starter(folder: Path) -> None:
    (worker,) = processes(folder, WORKER)
    worker.suspend()
    kill_starter(folder)
    worker.kill()


class TestLossesOfDask(LossTests):
    losses = (kill_worker, kill_supervisor, kill_both, terminate_pilot, kill_worker_and_starter)


def kill_agent(folder: Path) -> None:
    os.kill(agent_pid(folder), signal.SIGKILL)


@pytest.mark.parametrize("kill", [*TestLossesOfDask.losses, kill_starter, kill_agent])
def test_whatever_is_killed_between_short_jobs_each_job_has_one_end(
    executor: JobExecutor, folder: Path, tmp_path: Path, kill: Callable[[Path], None]
) -> None:
    proofs = [Proof(tmp_path / f"proof {number}") for number in range(60)]
    once = [Job(_short(proof)) for proof in proofs[:30]]
    again = [Job(_short(proof, **{"pilot.retry_on_pilot_loss": True})) for proof in proofs[30:]]
    for pair in zip(again, once, strict=True):
        executor.submit_many(pair)
    assert eventually(lambda: sum(proof.runs for proof in proofs) >= 10, PATIENCE)

    kill(folder)

    for job, proof in zip(once, proofs, strict=False):
        status = final_status(job)
        assert status.exit_code == 3 or status.reason is Reason.NODE_FAIL, status
        assert proof.runs == 1 if status.exit_code == 3 else proof.runs <= 1, status
    assert [it for it in map(final_status, again) if it.exit_code != 3] == []
    assert min(proof.runs for proof in proofs[30:]) >= 1


def _short(proof: Proof, **custom: Any) -> JobSpec:
    """Return a job that writes a line, and ends at once."""
    attributes = JobAttributes(custom_attributes=custom or None, duration=timedelta(minutes=1))
    return shell(f"{Proof.WRITE}; exit 3", proof.path, attributes=attributes)


def test_an_end_is_not_lost_with_the_worker(
    executor: JobExecutor, config: PilotConfig, folder: Path, tmp_path: Path
) -> None:
    """Another process than the worker leaves the marker of the end, and the agent knows nothing of that."""
    gate, proof = Gate(tmp_path / "gate"), Proof(tmp_path / "proof")
    job = running_job(executor, spec_with_proof(proof, gate, **{"pilot.retry_on_pilot_loss": True}))
    assert eventually(lambda: proof.runs == 1, PATIENCE)
    (worker,) = processes(folder, WORKER)
    worker.suspend()

    gate.open()
    assert config.work_directory is not None
    assert eventually(lambda: any(config.work_directory.rglob("*.exit.run*")), PATIENCE)
    worker.kill()
    # it waits until the agent knows of the loss
    other = Job(shell("exit 4"))
    executor.submit(other)

    assert final_status(other).exit_code == 4
    assert final_status(job).exit_code == 3
    assert proof.runs == 1


def test_a_job_whose_starter_was_killed_goes_on(executor: JobExecutor, folder: Path, tmp_path: Path) -> None:
    gate, proof = Gate(tmp_path / "gate"), Proof(tmp_path / "proof")
    job = running_job(executor, spec_with_proof(proof, gate))
    assert eventually(lambda: proof.runs == 1, PATIENCE)

    kill_starter(folder)
    other = Job(shell("exit 4"))
    executor.submit(other)
    assert final_status(other).exit_code == 4
    gate.open()

    status = final_status(job)
    # a kernel tells the exit code of a process of another parent since Linux 6.15
    assert status.exit_code == 3 or status.reason is Reason.NODE_FAIL
    assert proof.runs == 1


def test_a_job_that_an_earlier_agent_has_started_can_be_cancelled(
    executor: JobExecutor, folder: Path, tmp_path: Path
) -> None:
    jobs = [running_job(executor, Gate(tmp_path / name).job(4)) for name in ("one", "other")]
    os.kill(agent_pid(folder), signal.SIGKILL)

    jobs[0].cancel()

    assert final_status(jobs[0]).state is JobState.CANCELED
    assert not jobs[1].status.final
    (tmp_path / "other").touch()
    assert final_status(jobs[1]).exit_code == 4


def test_a_job_is_ended_at_its_time_limit(executor: JobExecutor) -> None:
    job = running_job(executor, shell("sleep 1000", attributes=_limit(1)))

    status = final_status(job)

    assert (status.state, status.reason) == (JobState.FAILED, Reason.TIMEOUT)


def _limit(seconds: int) -> JobAttributes:
    return JobAttributes(duration=timedelta(seconds=seconds))
