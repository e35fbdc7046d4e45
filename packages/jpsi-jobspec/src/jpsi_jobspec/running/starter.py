"""Starts the entries that can begin: their files, their share of an allocation, and their jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from jpsi import Job, JobState, JpsiError

from ..document import ONE_SLOT, Shape
from ..planning import Capacity, Entry, Kind
from ..run_store import DEPENDENCY_FAILED, NO_ROOM, SERVICES_HAVE_IT, Journal, Place, end_event
from .dependencies import DependencyHandoff, Next
from .executor import Executor
from .job_specs import inside_command, job_spec
from .staging import do_steps, is_here

# The key of a pilot's details that names the node on which a job runs.
_PLACE = "pilot.place"


class Starter:
    """The maker of a run's jobs, each once it can begin. Used by one thread."""

    def __init__(
        self, journal: Journal, executor: Executor, handoff: DependencyHandoff, capacity: Capacity | None
    ) -> None:
        """Prepare; with `capacity`, no more begins at a time than it has room for."""
        self._journal = journal
        self._executor = executor
        self._handoff = handoff
        self._capacity = capacity
        self._located: set[tuple[str, int]] = set()
        #: Entries with replicas that wait for room.
        self.waiting: dict[str, None] = {}

    def begin(self, entry: Entry, why_not: str | None) -> tuple[dict[Job, Place], bool]:
        """Return the jobs to submit now for an entry, and True if anything about the entry has changed.

        Args:
            entry: its replicas begin that have no job yet and can begin.
            why_not: why no more of it may begin; None if it may.
        """
        parts = self._journal.parts[entry.id]
        new = [number for number, it in enumerate(parts, 1) if it.job_id is None and not it.state.final]
        steps = self._handoff.steps(entry, new)
        never = [it for it, step in zip(new, steps, strict=True) if step is Next.NEVER or why_not is not None]
        reason = DEPENDENCY_FAILED if why_not is None else why_not
        self._note(entry, never, JobState.CANCELED, reason)
        able = {Next.START, Next.HAND_OVER}
        starting = [it for it, step in zip(new, steps, strict=True) if step in able and why_not is None]
        if not starting:
            return {}, bool(never)
        if self._capacity is not None and not self._capacity.can_ever_have(entry):
            self._note(entry, starting, JobState.FAILED, NO_ROOM, "it asks for more than the group has")
            return {}, True
        shapes = {it: shape for it in starting if (shape := self.take(entry, it)) is not None}
        if len(shapes) < len(starting):
            self.waiting[entry.id] = None
        if not shapes:
            return {}, bool(never)
        jobs: dict[Job, Place] = {}
        if self._has_files(entry, shapes) and entry.kind is not Kind.FILES:
            places = [Place(entry, it) for it in shapes]
            jobs = {self._job(it, shapes[it.replica]): it for it in places}
        return jobs, True

    def take(self, entry: Entry, replica: int) -> Shape | None:
        """Take the share of a replica, and return it; None if there is no room for it now."""
        return (entry.shape or ONE_SLOT) if self._capacity is None else self._capacity.take(entry, replica)

    def give_back(self, entry: Entry) -> None:
        """Give back the share of those replicas that have ended."""
        for number, part in enumerate(self._journal.parts[entry.id], 1):
            if self._capacity is not None and (part.state.final or part.job_id is None):
                self._capacity.give_back(entry, number)

    def locate(self, job: Job, place: Place) -> bool | None:
        """Find out on which node a service runs, where it then stays.

        Returns:
            True if that was not known yet; None if the executor does not know it now.
        """
        key = (place.entry.id, place.replica)
        if (
            self._capacity is None
            or not self._capacity.is_spread
            or place.entry.is_local
            or key in self._located
        ):
            return False
        try:
            told = self._executor.info(job)
        except JpsiError:
            # the job has ended meanwhile, or the executor does not answer
            return None
        name = None if told is None else told.details.get(_PLACE)
        if name is None:
            return None
        self._capacity.move(place.entry, place.replica, str(name))
        self._located.add(key)
        return True

    def is_kept_by(self, staying: Iterable[Place], place: Place) -> bool:
        """Return True if the replicas that stay leave no room for the share of this one."""
        keys = {(it.entry.id, it.replica) for it in staying}
        return self._capacity is not None and self._capacity.is_kept_by(keys, place.entry, place.replica)

    def refuse(self, entries: Iterable[Entry]) -> None:
        """Fail the replicas that wait for room, since none will become free."""
        for entry in entries:
            parts = enumerate(self._journal.parts[entry.id], 1)
            left = [number for number, it in parts if it.job_id is None and not it.state.final]
            self._note(entry, left, JobState.FAILED, NO_ROOM, SERVICES_HAVE_IT)

    def _has_files(self, entry: Entry, shapes: Mapping[int, Shape]) -> bool:
        """Do the steps of an entry, once for all replicas; return True unless they failed."""
        if all(it.job_id is None for it in self._journal.parts[entry.id]):
            staging = self._journal.staging if entry.staged else None
            problem = do_steps(entry.steps, self._executor.files, staging)
            problem = problem or self._offer(entry)
            if problem is not None:
                self._note(entry, shapes, JobState.FAILED, "staging", problem)
                self.give_back(entry)
                return False
        if entry.kind is Kind.FILES:
            done = [end_event(Place(entry, it), JobState.COMPLETED, exit_code=0) for it in shapes]
            self._journal.note(done)
        return True

    def _offer(self, entry: Entry) -> str | None:
        """Pack archives of local files that tasks in an allocation stage; return what went wrong."""
        if entry.kind is not Kind.ALLOCATION or not self._executor.files.are_here:
            return None
        inside = (it for inner in entry.inside for it in inner.walk() if it.staged)
        steps = [it for inner in inside for it in inner.steps if it.content is None]
        here = [it for it in steps if is_here(it.path)]
        return do_steps(here, self._executor.files, self._journal.staging)

    def _job(self, place: Place, shape: Shape) -> Job:
        entry = attrs.evolve(place.entry, shape=shape)
        if entry.kind is Kind.ALLOCATION:
            entry = attrs.evolve(entry, command=inside_command(self._journal.path, entry.id))
        after = self._handoff.dependencies(place)
        return Job(job_spec(entry, place.replica, after, self._journal.staging))

    def _note(
        self, entry: Entry, replicas: Iterable[int], state: JobState, reason: str, message: str | None = None
    ) -> None:
        places = [Place(entry, it) for it in replicas]
        self._journal.note([end_event(it, state, reason=reason, message=message) for it in places])
