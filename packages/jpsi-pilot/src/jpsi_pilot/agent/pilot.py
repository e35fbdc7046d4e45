"""A pilot as the agent sees it: its resources, its remaining time, and the client that it serves."""

from __future__ import annotations

from pathlib import Path

import attrs

from jpsi import Job

from ..protocol import Settings
from .pilot_jobs import OUTPUT
from .placement import Kind, Room
from .state import PilotEntry

# The part of the margin that a pilot has to start.
_TO_START = 2 / 3
# The number of characters of a pilot's output that a message quotes.
_COMPLAINT = 300


@attrs.define(slots=True, kw_only=True)
class Pilot:
    """A pilot as this agent sees it."""

    entry: PilotEntry
    settings: Settings
    #: The pilot's job at its target; None while it is not submitted, or not found again.
    job: Job | None
    #: The time when a job last ran in it or could use it.
    useful: float
    #: The time when it began to run; None if it has not.
    begun: float | None = None
    #: The names of the places that it has had.
    reported: set[str] = attrs.field(factory=set)
    #: True if a job has ended in it.
    used: bool = False
    #: True if it gets no more jobs.
    closing: bool = False
    #: True if the agent has cancelled its job.
    told: bool = False
    #: True if nothing of it runs any more.
    over: bool = False

    @property
    def name(self) -> str:
        """The pilot's name."""
        return self.entry.name

    def seconds(self, now: float) -> float:
        """Return the longest time, in seconds, that a job that starts now may run in it."""
        if self.begun is None:
            return self.settings.walltime
        spare = self.settings.margin * _TO_START
        return min(self.settings.walltime, self.settings.walltime + spare - (now - self.begun))

    def is_for(self, kind: Kind) -> bool:
        """Return True if the pilot takes jobs of this kind."""
        return self.entry.settings == kind.settings and self.entry.client in {None, kind.client}

    def could_run(self, kind: Kind, now: float) -> bool:
        """Return True if such jobs would have enough time in it, if nothing else ran there."""
        return not self.closing and self.is_for(kind) and kind.need.seconds <= self.seconds(now)

    def room(self, name: str, now: float) -> Room:
        """Return the capacity of one of its nodes, as if nothing ran there."""
        settings = self.settings
        return Room(
            name=name,
            cores=settings.cores,
            gpus=settings.gpus,
            memory=settings.memory,
            seconds=self.seconds(now),
            settings=settings.key,
            client=self.entry.client,
        )

    def expected(self, now: float) -> list[Room]:
        """Return the capacity of each of its nodes that has not reported yet."""
        count = 0 if self.closing or self.over else self.settings.nodes - len(self.reported)
        return [self.room(f"{self.name}/expected.{number}", now) for number in range(count)]

    def complaint(self, folder: Path) -> str:
        """Return why it ended before it finished a job, as far as that is known.

        Args:
            folder: the pilot's directory, which has its output.
        """
        status = None if self.job is None else self.job.status
        said = "" if status is None else status.message or f"it is {status.state.name}"
        try:
            output = (folder / OUTPUT).read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            output = ""
        return f"{said}: {output[-_COMPLAINT:]}" if output else said or "it is gone"
