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
from .placement import Room, Waiting
from .scaling import Pilot as PilotFigures
from .scaling import more, needless
from .state import PilotEntry

log = logging.getLogger(__name__)

# No job is placed in a pilot with less time left than this, in seconds.
_SHORTEST = 1.0
# The backoff after a pilot failed without running a job, in seconds: the first delay and the longest.
_FIRST_PAUSE, _LONGEST_PAUSE = 2.0, 300.0


class Fleet:
    """The part of the poll loop that checks, starts and ends pilots, and records them in the journal."""

    def __init__(
        self,
        journal: Journal,
        folder: Path,
        now: Callable[[], float],
        work: PilotLifecycle,
        steps: BackgroundTasks,
    ) -> None:
        """Begin with the pilots in the journal; look each of them up as a job and close it to new jobs.

        Args:
            journal: records every change.
            folder: the directory that holds the directories of pilots.
            now: returns the time.
            work: carries out slow steps, such as submitting a pilot.
            steps: runs these steps in the background.
        """
        self._journal = journal
        self._state = journal.state
        self._folder = folder
        self._now = now
        self._work = work
        self._steps = steps
        self._failures: dict[str, int] = {}
        self._not_before: dict[str, float] = {}
        #: The reasons why pilots do not start, by the key of their settings.
        self.problems: dict[str, str] = {}
        #: The pilots that are not known to be over, by name.
        self.pilots: dict[str, Pilot] = {}
        for entry in self._state.pilots.values():
            settings = self._state.settings[entry.settings]
            # its nodes report to an agent that is gone
            pilot = Pilot(entry=entry, settings=settings, job=None, useful=now(), closing=True, used=True)
            self.pilots[entry.name] = pilot
            steps.begin(work.recall(pilot))

    # The state of pilots.

    def look(self, places: Mapping[str, Place], now: float) -> None:
        """Update which pilots have begun and which are over."""
        for place in places.values():
            pilot = self.pilots.get(place.pilot)
            if pilot is not None:
                pilot.reported.add(place.name)
        for pilot in self.pilots.values():
            job = pilot.job
            if pilot.begun is None and job is not None and job.status.state is JobState.ACTIVE:
                pilot.begun = min(now, job.status.time.timestamp())
            if pilot.begun is None and pilot.reported:
                pilot.begun = now
            if job is not None and job.status.final:
                pilot.over = pilot.closing = True

    def bury(self, places: Mapping[str, Place]) -> None:
        """Remove pilots that are over and have no running job and no place left.

        A pilot counts as a failure if it ended before any of its jobs did, the agent did not cancel it, and
        jobs of its kind wait.
        """
        busy = {job.pilot for job in self._state.running} | {it.pilot for it in places.values()}
        for pilot in [it for it in self.pilots.values() if it.over and it.name not in busy]:
            if (
                not pilot.used
                and not pilot.told
                and any(pilot.is_for(it.kind) for it in self._state.waiting())
            ):
                self._failed(pilot, pilot.complaint(self._folder / pilot.name))
            self._remove(pilot)

    def rooms(self, places: Mapping[str, Place], now: float) -> dict[str, Room]:
        """Return the capacity of each place for jobs, as if nothing ran there."""
        rooms = {}
        for name, place in places.items():
            pilot = self.pilots.get(place.pilot)
            if pilot is not None and not pilot.closing:
                rooms[name] = pilot.room(name, now)
        return rooms

    def use(self, name: str) -> None:
        """Note that a job has ended in a pilot: the pilot works, so its settings' failures are forgotten.

        A pilot that only received jobs proves nothing.
        """
        pilot = self.pilots.get(name)
        if pilot is not None:
            pilot.used = True
            self._failures.pop(pilot.settings.key, None)
            self.problems.pop(pilot.settings.key, None)

    def _remove(self, pilot: Pilot) -> None:
        self._journal.write({"what": "pilot_gone", "name": pilot.name, "time": self._now()})
        del self.pilots[pilot.name]
        shutil.rmtree(self._folder / pilot.name, ignore_errors=True)

    def _failed(self, pilot: Pilot, why: str) -> None:
        """Record the failure of a pilot; the backoff before the next one doubles each time."""
        key = pilot.settings.key
        count = self._failures[key] = self._failures.get(key, 0) + 1
        pause = min(_FIRST_PAUSE * 2 ** (count - 1), _LONGEST_PAUSE)
        self._not_before[key] = self._now() + pause
        what = (
            "the last pilot has ended before any job in it had" if pilot.reported else "no pilot has started"
        )
        self.problems[key] = f"{what}: {why}"
        log.warning("pilot %s came to nothing: %s", pilot.name, why)

    # The number of pilots.

    def size(self, rooms: Sequence[Room], now: float) -> None:
        """End pilots that no job needs, and start pilots for jobs that have no room.

        Args:
            rooms: the free capacity.
            now: the time.
        """
        waiting = self._state.waiting()
        running = {job.pilot for job in self._state.running}
        for pilot in self.pilots.values():
            if pilot.name in running or any(pilot.could_run(it.kind, now) for it in waiting):
                pilot.useful = now
        self._shrink(waiting, running, now)
        self._grow(waiting, rooms, now)

    def _shrink(self, waiting: Sequence[Waiting], running: set[str | None], now: float) -> None:
        for pilot in self.pilots.values():
            free = pilot.name not in running and not pilot.over
            figures = PilotFigures(
                name=pilot.name,
                idle=now - pilot.useful if free else None,
                late=pilot.useful < now and any(pilot.is_for(it.kind) for it in waiting),
                seconds=pilot.seconds(now),
            )
            patience = 0.0 if pilot.closing else pilot.settings.idle
            if needless([figures], patience, _SHORTEST) and pilot.job is not None and not pilot.told:
                if figures.late and not pilot.used:
                    self._failed(pilot, "the last took too long to start; make margin longer")
                pilot.closing = pilot.told = True
                self._steps.begin(self._work.dismiss(pilot, pilot.job))

    def _grow(self, waiting: Sequence[Waiting], rooms: Sequence[Room], now: float) -> None:
        expected = [room for pilot in self.pilots.values() for room in pilot.expected(now)]
        for key, client in dict.fromkeys((it.kind.settings, it.kind.client) for it in waiting):
            settings = self._state.settings[key]
            if now < self._not_before.get(key, 0):
                continue
            asking = [it for it in waiting if (it.kind.settings, it.kind.client) == (key, client)]
            own = [it for it in self.pilots.values() if it.is_for(asking[0].kind) and not it.over]
            entry = PilotEntry(name="0", settings=key, client=client, job_id="", time=now)
            model = Pilot(entry=entry, settings=settings, job=None, useful=now)
            allowed = settings.max_pilots - len(own)
            for _ in range(more(asking, [*rooms, *expected], model.expected(now), allowed)):
                self._launch(settings, client, now)

    def _launch(self, settings: Settings, client: str | None, now: float) -> None:
        job = Job()
        name = str(self._state.last_pilot + 1)
        event = {"name": name, "settings": settings.key, "client": client, "job_id": job.id, "time": now}
        self._journal.write({"what": "pilot", **event}, synced=True)
        pilot = Pilot(entry=self._state.pilots[name], settings=settings, job=None, useful=now)
        self.pilots[name] = pilot
        self._steps.begin(self._start(pilot, job))

    async def _start(self, pilot: Pilot, job: Job) -> None:
        try:
            await self._work.start(pilot, job)
        except NotStartedError as e:
            self._failed(pilot, str(e))
            self._remove(pilot)
