"""A controller that is killed and restored from a state before jobs had ended: no job runs twice."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import attrs
import pytest
from real_slurm import PATIENCE, Control, command, custom, exit_code_in_queue, final_status, native_id

from jpsi import Job, JobExecutor, JobState, JobStatus
from jpsi_testing.conformance.base import Gate, Proof, shell

pytestmark = pytest.mark.alone

# A job that its node does not know counts as lost this long after the controller's restart:
# slurm.conf(5), the defaults of BatchStartTimeout and MessageTimeout, 10 s each, and a little more.
_BATCH_START_SECONDS = 23
CODES = (0, 3, 0, 7)
#: Their ends, according to the controller.
IN_QUEUE = ["COMPLETED 0:0", "FAILED 3:0", "COMPLETED 0:0", "FAILED 7:0"]


@attrs.frozen
class GatedJobs:
    """Jobs that wait for a gate, prove that they ran, and exit with these codes."""

    folder: Path
    jobs: Sequence[Job]

    @property
    def gate(self) -> Gate:
        return Gate(self.folder / "gate")

    @property
    def runs(self) -> list[int]:
        return [Proof(self.folder / f"proof{number}").runs for number in range(len(self.jobs))]

    def refused(self) -> int:
        """Return how many of these jobs Slurm started again and their runners refused to run."""
        folders = self.folder / "work" / "slurm" / "jobs"
        return sum((folders / job.id / "rerun.1").exists() for job in self.jobs)


def gated_jobs(folder: Path, *, is_held: bool) -> GatedJobs:
    jobs = []
    for number, code in enumerate(CODES):
        text = f"{Gate.WAIT}; shift; {Proof.WRITE}; exit {code}"
        job = Job(shell(text, folder / "gate", folder / f"proof{number}"))
        if is_held and job.spec is not None:
            job.spec.attributes = custom(hold=True)
        jobs.append(job)
    return GatedJobs(folder, jobs)


def submitted(executor: JobExecutor, gated_jobs: GatedJobs, *, as_array: bool) -> None:
    if as_array:
        executor.submit_many(list(gated_jobs.jobs))
    else:
        for job in gated_jobs.jobs:
            executor.submit(job)


def save_state(control: Control) -> None:
    """Return a copy of the controller's state, which it writes when it stops."""
    control("stop-controller")
    control("keep-state")
    control("up")


def restore_state(control: Control, gated_jobs: GatedJobs) -> None:
    """Kill the controller once all jobs have ended, and start it with that state."""
    # a node that has not cleaned up after a job takes the new run for that job
    assert [exit_code_in_queue(native_id(job)) for job in gated_jobs.jobs] == IN_QUEUE
    control("kill-controller")
    control("restore-state")
    control("up")


def wait_for_second_ends(gated_jobs: GatedJobs) -> list[str]:
    """Wait until Slurm has started and ended every job once more; return these ends."""
    for _ in range(int(PATIENCE)):
        if gated_jobs.refused() == len(gated_jobs.jobs):
            return [exit_code_in_queue(native_id(job)) for job in gated_jobs.jobs]
        time.sleep(1)
    return pytest.fail(f"Slurm has started {gated_jobs.refused()} jobs again")


def published_statuses(jobs: Sequence[Job]) -> list[JobStatus]:
    statuses = [final_status(job) for job in jobs]
    assert [it.exit_code for it in statuses] == list(CODES)
    return statuses


@pytest.mark.parametrize("as_array", [False, True], ids=["jobs", "an array"])
def test_jobs_pending_in_the_restored_state_run_once(
    executor: JobExecutor, tmp_path: Path, control: Control, as_array: bool
) -> None:
    """Slurm starts them as if they were new."""
    waiting = gated_jobs(tmp_path, is_held=True)
    submitted(executor, waiting, as_array=as_array)
    save_state(control)
    waiting.gate.open()
    _release(waiting)
    statuses = published_statuses(waiting.jobs)

    restore_state(control, waiting)
    _release(waiting)

    assert wait_for_second_ends(waiting) == IN_QUEUE
    assert waiting.runs == [1] * len(CODES)
    assert [job.status for job in waiting.jobs] == statuses


@pytest.mark.parametrize("as_array", [False, True], ids=["jobs", "an array"])
def test_jobs_running_in_the_restored_state_run_once(
    executor: JobExecutor, tmp_path: Path, control: Control, as_array: bool
) -> None:
    """Slurm does not find them on their nodes, and requeues them."""
    running = gated_jobs(tmp_path, is_held=False)
    submitted(executor, running, as_array=as_array)
    for job in running.jobs:
        assert job.wait(PATIENCE, JobState.ACTIVE)
    save_state(control)
    running.gate.open()
    statuses = published_statuses(running.jobs)

    restore_state(control, running)
    # Nodes report their jobs when they register, else every 200 s; BatchStartTimeout has passed by then.
    time.sleep(_BATCH_START_SECONDS)
    for node in ("node01", "node02"):
        control(f"kill-node {node}")
    control("up")

    assert wait_for_second_ends(running) == IN_QUEUE
    assert running.runs == [1] * len(CODES)
    assert [job.status for job in running.jobs] == statuses


def _release(gated_jobs: GatedJobs) -> None:
    for job in gated_jobs.jobs:
        command("scontrol", "release", native_id(job))
