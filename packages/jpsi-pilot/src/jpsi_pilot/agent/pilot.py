"""A pilot as the agent sees it: what it has, for how long, and for whom."""

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
# How much is told of what a pilot has printed.
_COMPLAINT = 300


@attrs.define(slots=True, kw_only=True)
class Pilot:
    """A pilot as this agent sees it."""

    entry: PilotEntry
    settings: Settings
    #: The job that it is; None while nobody knows.
    job: Job | None
    #: When it was last of use.
    useful: float
    #: When it began to run; None if it has not.
    begun: float | None = None
    #: The places that it has had.
    reported: set[str] = attrs.field(factory=set)
    #: Whether it was ever given a job.
    used: bool = False
    #: Whether it gets no jobs any more.
    closing: bool = False
    #: Whether it has been told to end.
    told: bool = False
    #: Whether it is known that nothing of it runs any more.
    over: bool = False

    @property
    def name(self) -> str:
        """Its name."""
        return self.entry.name

    def seconds(self, now: float) -> float:
        """How long a job that starts now may run in it."""
        if self.begun is None:
            return self.settings.walltime
        spare = self.settings.margin * _TO_START
        return min(self.settings.walltime, self.settings.walltime + spare - (now - self.begun))

    def is_for(self, kind: Kind) -> bool:
        """Whether it was started for such jobs."""
        return self.entry.settings == kind.settings and self.entry.client in {None, kind.client}

    def could_run(self, kind: Kind, now: float) -> bool:
        """Whether such jobs have time enough in it, if nothing else ran there."""
        return not self.closing and self.is_for(kind) and kind.need.seconds <= self.seconds(now)

    def room(self, name: str, now: float) -> Room:
        """What a node of it has if nothing runs there."""
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
        """What those of its nodes will have that have not reported."""
        count = 0 if self.closing or self.over else self.settings.nodes - len(self.reported)
        return [self.room(f"{self.name}/expected.{number}", now) for number in range(count)]

    def complaint(self, folder: Path) -> str:
        """Why it has ended before it could do anything, as far as that is known.

        Args:
            folder: its folder.
        """
        status = None if self.job is None else self.job.status
        said = "" if status is None else status.message or f"it is {status.state.name}"
        try:
            output = (folder / OUTPUT).read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            output = ""
        return f"{said}: {output[-_COMPLAINT:]}" if output else said or "it is gone"
