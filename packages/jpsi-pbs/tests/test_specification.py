"""The specification's example for Torque, copied verbatim."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import jpsi as psij
from jpsi_testing.fake import FakeScheduler, on_path

N, M = 6, 2
PATIENCE = 120.0


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeScheduler]:
    """A Torque with room for all jobs, so that only the program limits how many run."""
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS"):
        monkeypatch.setenv(name, str(tmp_path / name))
    for name in ("JPSI_CONFIG", "JPSI_PLUGIN_PATH"):
        monkeypatch.delenv(name, raising=False)
    with FakeScheduler(slots=N) as scheduler, on_path("torque", scheduler):
        yield scheduler


class ThrottledSubmitter:
    def __init__(self) -> None:
        self.jex = psij.JobExecutor.get_instance('torque', '>= 0.2')  # fmt: skip  # noqa: Q000  as it is written there
        # keep track of completed jobs so that we can submit the rest
        self.jex.set_job_status_callback(self.callback)
        self.count = 0
        self.ended = 0
        self.most_active = 0
        self.all_ended = threading.Event()

    def make_job(self) -> psij.Job:
        attributes = psij.JobAttributes(duration=timedelta(minutes=1))
        return psij.Job(psij.JobSpec(executable="/bin/true", attributes=attributes))

    def submit_next(self) -> None:
        if self.count < N:
            self.most_active = max(self.most_active, self.count + 1 - self.ended)
            self.count += 1
            self.jex.submit(self.jobs[self.count - 1])

    def start(self) -> None:
        # create list of jobs
        self.jobs = [self.make_job() for i in range(N)]

        # submit initial M jobs
        while self.count < M:
            self.submit_next()

    def callback(self, job: psij.Job, status: psij.JobStatus) -> None:
        assert job in self.jobs
        if status.final:
            # a previously submitted job is now done, we have room to submit another
            self.ended += 1
            self.submit_next()
            if self.ended == N:
                self.all_ended.set()


@pytest.mark.clause("example-throttle", "executor-instance", "executor-callback")
def test_jobs_are_throttled_on_torque(fake: FakeScheduler) -> None:
    submitter = ThrottledSubmitter()
    # none ends before the program has submitted as many as it may
    fake.slots = 0

    submitter.start()
    fake.slots = N

    assert submitter.all_ended.wait(PATIENCE)
    assert {job.status.state for job in submitter.jobs} == {psij.JobState.COMPLETED}
    assert len(fake.jobs) == N
    assert submitter.most_active == M
