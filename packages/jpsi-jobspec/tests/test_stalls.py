"""Why jobs wait that have room is told."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jpsi import Job, JobExecutor, JobSpec, JobState, JobStatus, SubmitException
from jpsi.plugin import Observation
from jpsi_jobspec.groups.executors import why_waiting


class Says(JobExecutor):
    """An executor that says something of each job, or fails."""

    answer: Observation | SubmitException | None = None

    def info(self, job: Job) -> Observation | None:
        if isinstance(self.answer, SubmitException):
            raise self.answer
        return self.answer


@pytest.fixture
def says() -> Iterator[Says]:
    with Says("local") as executor:
        yield executor


def queued() -> Job:
    job = Job(JobSpec("true"))
    job._publish(JobStatus(JobState.QUEUED))
    return job


@pytest.mark.parametrize(
    ("answer", "why"),
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
    answer: Observation | SubmitException | None, why: str | None, says: Says
) -> None:
    says.answer = answer

    assert why_waiting(says, queued()) == why


def test_a_job_that_was_not_submitted_is_not_reported(says: Says) -> None:
    says.answer = Observation(native_state="waiting", state=JobState.QUEUED, message="why")

    assert why_waiting(says, None) is None
    assert why_waiting(says, Job(JobSpec("true"))) is None
