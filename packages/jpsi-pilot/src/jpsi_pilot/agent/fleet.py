"""The pilots of an agent: follows their states, and starts and ends them as jobs need.

The scheduling loop calls it in each of its rounds.
"""

from __future__ import annotations

import asyncio
import logging
import math
import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import attrs

from jpsi import Job, JpsiError

from ..engines import EngineMissing
from ..protocol import PilotNode, Settings
from .background_tasks import BackgroundTasks
from .engine_pool import EnginePool
from .journal import Journal
from .pilot import Pilot
from .pilot_jobs import PilotJobs, create_pilot_directory, pilot_spec
from .placement import NodeCapacity, Waiting, count_pilots_to_start
from .state import AgentState, PilotEntry
from .state import Job as RunningJob

log = logging.getLogger(__name__)

# The backoff after a pilot failed without running a job, in seconds: the first delay and the longest.
_FIRST_DELAY, _LONGEST_DELAY = 2.0, 300.0
# After so many pilots in a row that ended at once, no other is started until a job is submitted.
_MOST_EARLY_ENDS = 3
# The delays before a retry of a cancel, and of a lookup, in seconds.
_RETRY_DELAY, _LONG_RETRY_DELAY = 2.0, 30.0


@attrs.define(slots=True, eq=False)
class Fleet:
    """The part of the poll loop that checks, starts and ends pilots, and records them in the journal.

    It begins with the pilots in the journal: it looks each of them up as a job, and closes it to new jobs.
    """

    #: Records every change.
    _journal: Journal
    #: The directory that holds the directories of pilots.
    _folder: Path
    #: Returns the time.
    _now: Callable[[], float]
    #: The engines that run jobs in pilots.
    _engines: EnginePool
    #: Submits pilots as jobs.
    _jobs: PilotJobs
    #: Runs slow steps, such as submitting a pilot, in the background.
    _background_tasks: BackgroundTasks
    _failures: Counter[str] = attrs.field(init=False, factory=Counter)
    #: The pilots in a row that ended at once.
    _early_ends: Counter[str] = attrs.field(init=False, factory=Counter)
    _retry_at: dict[str, float] = attrs.field(init=False, factory=dict)
    #: The reasons why pilots do not start, by the key of their settings.
    problems: dict[str, str] = attrs.field(init=False, factory=dict)
    #: The pilots that are not known to be over, by name.
    pilots: dict[str, Pilot] = attrs.field(init=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        for entry in self._state.pilots.values():
            # its nodes report to an agent that is gone
            pilot = self._add(entry, is_closing=True, has_worked=True)
            self._background_tasks.start(self._recall(pilot))

    @property
    def _state(self) -> AgentState:
        return self._journal.state

    def _add(self, entry: PilotEntry, *, is_closing: bool = False, has_worked: bool = False) -> Pilot:
        pilot = self.pilots[entry.name] = Pilot(
            entry=entry,
            settings=self._state.settings[entry.settings],
            job=None,
            last_useful=self._now(),
            is_closing=is_closing,
            has_worked=has_worked,
        )
        return pilot

    # The state of pilots.

    def update_states(self, nodes: Mapping[str, PilotNode], now: float) -> None:
        """Update which pilots have begun, which lack nodes, and which are over."""
        for node in nodes.values():
            pilot = self.pilots.get(node.pilot)
            if pilot is not None:
                pilot.reported_nodes.add(node.name)
        counts = Counter(node.pilot for node in nodes.values())
        for pilot in self.pilots.values():
            pilot.update(counts[pilot.name], now)

    def remove_ended(self, nodes: Mapping[str, PilotNode]) -> None:
        """Remove pilots that are over and have no running job and no node left.

        A pilot counts as a failure if it ended before any of its jobs did, the agent did not cancel it, and
        jobs of its kind wait.
        """
        busy = {job.pilot for job in self._state.running} | {it.pilot for it in nodes.values()}
        for pilot in [it for it in self.pilots.values() if it.is_over and it.name not in busy]:
            if (
                not pilot.has_worked
                and not pilot.is_cancelled
                and any(pilot.is_for(it.kind) for it in self._state.waiting())
            ):
                self._record_failure(pilot, pilot.explain_end(self._folder / pilot.name))
            self._remove(pilot)

    def capacities(self, nodes: Mapping[str, PilotNode], now: float) -> dict[str, NodeCapacity]:
        """Return the capacity of each node for jobs, as if nothing ran there."""
        capacities = {}
        for name, node in nodes.items():
            pilot = self.pilots.get(node.pilot)
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
            self._forget_failures(pilot.settings.key)
            self.problems.pop(pilot.settings.key, None)

    def resume(self, key: str) -> None:
        """Start pilots with these settings again, as a job was submitted, if too many have ended at once."""
        if self._early_ends[key] >= _MOST_EARLY_ENDS:
            self._forget_failures(key)

    def _forget_failures(self, key: str) -> None:
        for known in (self._failures, self._early_ends, self._retry_at):
            known.pop(key, None)

    def _remove(self, pilot: Pilot) -> None:
        self._journal.write({"what": "pilot_gone", "name": pilot.name, "time": self._now()})
        del self.pilots[pilot.name]
        shutil.rmtree(self._folder / pilot.name, ignore_errors=True)

    def _record_failure(self, pilot: Pilot, why: str) -> None:
        """Record the failure of a pilot; the backoff before the next one doubles each time."""
        key = pilot.settings.key
        delay = min(_FIRST_DELAY * 2 ** self._failures[key], _LONGEST_DELAY)
        self._failures[key] += 1
        self._early_ends[key] = self._early_ends[key] + 1 if pilot.ended_at_once(self._now()) else 0
        summary = (
            "the last pilot ended before any of its jobs" if pilot.reported_nodes else "no pilot has started"
        )
        if self._early_ends[key] >= _MOST_EARLY_ENDS:
            delay = math.inf
            summary = (
                f"the last {self._early_ends[key]} pilots ended at once, and no other is started until a job "
                "is submitted"
            )
        self._retry_at[key] = self._now() + delay
        self.problems[key] = f"{summary}: {why}"
        log.warning("pilot %s failed: %s", pilot.name, why)

    # The number of pilots.

    def adjust_count(
        self, nodes: Mapping[str, PilotNode], capacities: Sequence[NodeCapacity], now: float
    ) -> None:
        """End pilots that no job needs, and start pilots for jobs that do not fit into the others.

        Args:
            nodes: the nodes that have reported, by name.
            capacities: the free capacity.
            now: the time.
        """
        waiting = self._state.waiting()
        running = {job.pilot for job in self._state.running if not self._is_stranded(job, nodes, now)}
        for pilot in self.pilots.values():
            if pilot.name in running or any(pilot.can_run(it.kind, now) for it in waiting):
                pilot.last_useful = now
        self._shrink(waiting, running, now)
        self._grow(waiting, capacities, now)

    def _is_stranded(self, job: RunningJob, nodes: Mapping[str, PilotNode], now: float) -> bool:
        """Return True if a job has lost all its nodes for good; it ends once its pilot is over."""
        pilot = self.pilots.get(job.pilot or "")
        if pilot is None or not pilot.stays_incomplete(now) or any(it in nodes for it in job.nodes):
            return False
        # without an instance that spans nodes, a node runs its jobs to their ends also without the agent
        return self._engines.get(pilot.settings).spans_nodes

    def _shrink(self, waiting: Sequence[Waiting], running: set[str | None], now: float) -> None:
        for pilot in self.pilots.values():
            if pilot.name in running or pilot.is_over or pilot.job is None or pilot.is_cancelled:
                continue
            # jobs of its kind wait, and it has not enough nodes or time left for any of them
            is_late = pilot.last_useful < now and any(pilot.is_for(it.kind) for it in waiting)
            if is_late and not pilot.has_worked:
                self._record_failure(pilot, pilot.explain_delay())
            if is_late or pilot.is_out_of_use(now):
                pilot.is_closing = pilot.is_cancelled = True
                self._background_tasks.start(self._cancel(pilot, pilot.job))

    def _grow(self, waiting: Sequence[Waiting], capacities: Sequence[NodeCapacity], now: float) -> None:
        expected = [capacity for pilot in self.pilots.values() for capacity in pilot.expected_capacities(now)]
        free = [*capacities, *expected]
        for key, client in dict.fromkeys((it.kind.settings, it.kind.client) for it in waiting):
            if now < self._retry_at.get(key, 0):
                continue
            settings = self._state.settings[key]
            waiting_here = [it for it in waiting if (it.kind.settings, it.kind.client) == (key, client)]
            existing = [
                it for it in self.pilots.values() if it.is_for(waiting_here[0].kind) and not it.is_over
            ]
            entry = PilotEntry(name="0", settings=key, client=client, job_id="", time=now)
            fresh = Pilot(entry=entry, settings=settings, job=None, last_useful=now).expected_capacities(now)
            for _ in range(
                count_pilots_to_start(waiting_here, free, fresh, settings.max_pilots - len(existing))
            ):
                self._launch(settings, client, now)

    def _launch(self, settings: Settings, client: str | None, now: float) -> None:
        job = Job()
        name = str(self._state.last_pilot + 1)
        event = {"name": name, "settings": settings.key, "client": client, "job_id": job.id, "time": now}
        self._journal.write({"what": "pilot", **event}, synced=True)
        self._background_tasks.start(self._start(self._add(self._state.pilots[name]), job))

    # The slow steps.

    async def _start(self, pilot: Pilot, job: Job) -> None:
        """Submit a pilot as this job."""
        folder, settings = self._folder / pilot.name, pilot.settings
        try:
            engine = await self._engines.get_or_start(settings)
            create_pilot_directory(folder, settings)
            job.spec = pilot_spec(pilot.name, settings, folder, engine.equip(folder, settings))
            await asyncio.to_thread(self._jobs.submit, job, settings.target)
        except Exception as e:  # noqa: BLE001  a fence: targets and engines are plugins
            # nothing is left of the pilot but its directory, and it does not count
            _warn(e, "pilot %s could not be started: %s", pilot.name)
            self._record_failure(pilot, str(e) or type(e).__name__)
            self._remove(pilot)
        else:
            pilot.job = job

    async def _recall(self, pilot: Pilot) -> None:
        """Find the pilot of an earlier agent; retry until its target answers."""
        while True:
            try:
                job = await asyncio.to_thread(self._jobs.recall, pilot.entry.job_id, pilot.settings.target)
            except Exception as e:  # noqa: BLE001  a fence, as in `_start`
                _warn(e, "the lookup of pilot %s of an earlier agent failed, and is retried: %s", pilot.name)
                await asyncio.sleep(_LONG_RETRY_DELAY)
            else:
                pilot.job, pilot.is_over = job, job is None
                return

    async def _cancel(self, pilot: Pilot, job: Job) -> None:
        """Cancel a pilot's job; if that fails, the poll loop retries after a pause."""
        try:
            await asyncio.to_thread(self._jobs.cancel, job)
        except Exception as e:  # noqa: BLE001  a fence, as in `_start`
            _warn(e, "the cancel of pilot %s failed, and is retried: %s", pilot.name)
            await asyncio.sleep(_RETRY_DELAY)
            pilot.is_cancelled = False


def _warn(error: Exception, message: str, name: str) -> None:
    """Log a problem with a pilot; add a traceback if the exception is an unexpected one."""
    is_expected = isinstance(error, (EngineMissing, JpsiError, OSError))
    log.warning(message, name, error, exc_info=None if is_expected else error)
