"""The messages of `jpsi request run` about its job."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import jpsi
from jpsi import JobState, JobStatus
from jpsi_records.commands.messages import JobMessages

REASON = "the job requests more nodes than its partition allows"


class Seconds:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def job(state: JobState, message: str | None = None) -> Any:
    status = JobStatus(state, message=message)
    return SimpleNamespace(id="a1", native_id="17", executor=SimpleNamespace(name="slurm"), status=status)


def test_a_terminal_shows_each_state_once() -> None:
    messages = JobMessages(is_terminal=True)
    states = [JobState.NEW, JobState.QUEUED, JobState.QUEUED, JobState.ACTIVE, JobState.ACTIVE]

    found = [text for it in states for text in messages.update(job(it))]

    assert found == ["job a1 waits on slurm, native id 17", "the job runs"]


def test_the_reason_to_wait_is_told_once_after_some_seconds_and_what_to_change() -> None:
    clock = Seconds()
    messages = JobMessages(is_terminal=False, clock=clock)

    assert list(messages.update(job(JobState.QUEUED, REASON))) == []
    clock.now = 5.0
    (told,) = messages.update(job(JobState.QUEUED, REASON))
    assert list(messages.update(job(JobState.QUEUED, REASON))) == []
    assert list(messages.update(job(JobState.QUEUED, "3 of 4 cores are free"))) == [
        "the job waits: 3 of 4 cores are free"
    ]
    assert list(messages.update(job(JobState.QUEUED, "2 of 4 cores are free"))) == []
    assert told == f"the job waits: {REASON}; it never starts like this: lower nodes"


def test_a_script_sees_no_states() -> None:
    messages = JobMessages(is_terminal=False)

    assert [list(messages.update(job(it))) for it in (JobState.QUEUED, JobState.ACTIVE)] == [[], []]


def test_a_job_that_has_ended_needs_no_message() -> None:
    assert list(JobMessages(is_terminal=True).update(job(jpsi.JobState.COMPLETED))) == []
