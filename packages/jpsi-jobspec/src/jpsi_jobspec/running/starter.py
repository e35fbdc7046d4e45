"""Starts the entries that can begin: their files, their share of an allocation, and their jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from jpsi import Job, JobState, JpsiError

from ..document import ONE_SLOT, Shape
from ..planning import Capacity, Entry, Kind
from ..run_store import DEPENDENCY_FAILED, HELD_BY_SERVICES, NO_ROOM, EntryReplica, Journal, end_event
from .dependencies import DependencyHandoff, Next
from .executor import Executor
from .job_specs import inside_command, job_spec
from .staging import exists_locally, run_steps

# The key of a pilot's details that names the node on which a job runs.
_PLACE_KEY = "pilot.place"


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

    def begin(self, entry: Entry, why_not: str | None) -> tuple[dict[Job, EntryReplica], bool]:
        """Return the jobs to submit now for an entry, and True if anything about the entry has changed.

        Args:
            entry: its replicas begin that have no job yet and can begin.
            why_not: why no more of it may begin; None if it may.
        """
        parts = self._journal.parts[entry.id]
        new = [number for number, it in enumerate(parts, 1) if it.job_id is None and not it.state.final]
        steps = self._handoff.steps(entry, new)
        unsatisfiable = [
            it for it, step in zip(new, steps, strict=True) if step is Next.NEVER or why_not is not None
        ]
        reason = DEPENDENCY_FAILED if why_not is None else why_not
        self._record_end(entry, unsatisfiable, JobState.CANCELED, reason)
        can_begin = {Next.START, Next.HAND_OVER}
        starting = [it for it, step in zip(new, steps, strict=True) if step in can_begin and why_not is None]
        if not starting:
            return {}, bool(unsatisfiable)
        if self._capacity is not None and not self._capacity.can_ever_fit(entry):
            self._record_end(entry, starting, JobState.FAILED, NO_ROOM, "it asks for more than the group has")
            return {}, True
        shapes = {it: shape for it in starting if (shape := self.reserve(entry, it)) is not None}
        if len(shapes) < len(starting):
            self.waiting[entry.id] = None
        if not shapes:
            return {}, bool(unsatisfiable)
        jobs: dict[Job, EntryReplica] = {}
        if self._run_entry_steps(entry, shapes) and entry.kind is not Kind.FILES:
            entry_replicas = [EntryReplica(entry, it) for it in shapes]
            jobs = {self._job(it, shapes[it.replica]): it for it in entry_replicas}
        return jobs, True

    def reserve(self, entry: Entry, replica: int) -> Shape | None:
        """Take the share of a replica, and return it; None if there is no room for it now."""
        return (entry.shape or ONE_SLOT) if self._capacity is None else self._capacity.reserve(entry, replica)

    def release(self, entry: Entry) -> None:
        """Give back the share of those replicas that have ended."""
        for number, part in enumerate(self._journal.parts[entry.id], 1):
            if self._capacity is not None and (part.state.final or part.job_id is None):
                self._capacity.release(entry, number)

    def locate(self, job: Job, entry_replica: EntryReplica) -> bool | None:
        """Find out on which node a service runs, where it then stays.

        Returns:
            True if that was not known yet; None if the executor does not know it now.
        """
        key = (entry_replica.entry.id, entry_replica.replica)
        if (
            self._capacity is None
            or not self._capacity.is_spread
            or entry_replica.entry.is_local
            or key in self._located
        ):
            return False
        try:
            info = self._executor.info(job)
        except JpsiError:
            # the job has ended meanwhile, or the executor does not answer
            return None
        name = None if info is None else info.details.get(_PLACE_KEY)
        if name is None:
            return None
        self._capacity.set_node(entry_replica.entry, entry_replica.replica, str(name))
        self._located.add(key)
        return True

    def is_blocked_by(self, remaining: Iterable[EntryReplica], entry_replica: EntryReplica) -> bool:
        """Return True if the replicas that stay leave no room for the share of this one."""
        keys = {(it.entry.id, it.replica) for it in remaining}
        return self._capacity is not None and self._capacity.is_blocked_by(
            keys, entry_replica.entry, entry_replica.replica
        )

    def fail_waiting(self, entries: Iterable[Entry]) -> None:
        """Fail the replicas that wait for room, since none will become free."""
        for entry in entries:
            parts = enumerate(self._journal.parts[entry.id], 1)
            waiting = [number for number, it in parts if it.job_id is None and not it.state.final]
            self._record_end(entry, waiting, JobState.FAILED, NO_ROOM, HELD_BY_SERVICES)

    def _run_entry_steps(self, entry: Entry, shapes: Mapping[int, Shape]) -> bool:
        """Do the steps of an entry, once for all replicas; return True unless they failed."""
        if all(it.job_id is None for it in self._journal.parts[entry.id]):
            staging = self._journal.staging if entry.staged else None
            problem = run_steps(entry.steps, self._executor.files, staging)
            problem = problem or self._pack_inside_files(entry)
            if problem is not None:
                self._record_end(entry, shapes, JobState.FAILED, "staging", problem)
                self.release(entry)
                return False
        if entry.kind is Kind.FILES:
            ends = [end_event(EntryReplica(entry, it), JobState.COMPLETED, exit_code=0) for it in shapes]
            self._journal.append(ends)
        return True

    def _pack_inside_files(self, entry: Entry) -> str | None:
        """Pack archives of local files that tasks in an allocation stage; return what went wrong."""
        if entry.kind is not Kind.ALLOCATION or not self._executor.files.are_local:
            return None
        inside = (it for inner in entry.inside for it in inner.walk() if it.staged)
        steps = [it for inner in inside for it in inner.steps if it.content is None]
        local_steps = [it for it in steps if exists_locally(it.path)]
        return run_steps(local_steps, self._executor.files, self._journal.staging)

    def _job(self, entry_replica: EntryReplica, shape: Shape) -> Job:
        entry = attrs.evolve(entry_replica.entry, shape=shape)
        if entry.kind is Kind.ALLOCATION:
            entry = attrs.evolve(entry, command=inside_command(self._journal.path, entry.id))
        after = self._handoff.dependencies(entry_replica)
        return Job(job_spec(entry, entry_replica.replica, after, self._journal.staging))

    def _record_end(
        self, entry: Entry, replicas: Iterable[int], state: JobState, reason: str, message: str | None = None
    ) -> None:
        entry_replicas = [EntryReplica(entry, it) for it in replicas]
        self._journal.append([end_event(it, state, reason=reason, message=message) for it in entry_replicas])
