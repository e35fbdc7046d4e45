"""A job whose states a test tells by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from jpsi import Job, JobState, JobStatus

#: Seconds after which a test that waits has failed.
PATIENCE = 30


class Gate:
    """An executor's worth of news, sent by hand: binds a job and publishes what a test says."""

    name = "gate"

    def __init__(self, job: Job) -> None:
        self.job = job
        self.deadlines: list[float] = []
        self._engine = SimpleNamespace(note_deadline=self.deadlines.append)
        attempt = job._reserve(self)
        job._bind("1", attempt)

    def _notify(self, job: Job, status: JobStatus) -> None:
        pass

    def publish(self, *states: JobState, **fields: Any) -> None:
        for state in states:
            self.job._publish(JobStatus(state, **fields))
