"""A run says why its jobs wait: once for each task and reason, without those that depend on other tasks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from jobspec_support import begin_run, planned
from jpsi import Job, JobExecutor, JobSpec, JobState, JobStatus
from jpsi_jobspec.run_store.journal import Part
from jpsi_jobspec.running.driver import Driver
from jpsi_jobspec.running.wait_reasons import WaitReasons
from jpsi_testing.fake import FakeScheduler

BUSY = "the nodes are in use (Resources)"
AFTER = "the job waits for a job that it depends on (Dependency)"
NEVER = "the job requests more nodes than its partition allows (PartitionNodeLimit)"


TEXT = """\
version: 1
resources: {r: {type: node, count: 1}}
tasks:
- {name: a, command: "true", resources: r}
- {name: b, command: "true", resources: r, depends_on: [a]}
"""


class Waiting:
    """Wait reasons with a clock that the test sets."""

    def __init__(self) -> None:
        self.now = 0.0
        self.dependent: set[str] = set()
        self.lines: list[str] = []
        self.parts = {it.id: Part(it, 1) for it in planned(TEXT).entries}
        self.reasons = WaitReasons(
            self.lines.append, lambda part: part.entry.id in self.dependent, lambda: self.now
        )

    def at(self, now: float, **jobs: Job) -> list[str]:
        """Return what is reported at a time."""
        self.now = now
        self.lines.clear()
        self.reasons.update((job, self.parts[name]) for name, job in jobs.items())
        return list(self.lines)


def queued(message: str | None) -> Job:
    job = Job(JobSpec("true"))
    job._publish(JobStatus(JobState.QUEUED, message=message))
    return job


def test_a_reason_is_reported_once_after_some_seconds() -> None:
    waiting, a, b = Waiting(), queued(BUSY), queued(BUSY)

    reports = [waiting.at(it, a=a, b=b) for it in (0, 4, 5, 9)]

    assert reports == [[], [], [f"a, b wait: {BUSY}"], []]


def test_a_reason_whose_numbers_change_is_reported_once() -> None:
    waiting = Waiting()

    texts = [f"Insufficient amount of resource: ncpus (R: 2 A: {it})" for it in (1, 0)]
    job = queued(texts[0])
    reports = [waiting.at(it, a=job) for it in (1, 7)]
    job._publish(JobStatus(JobState.QUEUED, message=texts[1]))

    assert [len(it) for it in reports] == [0, 1]
    assert waiting.at(9, a=job) == []


def test_a_job_without_a_reason_and_one_that_runs_are_not_reported() -> None:
    waiting, silent, running = Waiting(), queued(None), queued(BUSY)
    waiting.at(0, a=silent, b=running)
    running._publish(JobStatus(JobState.ACTIVE))

    assert waiting.at(9, a=silent, b=running) == []


def test_a_dependency_is_no_reason_to_report() -> None:
    waiting, job = Waiting(), queued(AFTER)
    waiting.dependent.add("b")
    waiting.at(0, b=job)
    waiting.dependent.clear()

    assert waiting.at(9, b=job) == [], "the batch system was not polled since"


def test_a_job_that_can_never_start_is_reported_with_what_to_lower() -> None:
    waiting, job = Waiting(), queued(NEVER)
    waiting.dependent.add("b")
    waiting.at(0, b=job)

    assert waiting.at(9, b=job) == [f"b waits: {NEVER}; it never starts like this: lower nodes"]


@pytest.mark.usefixtures("log")
def test_a_run_says_why_its_tasks_wait(tmp_path: Path, fake_commands: Callable[..., FakeScheduler]) -> None:
    fake_commands("slurm", FakeScheduler(slots=0))
    journal = begin_run(TEXT, "slurm", tmp_path)
    lines: list[str] = []

    with JobExecutor("slurm") as executor:
        now = iter(range(0, 10_000, 10))
        driver = Driver(
            journal, executor, lambda *_: None, report=lines.append, clock=lambda: float(next(now))
        )
        driver.run(lambda: bool(lines))

    assert [line.split(":")[0] for line in lines] == ["a waits"]
