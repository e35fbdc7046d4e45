"""Slurm's controller is killed, and comes back from a state before jobs had ended: none runs twice."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import attrs
import pytest
from real_slurm import PATIENCE, Control, command, custom, end, exit_code_in_queue, native_id

from jpsi import Job, JobExecutor, JobState, JobStatus
from jpsi_testing.conformance.base import Gate, Proof, shell

pytestmark = pytest.mark.alone

# A job that its node does not know counts as lost this long after the controller has come back:
# slurm.conf(5), the defaults of BatchStartTimeout and MessageTimeout, 10 s each, and a little more.
_BATCH_START_SECONDS = 23
CODES = (0, 3, 0, 7)
#: Their ends, as the controller has them.
IN_QUEUE = ["COMPLETED 0:0", "FAILED 3:0", "COMPLETED 0:0", "FAILED 7:0"]


@attrs.frozen
class Proving:
    """Jobs that wait for a gate, prove that they ran, and end with these codes."""

    folder: Path
    jobs: Sequence[Job]

    @property
    def gate(self) -> Gate:
        return Gate(self.folder / "gate")

    @property
    def runs(self) -> list[int]:
        return [Proof(self.folder / f"proof{number}").runs for number in range(len(self.jobs))]

    def refused(self) -> int:
        """How many of the jobs Slurm has started again, and their runners have not carried out."""
        folders = self.folder / "work" / "slurm" / "jobs"
        return sum((folders / job.id / "rerun.1").exists() for job in self.jobs)


def proving(folder: Path, *, is_held: bool) -> Proving:
    jobs = []
    for number, code in enumerate(CODES):
        text = f"{Gate.WAIT}; shift; {Proof.WRITE}; exit {code}"
        job = Job(shell(text, folder / "gate", folder / f"proof{number}"))
        if is_held and job.spec is not None:
            job.spec.attributes = custom(hold=True)
        jobs.append(job)
    return Proving(folder, jobs)


def submitted(executor: JobExecutor, proving: Proving, *, as_array: bool) -> None:
    if as_array:
        executor.submit_many(list(proving.jobs))
    else:
        for job in proving.jobs:
            executor.submit(job)


def kept(control: Control) -> None:
    """Have a copy of what the controller remembers now: it writes everything when it is stopped."""
    control("stop-controller")
    control("keep-state")
    control("up")


def restored(control: Control, proving: Proving) -> None:
    """Have the controller killed once all has ended, and come back from that copy."""
    # a node that has not done with a job takes it for another's
    assert [exit_code_in_queue(native_id(job)) for job in proving.jobs] == IN_QUEUE
    control("kill-controller")
    control("restore-state")
    control("up")


def ended_again(proving: Proving) -> list[str]:
    """Wait until Slurm has started and ended every job once more; returns the ends that it has of them."""
    for _ in range(int(PATIENCE)):
        if proving.refused() == len(proving.jobs):
            return [exit_code_in_queue(native_id(job)) for job in proving.jobs]
        time.sleep(1)
    return pytest.fail(f"Slurm has started {proving.refused()} jobs again")


def published(jobs: Sequence[Job]) -> list[JobStatus]:
    statuses = [end(job) for job in jobs]
    assert [it.exit_code for it in statuses] == list(CODES)
    return statuses


@pytest.mark.parametrize("as_array", [False, True], ids=["jobs", "an array"])
def test_jobs_that_had_not_begun_by_that_state_run_once(
    executor: JobExecutor, tmp_path: Path, control: Control, as_array: bool
) -> None:
    """Slurm starts them as if they were new."""
    waiting = proving(tmp_path, is_held=True)
    submitted(executor, waiting, as_array=as_array)
    kept(control)
    waiting.gate.open()
    _release(waiting)
    told = published(waiting.jobs)

    restored(control, waiting)
    _release(waiting)

    assert ended_again(waiting) == IN_QUEUE
    assert waiting.runs == [1] * len(CODES)
    assert [job.status for job in waiting.jobs] == told


@pytest.mark.parametrize("as_array", [False, True], ids=["jobs", "an array"])
def test_jobs_that_ran_by_that_state_run_once(
    executor: JobExecutor, tmp_path: Path, control: Control, as_array: bool
) -> None:
    """Slurm misses them on their nodes, and puts them back."""
    running = proving(tmp_path, is_held=False)
    submitted(executor, running, as_array=as_array)
    for job in running.jobs:
        assert job.wait(PATIENCE, JobState.ACTIVE)
    kept(control)
    running.gate.open()
    told = published(running.jobs)

    restored(control, running)
    # Nodes tell what runs there when they register, else every 200 s; BatchStartTimeout has passed by then.
    time.sleep(_BATCH_START_SECONDS)
    for node in ("node01", "node02"):
        control(f"kill-node {node}")
    control("up")

    assert ended_again(running) == IN_QUEUE
    assert running.runs == [1] * len(CODES)
    assert [job.status for job in running.jobs] == told


def _release(proving: Proving) -> None:
    for job in proving.jobs:
        command("scontrol", "release", native_id(job))
