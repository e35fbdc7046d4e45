"""The states of a job, with the values and the order that psij gives them."""

from __future__ import annotations

import enum


class JobState(enum.Enum):
    """A state of a job: that of psij-python, HELD as Open OnDemand knows it, or a phase of staging.

    HELD is a state of the jobs that `JobExecutor.info` lists alone. Only jobs that stage files or clean up
    pass through the phases of staging.
    """

    NEW = 0
    QUEUED = 1
    ACTIVE = 2
    COMPLETED = 3
    FAILED = 4
    CANCELED = 5
    HELD = 6
    STAGE_IN = 7
    STAGE_OUT = 8
    CLEANUP = 9

    @property
    def final(self) -> bool:
        """True if a job can no longer change once it is in this state."""
        return _ORDER[self] == _FINAL

    def is_greater_than(self, other: JobState) -> bool | None:
        """Return True if this state comes after `other`; None if the two cannot be compared."""
        if self is not other and _ORDER[self] == _ORDER[other]:
            return None
        return _ORDER[self] > _ORDER[other]

    @staticmethod
    def from_name(name: str) -> JobState:
        """Return the state of this name."""
        return JobState[name]

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return self.name


_FINAL = 6
_ORDER = {
    JobState.NEW: 0,
    JobState.QUEUED: 1,
    JobState.HELD: 1,
    JobState.STAGE_IN: 2,
    JobState.ACTIVE: 3,
    JobState.STAGE_OUT: 4,
    JobState.CLEANUP: 5,
    JobState.COMPLETED: _FINAL,
    JobState.FAILED: _FINAL,
    JobState.CANCELED: _FINAL,
}


class JobStateOrder:
    """The states that must have come before others."""

    @staticmethod
    def prev(state: JobState) -> JobState | None:
        """Return the state right before this one; None if there is none, or if it is not certain."""
        return {
            JobState.QUEUED: JobState.NEW,
            JobState.ACTIVE: JobState.QUEUED,
            JobState.COMPLETED: JobState.ACTIVE,
        }.get(state)
