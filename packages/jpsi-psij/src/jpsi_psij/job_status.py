"""The status of a job as psij has it: its time is a number of seconds."""

from __future__ import annotations

import time
from typing import Any

import attrs

import jpsi

from .job_state import JobState


def _seconds(given: float | None) -> float:
    return time.time() if given is None else given


@attrs.define(slots=False, eq=False, repr=False)
class JobStatus:
    """A state that a job entered, when, and further facts."""

    state: JobState
    #: Seconds since the epoch.
    time: float = attrs.field(default=None, converter=_seconds)
    message: str | None = None
    exit_code: int | None = None
    metadata: dict[str, Any] | None = None

    @classmethod
    def of(cls, status: jpsi.JobStatus) -> JobStatus:
        """Return a status of jpsi as psij has it."""
        # psij-python gives no metadata with an end, and programs rely on it
        return cls(JobState[status.state.name], status.time.timestamp(), status.message, status.exit_code)

    @property
    def final(self) -> bool:
        """True if the state is final."""
        return self.state.final

    def __repr__(self) -> str:
        parts = [str(self.state), f"time={self.time}"]
        parts += [] if self.exit_code is None else [f"exit_code={self.exit_code}"]
        parts += [] if self.message is None else [f"message={self.message}"]
        return f"JobStatus[{', '.join(parts)}]"
