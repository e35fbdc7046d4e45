"""The pilots of an agent: follows their states, and starts and ends them as jobs need."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from jpsi import Job, JobState

from ..protocol import Place, Settings
from .background_tasks import BackgroundTasks
from .journal import Journal
from .pilot import Pilot
from .pilot_lifecycle import NotStartedError, PilotLifecycle
from .placement import NodeCapacity, Waiting
from .scaling import PilotFigures, count_pilots_to_start, find_needless_pilots
from .state import PilotEntry

log = logging.getLogger(__name__)

# No job is placed in a pilot with less time left than this, in seconds.
_MIN_SECONDS = 1.0
# The backoff after a pilot failed without running a job, in seconds: the first delay and the longest.
_FIRST_DELAY, _LONGEST_DELAY = 2.0, 300.0


class Fleet:
    """The part of the poll loop that checks, starts and ends pilots, and records them in the journal."""

    def __init__(
        self,
        journal: Journal,
        folder: Path,
        now: Callable[[], float],
        lifecycle: PilotLifecycle,
        background_tasks: BackgroundTasks,
    ) -> None:
        """Begin with the pilots in the journal; look each of them up as a job and close it to new jobs.

        Args:
            journal: records every change.
            folder: the directory that holds the directories of pilots.
            now: returns the time.
            lifecycle: carries out slow steps, such as submitting a pilot.
            background_tasks: runs these steps in the background.
        """
        self._journal = journal
        self._state = journal.state
        self._folder = folder
        self._now = now
        self._lifecycle = lifecycle
        self._background_tasks = background_tasks
        self._failures: dict[str, int] = {}
        self._retry_at: dict[str, float] = {}
        #: The reasons why pilots do not start, by the key of their settings.
        self.problems: dict[str, str] = {}
        #: The pilots that are not known to be over, by name.
        self.pilots: dict[str, Pilot] = {}
        for entry in self._state.pilots.values():
            settings = self._state.settings[entry.settings]
            # its nodes report to an agent that is gone
            pilot = Pilot(
                entry=entry, settings=settings, job=None, last_useful=now(), is_closing=True, has_worked=True
            )
            self.pilots[entry.name] = pilot
            background_tasks.start(lifecycle.recall(pilot))

    # The state of pilots.

    def update_states(self, places: Mapping[str, Place], now: float) -> None:
        """Update which pilots have begun and which are over."""
        for place in places.values():
            pilot = self.pilots.get(place.pilot)
            if pilot is not None:
                pilot.reported_places.add(place.name)
        for pilot in self.pilots.values():
            job = pilot.job
            if pilot.began_at is None and job is not None and job.status.state is JobState.ACTIVE:
                pilot.began_at = min(now, job.status.time.timestamp())
            if pilot.began_at is None and pilot.reported_places:
                pilot.began_at = now
            if job is not None and job.status.final:
                pilot.is_over = pilot.is_closing = True

    def remove_ended(self, places: Mapping[str, Place]) -> None:
        """Remove pilots that are over and have no running job and no place left.

        A pilot counts as a failure if it ended before any of its jobs did, the agent did not cancel it, and
        jobs of its kind wait.
        """
        busy = {job.pilot for job in self._state.running} | {it.pilot for it in places.values()}
        for pilot in [it for it in self.pilots.values() if it.is_over and it.name not in busy]:
            if (
                not pilot.has_worked
                and not pilot.is_cancelled
                and any(pilot.is_for(it.kind) for it in self._state.waiting())
            ):
                self._record_failure(pilot, pilot.explain_end(self._folder / pilot.name))
            self._remove(pilot)

    def capacities(self, places: Mapping[str, Place], now: float) -> dict[str, NodeCapacity]:
        """Return the capacity of each place for jobs, as if nothing ran there."""
        capacities = {}
        for name, place in places.items():
            pilot = self.pilots.get(place.pilot)
            if pilot is not None and not pilot.is_closing:
                capacities[name] = pilot.capacity(name, now)
        return capacities

    def record_success(self, name: str) -> None:
        """Note that a job has ended in a pilot: the pilot works, so its settings' failures are forgotten.

        A pilot that only received jobs proves nothing.
        """
        pilot = self.pilots.get(name)
        if pilot is not None:
            pilot.has_worked = True
            self._failures.pop(pilot.settings.key, None)
            self.problems.pop(pilot.settings.key, None)

    def _remove(self, pilot: Pilot) -> None:
        self._journal.write({"what": "pilot_gone", "name": pilot.name, "time": self._now()})
        del self.pilots[pilot.name]
        shutil.rmtree(self._folder / pilot.name, ignore_errors=True)

    def _record_failure(self, pilot: Pilot, why: str) -> None:
        """Record the failure of a pilot; the backoff before the next one doubles each time."""
        key = pilot.settings.key
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        delay = min(_FIRST_DELAY * 2 ** (failures - 1), _LONGEST_DELAY)
        self._retry_at[key] = self._now() + delay
        summary = (
            "the last pilot ended before any of its jobs" if pilot.reported_places else "no pilot has started"
        )
        self.problems[key] = f"{summary}: {why}"
        log.warning("pilot %s failed: %s", pilot.name, why)

    # The number of pilots.

    def adjust_count(self, capacities: Sequence[NodeCapacity], now: float) -> None:
        """End pilots that no job needs, and start pilots for jobs that do not fit into the others.

        Args:
            capacities: the free capacity.
            now: the time.
        """
        waiting = self._state.waiting()
        running = {job.pilot for job in self._state.running}
        for pilot in self.pilots.values():
            if pilot.name in running or any(pilot.can_run(it.kind, now) for it in waiting):
                pilot.last_useful = now
        self._shrink(waiting, running, now)
        self._grow(waiting, capacities, now)

    def _shrink(self, waiting: Sequence[Waiting], running: set[str | None], now: float) -> None:
        for pilot in self.pilots.values():
            is_free = pilot.name not in running and not pilot.is_over
            figures = PilotFigures(
                name=pilot.name,
                idle_seconds=now - pilot.last_useful if is_free else None,
                is_late=pilot.last_useful < now and any(pilot.is_for(it.kind) for it in waiting),
                seconds=pilot.remaining_seconds(now),
            )
            idle_limit = 0.0 if pilot.is_closing else pilot.settings.idle
            if (
                find_needless_pilots([figures], idle_limit, _MIN_SECONDS)
                and pilot.job is not None
                and not pilot.is_cancelled
            ):
                if figures.is_late and not pilot.has_worked:
                    self._record_failure(pilot, "the last pilot took too long to start; increase margin")
                pilot.is_closing = pilot.is_cancelled = True
                self._background_tasks.start(self._lifecycle.cancel(pilot, pilot.job))

    def _grow(self, waiting: Sequence[Waiting], capacities: Sequence[NodeCapacity], now: float) -> None:
        expected = [capacity for pilot in self.pilots.values() for capacity in pilot.expected_capacities(now)]
        for key, client in dict.fromkeys((it.kind.settings, it.kind.client) for it in waiting):
            settings = self._state.settings[key]
            if now < self._retry_at.get(key, 0):
                continue
            waiting_here = [it for it in waiting if (it.kind.settings, it.kind.client) == (key, client)]
            own_pilots = [
                it for it in self.pilots.values() if it.is_for(waiting_here[0].kind) and not it.is_over
            ]
            entry = PilotEntry(name="0", settings=key, client=client, job_id="", time=now)
            fresh_pilot = Pilot(entry=entry, settings=settings, job=None, last_useful=now)
            allowed = settings.max_pilots - len(own_pilots)
            for _ in range(
                count_pilots_to_start(
                    waiting_here, [*capacities, *expected], fresh_pilot.expected_capacities(now), allowed
                )
            ):
                self._launch(settings, client, now)

    def _launch(self, settings: Settings, client: str | None, now: float) -> None:
        job = Job()
        name = str(self._state.last_pilot + 1)
        event = {"name": name, "settings": settings.key, "client": client, "job_id": job.id, "time": now}
        self._journal.write({"what": "pilot", **event}, synced=True)
        pilot = Pilot(entry=self._state.pilots[name], settings=settings, job=None, last_useful=now)
        self.pilots[name] = pilot
        self._background_tasks.start(self._start(pilot, job))

    async def _start(self, pilot: Pilot, job: Job) -> None:
        try:
            await self._lifecycle.start(pilot, job)
        except NotStartedError as e:
            self._record_failure(pilot, str(e))
            self._remove(pilot)
