"""Lost workers, pilots and agents: no job is lost, and none runs twice unless retries are permitted."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from jpsi import JobAttributes, JobExecutor, JobState, Reason
from jpsi_pilot.config import PilotConfig
from jpsi_testing.conformance.base import Gate, shell
from pilot_losses import LossTests, pytest_generate_tests, terminate_pilot  # noqa: F401  pytest calls it
from pilot_support import agent_pid, end_agent, final_status, processes, running_job

WORKER = "jpsi_pilot.dask.worker"
SUPERVISOR = "jpsi_pilot.node.node_supervisor"


@pytest.fixture
def config(tmp_path: Path) -> Iterator[PilotConfig]:
    """Return a configuration with pilots of two cores."""
    yield PilotConfig(
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


class TestLossesOfDask(LossTests):
    losses = (kill_worker, kill_supervisor, kill_both, terminate_pilot)


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
