"""Begins what can begin now: its files, its part of an allocation, and its job."""

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

# What a pilot says of where it runs a job.
_PLACE = "pilot.place"


class Starter:
    """Makes the jobs of a run, each once it can begin. Used by one thread."""

    def __init__(
        self, journal: Journal, executor: Executor, handoff: DependencyHandoff, capacity: Capacity | None
    ) -> None:
        """Prepare; with `capacity`, only so much at a time begins as there is room for."""
        self._journal = journal
        self._executor = executor
        self._handoff = handoff
        self._capacity = capacity
        self._located: set[tuple[str, int]] = set()
        #: Entries of which something waits for room.
        self.waiting: dict[str, None] = {}

    def begin(self, entry: Entry, why_not: str | None) -> tuple[dict[Job, Place], bool]:
        """The jobs to submit now of what has none yet, and whether anything about the entry has changed.

        Args:
            entry: of which all that can begin does.
            why_not: why nothing of it is to begin any more; None if it is.
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
        """What a replica has, which is taken from now on; None if there is no room for it now."""
        return (entry.shape or ONE_SLOT) if self._capacity is None else self._capacity.take(entry, replica)

    def give_back(self, entry: Entry) -> None:
        """Have the room again of those replicas that have ended."""
        for number, part in enumerate(self._journal.parts[entry.id], 1):
            if self._capacity is not None and (part.state.final or part.job_id is None):
                self._capacity.give_back(entry, number)

    def locate(self, job: Job, place: Place) -> bool | None:
        """Find out where a service runs, which stays there.

        Returns:
            whether that was not known yet; None if nobody tells now.
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
            # it has ended meanwhile, or nobody answers
            return None
        name = None if told is None else told.details.get(_PLACE)
        if name is None:
            return None
        self._capacity.move(place.entry, place.replica, str(name))
        self._located.add(key)
        return True

    def is_kept_by(self, staying: Iterable[Place], place: Place) -> bool:
        """Whether what stays leaves no room for what a replica is to have."""
        keys = {(it.entry.id, it.replica) for it in staying}
        return self._capacity is not None and self._capacity.is_kept_by(keys, place.entry, place.replica)

    def refuse(self, entries: Iterable[Entry]) -> None:
        """Have what waits for room fail, as nothing will give it any."""
        for entry in entries:
            parts = enumerate(self._journal.parts[entry.id], 1)
            left = [number for number, it in parts if it.job_id is None and not it.state.final]
            self._note(entry, left, JobState.FAILED, NO_ROOM, SERVICES_HAVE_IT)

    def _has_files(self, entry: Entry, shapes: Mapping[int, Shape]) -> bool:
        """Do what is to be done about files, once for all replicas; whether that went well."""
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
        """Have archives of what is staged inside of an allocation and is here; return what went wrong."""
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
