"""A pilot as the agent sees it: its resources, its remaining time, and the client that it serves.

The fleet keeps one `Pilot` for each pilot that is not known to be over.
"""

from __future__ import annotations

from pathlib import Path

import attrs

from jpsi import Job, JobState

from ..protocol import Settings
from .pilot_jobs import OUTPUT
from .placement import Kind, NodeCapacity
from .state import PilotEntry

# The part of the margin that a pilot has to start.
_START_SHARE = 2 / 3
# No job is placed in a pilot with less time left than this, in seconds.
_MIN_SECONDS = 1.0
# A pilot that fails within so many seconds, and of which no node has reported, has ended at once.
_EARLY_SECONDS = 60.0
# A node that has been missing for so many seconds is not expected any more.
_NODE_TIMEOUT = 300.0
# The number of characters of a pilot's output that a message quotes.
_MAX_OUTPUT = 300


@attrs.define(slots=True, kw_only=True)
class Pilot:
    """A pilot as this agent sees it."""

    entry: PilotEntry
    settings: Settings
    #: The pilot's job at its target; None while it is not submitted, or not found again.
    job: Job | None
    #: The time when a job last ran in it or could use it.
    last_useful: float
    #: The time when it began to run; None if it has not.
    began_at: float | None = None
    #: The names of the nodes that it has had.
    reported_nodes: set[str] = attrs.field(factory=set)
    #: The number of nodes that it has now.
    node_count: int = 0
    #: The time since when it has had fewer nodes than it requested; None if it has all, or has not begun.
    incomplete_since: float | None = None
    #: True if a job has ended in it.
    has_worked: bool = False
    #: True if it gets no more jobs.
    is_closing: bool = False
    #: True if the agent has cancelled its job.
    is_cancelled: bool = False
    #: True if nothing of it runs any more.
    is_over: bool = False

    @property
    def name(self) -> str:
        """The pilot's name."""
        return self.entry.name

    def update(self, node_count: int, now: float) -> None:
        """Note how many nodes it has, whether it has begun, and whether it is over."""
        job = self.job
        if self.began_at is None and job is not None and job.status.state is JobState.ACTIVE:
            self.began_at = min(now, job.status.time.timestamp())
        if self.began_at is None and self.reported_nodes:
            self.began_at = now
        self.node_count = node_count
        # the nodes of a pilot of an earlier agent, which is closing, report to that
        if self.began_at is None or node_count >= self.settings.nodes or self.is_closing:
            self.incomplete_since = None
        elif self.incomplete_since is None:
            self.incomplete_since = now
        if job is not None and job.status.final:
            self.is_over = self.is_closing = True

    def remaining_seconds(self, now: float) -> float:
        """Return the longest time, in seconds, that a job that starts now may run in it."""
        if self.began_at is None:
            return self.settings.walltime
        spare = self.settings.margin * _START_SHARE
        return min(self.settings.walltime, self.settings.walltime + spare - (now - self.began_at))

    def is_for(self, kind: Kind) -> bool:
        """Return True if the pilot takes jobs of this kind."""
        return self.entry.settings == kind.settings and self.entry.client in {None, kind.client}

    def stays_incomplete(self, now: float) -> bool:
        """Return True if it has lacked nodes for so long that they are not expected any more."""
        return self.incomplete_since is not None and now - self.incomplete_since >= _NODE_TIMEOUT

    def expected_nodes(self, now: float) -> int:
        """Return the number of nodes that it has, or may still get."""
        return self.node_count if self.stays_incomplete(now) else self.settings.nodes

    def can_run(self, kind: Kind, now: float) -> bool:
        """Return True if such jobs would have enough nodes and time in it, if nothing else ran there."""
        need = kind.need
        fits = need.nodes <= self.expected_nodes(now) and need.seconds <= self.remaining_seconds(now)
        return fits and not self.is_closing and self.is_for(kind)

    def is_out_of_use(self, now: float) -> bool:
        """Return True if it has been idle for too long, or has too little time left, for one that is idle."""
        idle_limit = 0.0 if self.is_closing else self.settings.idle
        return now - self.last_useful >= idle_limit or self.remaining_seconds(now) < _MIN_SECONDS

    def capacity(self, name: str, now: float) -> NodeCapacity:
        """Return the capacity of one of its nodes, as if nothing ran there."""
        settings = self.settings
        return NodeCapacity(
            name=name,
            cores=settings.cores,
            gpus=settings.gpus,
            memory=settings.memory,
            seconds=self.remaining_seconds(now),
            settings=settings.key,
            client=self.entry.client,
        )

    def expected_capacities(self, now: float) -> list[NodeCapacity]:
        """Return the capacity of each of its nodes that has not reported yet."""
        is_ending = self.is_closing or self.is_over
        count = 0 if is_ending else self.expected_nodes(now) - len(self.reported_nodes)
        return [self.capacity(f"{self.name}/expected.{number}", now) for number in range(count)]

    def explain_delay(self) -> str:
        """Return why none of the jobs that wait for it can run in it, although it has begun."""
        if self.incomplete_since is None:
            return "the last pilot took too long to start; increase margin"
        return f"the last pilot had only {self.node_count} of its {self.settings.nodes} nodes"

    def ended_at_once(self, now: float) -> bool:
        """Return True if it has failed as soon as it began, so that the next one will probably fail, too."""
        has_failed = self.job is not None and self.job.status.state is JobState.FAILED
        ran = 0.0 if self.began_at is None else now - self.began_at
        return has_failed and not self.reported_nodes and ran < _EARLY_SECONDS

    def explain_end(self, folder: Path) -> str:
        """Return why it ended before it finished a job, as far as that is known.

        Args:
            folder: the pilot's directory, which has its output.
        """
        status = None if self.job is None else self.job.status
        explanation = "" if status is None else status.message or f"its job is {status.state.name}"
        try:
            output = (folder / OUTPUT).read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            output = ""
        return (
            f"{explanation}: {output[-_MAX_OUTPUT:]}" if output else explanation or "its job no longer exists"
        )
