from __future__ import annotations

import pytest

from jpsi import JobState, JobStatus, Reason
from jpsi_records.jobs.job_outcome import INFRASTRUCTURE, end_of

STATES = [
    (JobStatus(JobState.COMPLETED, exit_code=0), "complete", 0, None),
    (JobStatus(JobState.FAILED, exit_code=2, reason=Reason.EXIT_CODE), "complete", 2, "exit_code"),
    (JobStatus(JobState.FAILED, exit_code=139, reason=Reason.SIGNAL), "complete", 139, "signal"),
    (JobStatus(JobState.FAILED, exit_code=143, reason=Reason.TIMEOUT), "cancelled", None, "timeout"),
    (
        JobStatus(JobState.FAILED, exit_code=137, reason=Reason.OUT_OF_MEMORY),
        "cancelled",
        None,
        "out_of_memory",
    ),
    (JobStatus(JobState.CANCELED, reason=Reason.CANCELLED), "cancelled", None, "cancelled"),
    (JobStatus(JobState.CANCELED), "cancelled", None, "canceled"),
    (JobStatus(JobState.FAILED, reason=Reason.SETUP), "cancelled", None, "setup"),
]


@pytest.mark.parametrize(("status", "state", "code", "reason"), STATES, ids=str)
def test_only_the_outcome_of_the_computation_itself_is_a_result(
    status: JobStatus, state: str, code: int | None, reason: str | None
) -> None:
    end = end_of(status, attempts_left=3)

    assert (end.state.value, end.exit_code, end.reason) == (state, code, reason)


@pytest.mark.parametrize("reason", sorted(INFRASTRUCTURE, key=str))
def test_infrastructure_failures_are_retried_while_attempts_remain(reason: Reason) -> None:
    status = JobStatus(JobState.FAILED, reason=reason)

    assert end_of(status, attempts_left=1).state.value == "queued"
    assert end_of(status, attempts_left=0).state.value == "cancelled"
