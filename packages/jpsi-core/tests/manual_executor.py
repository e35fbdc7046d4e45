"""An executor whose statuses a test publishes by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from jpsi import Job, JobState, JobStatus

#: Seconds after which a test that waits has failed.
PATIENCE = 30


class ManualExecutor:
    """An executor of one job, which it binds; a test publishes the job's states."""

    name = "manual"

    def __init__(self, job: Job) -> None:
        self.job = job
        self.deadlines: list[float] = []
        self._engine = SimpleNamespace(note_deadline=self.deadlines.append)
        attempt = job._reserve(self)
        job._bind("1", attempt)

    def _notify(self, *_: object, is_behind: bool) -> bool:
        return is_behind

    def publish(self, *states: JobState, **fields: Any) -> None:
        for state in states:
            self.job._publish(JobStatus(state, **fields))
