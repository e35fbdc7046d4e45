"""What is lost with a worker, a pilot, an agent: never a job, and none runs twice unless it may."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import psutil
import pytest

from jpsi import Job, JobAttributes, JobExecutor, JobState, Reason
from jpsi.testing.conformance_kit import Gate, Proof, Sign, shell
from jpsi_pilot.config import PilotConfig
from pilot_support import PATIENCE, agent_pid, end, end_agent, lives, processes, proving, running

WORKER = "jpsi_pilot.dask_worker"
WARDEN = "jpsi_pilot.warden"


@pytest.fixture
def config(tmp_path: Path) -> Iterator[PilotConfig]:
    """Pilots of two cores."""
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
    """The agent's folder."""
    assert config.work_directory is not None
    return config.work_directory / "pilots"


@pytest.fixture
def executor(config: PilotConfig) -> Iterator[JobExecutor]:
    """An executor with these pilots."""
    with JobExecutor.get_instance("pilot", config=config) as executor:
        yield executor


def kill_worker(folder: Path) -> None:
    (worker,) = processes(folder, WORKER)
    worker.kill()


def kill_warden(folder: Path) -> None:
    (warden,) = processes(folder, WARDEN)
    warden.kill()


def tell_pilot(folder: Path) -> None:
    (warden,) = processes(folder, WARDEN)
    # as an executor ends a job
    os.killpg(os.getsid(warden.pid), signal.SIGTERM)


def kill_both(folder: Path) -> None:
    (warden,), (worker,) = processes(folder, WARDEN), processes(folder, WORKER)
    for it in (warden, worker):
        it.suspend()
    for it in (warden, worker):
        it.kill()


LOSSES = pytest.mark.parametrize("lose", [kill_worker, kill_warden, kill_both, tell_pilot])


@LOSSES
def test_a_job_that_ran_in_a_lost_pilot_has_failed_and_is_gone(
    executor: JobExecutor, folder: Path, tmp_path: Path, lose: Callable[[Path], None]
) -> None:
    sign = Sign(tmp_path / "sign")
    job = running(executor, shell('echo $$ > "$1"; echo > "$2"; sleep 1000', tmp_path / "pid", sign.path))
    waiting = Job(shell("exit 4"))
    assert sign.wait(PATIENCE)
    pid = int((tmp_path / "pid").read_text())

    lose(folder)
    executor.submit(waiting)

    status = end(job)
    assert (status.state, status.reason) == (JobState.FAILED, Reason.NODE_FAIL)
    assert not lives(pid)
    assert end(waiting).exit_code == 4, "it runs in the next pilot"


@LOSSES
def test_a_job_that_may_runs_again(
    executor: JobExecutor, folder: Path, tmp_path: Path, lose: Callable[[Path], None]
) -> None:
    gate, proof = Gate(tmp_path / "gate"), Proof(tmp_path / "proof")
    job = running(executor, proving(proof, gate, **{"pilot.retry_on_pilot_loss": True}))

    workers = processes(folder, WORKER)
    lose(folder)
    psutil.wait_procs(workers, PATIENCE)
    gate.open()

    status = end(job)
    assert (status.state, status.exit_code) == (JobState.FAILED, 3)
    assert proof.runs == 2


def test_jobs_run_on_when_the_agent_is_killed_and_the_next_knows_how_they_ended(
    executor: JobExecutor, config: PilotConfig, folder: Path, tmp_path: Path
) -> None:
    gate, proofs = Gate(tmp_path / "gate"), [Proof(tmp_path / f"proof{number}") for number in range(4)]
    jobs = [Job(proving(proof, gate)) for proof in proofs]
    executor.submit_many(jobs)
    for job in jobs[:2]:
        assert job.wait(PATIENCE, target_states=JobState.ACTIVE)

    os.kill(agent_pid(folder), signal.SIGKILL)
    gate.open()

    with JobExecutor.get_instance("pilot", config=config) as fresh:
        others = {it.id: it for it in fresh.recover()}
        assert [end(others.get(job.id, job)).exit_code for job in jobs] == [3] * 4
    assert [end(job).exit_code for job in jobs] == [3] * 4
    assert [proof.runs for proof in proofs] == [1] * 4


def test_a_job_that_an_earlier_agent_has_started_can_be_cancelled(
    executor: JobExecutor, folder: Path, tmp_path: Path
) -> None:
    jobs = [running(executor, Gate(tmp_path / name).job(4)) for name in ("one", "other")]
    os.kill(agent_pid(folder), signal.SIGKILL)

    jobs[0].cancel()

    assert end(jobs[0]).state is JobState.CANCELED
    assert not jobs[1].status.final
    (tmp_path / "other").touch()
    assert end(jobs[1]).exit_code == 4


def test_a_job_is_ended_when_its_time_is_up(executor: JobExecutor) -> None:
    job = running(executor, shell("sleep 1000", attributes=_limit(1)))

    status = end(job)

    assert (status.state, status.reason) == (JobState.FAILED, Reason.TIMEOUT)


def _limit(seconds: int) -> JobAttributes:
    return JobAttributes(duration=timedelta(seconds=seconds))
