"""The times at which a job entered its states, and the source of each time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

import jpsi
from jpsi import Job, JobExecutor, JobSpec, JobState, JobStatus

PATIENCE = 60.0
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


def times(job: Job) -> dict[JobState, datetime]:
    """Return the time at which a job entered each of its states."""
    return {status.state: status.time for status in job._delivered_statuses()}


@pytest.mark.clause("status-time")
@pytest.mark.parametrize("way", ["attach", "recall"])
def test_a_later_client_gets_the_time_of_the_end(
    executor: JobExecutor, config: jpsi.ExecutorConfig, way: str
) -> None:
    # longer than the clock of the file system may be behind
    job = Job(JobSpec("/bin/sleep", ["0.1"]))
    executor.submit(job)
    assert job.wait(PATIENCE) is not None

    with JobExecutor("local", config=config) as other:
        if way == "attach":
            same = Job()
            other.attach(same, job.native_id or "")
        else:
            (same,) = other.recall([job.id])
        status = same.wait(PATIENCE)

    assert status is not None
    assert status.time == job.status.time
    assert status.metadata["time.source"] == "marker"


@pytest.mark.clause("status-time")
def test_an_end_before_the_job_object_was_made_keeps_its_time() -> None:
    job = Job()

    job._publish(JobStatus(JobState.COMPLETED, time=LONG_AGO, metadata={"time.source": "accounting"}))

    assert set(times(job).values()) == {LONG_AGO}
    assert job.status.metadata["time.source"] == "accounting"
    assert [it.metadata.get("time.source") for it in job._delivered_statuses()][1:] == [
        "next_state",
        "next_state",
        "accounting",
    ]


@pytest.mark.clause("status-time")
def test_times_do_not_decrease_within_a_job() -> None:
    job, now = Job(), datetime.now(UTC) + timedelta(hours=1)

    job._publish(JobStatus(JobState.QUEUED, time=now))
    job._publish(JobStatus(JobState.ACTIVE, time=LONG_AGO, metadata={"time.source": "queue"}))

    assert job.status.time == now
    assert job.status.metadata["time.source"] == "previous_state"
    assert all(one.time <= other.time for one, other in pairwise(job._delivered_statuses()))


@pytest.mark.clause("status-time")
def test_a_status_without_another_source_has_the_time_of_its_observation() -> None:
    job = Job()

    job._publish(JobStatus(JobState.QUEUED))

    assert job.status.metadata["time.source"] == "observation"


@pytest.mark.clause("status-time")
def test_a_repeated_report_of_a_state_does_not_change_the_source_of_its_time() -> None:
    job = Job()
    job._publish(JobStatus(JobState.ACTIVE, time=LONG_AGO, metadata={"time.source": "marker"}))

    job._publish(JobStatus(JobState.ACTIVE, metadata={"time.source": "queue", "sys.state": "R"}))

    assert (job.status.time, job.status.metadata["time.source"]) == (LONG_AGO, "marker")
    assert job.status.metadata["sys.state"] == "R"
