"""Reports why jobs are pending although slots are free."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jpsi import Job, JobExecutor, JobSpec, JobState, JobStatus, SubmitException
from jpsi.plugin import Observation
from jpsi_jobspec.groups.executors import why_waiting


class FakeExecutor(JobExecutor):
    """An executor that returns a given Observation of each job, or fails."""

    outcome: Observation | SubmitException | None = None

    def info(self, job: Job) -> Observation | None:
        if isinstance(self.outcome, SubmitException):
            raise self.outcome
        return self.outcome


@pytest.fixture
def fake_executor() -> Iterator[FakeExecutor]:
    with FakeExecutor("local") as executor:
        yield executor


def queued() -> Job:
    job = Job(JobSpec("true"))
    job._publish(JobStatus(JobState.QUEUED))
    return job


@pytest.mark.parametrize(
    ("outcome", "why"),
    [
        (
            Observation(native_state="waiting", state=JobState.QUEUED, message="srun is missing"),
            "srun is missing",
        ),
        (Observation(native_state="waiting", state=JobState.QUEUED), None),
        (None, None),
        (SubmitException("the agent does not answer"), None),
    ],
)
def test_a_waiting_job_is_reported_with_the_message_of_its_executor(
    outcome: Observation | SubmitException | None, why: str | None, fake_executor: FakeExecutor
) -> None:
    fake_executor.outcome = outcome

    assert why_waiting(fake_executor, queued()) == why


def test_a_job_that_was_not_submitted_is_not_reported(fake_executor: FakeExecutor) -> None:
    fake_executor.outcome = Observation(native_state="waiting", state=JobState.QUEUED, message="why")

    assert why_waiting(fake_executor, None) is None
    assert why_waiting(fake_executor, Job(JobSpec("true"))) is None
