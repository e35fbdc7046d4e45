"""Starts the entries that can begin: their files, their share of an allocation, and their jobs.

The driver uses it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

import attrs

from jpsi import Job, JobState, JpsiError
from jpsi_engine import job_store

from ..document import ONE_SLOT, Shape
from ..planning import Capacity, Entry, Kind
from ..run_store import DEPENDENCY_FAILED, HELD_BY_SERVICES, NO_ROOM, Journal, Part
from .dependencies import DependencyHandoff
from .executor import Executor
from .job_specs import group_command, job_spec
from .next_step import Next
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

    def begin(self, entry: Entry, why_not: str | None) -> tuple[dict[Job, Part], bool]:
        """Return the jobs to submit now for an entry, and True if anything about the entry has changed.

        Args:
            entry: its replicas begin that have no job yet and can begin.
            why_not: why no more of it may begin; None if it may.
        """
        new = [it for it in self._journal.parts[entry.id] if it.job_id is None and not it.state.final]
        if why_not is not None:
            self._record_end(new, JobState.CANCELED, why_not)
            return {}, bool(new)
        starting, has_unmet = self._sort_out(new)
        if starting and self._capacity is not None and not self._capacity.can_ever_fit(entry):
            self._record_end(starting, JobState.FAILED, NO_ROOM, "it needs more than the group has")
            return {}, True
        shapes = [(it, shape) for it in starting if (shape := self.reserve(it)) is not None]
        if len(shapes) < len(starting):
            self.waiting[entry.id] = None
        if not shapes:
            return {}, has_unmet
        is_ready = self._run_entry_steps(entry, [it for it, _ in shapes])
        has_jobs = is_ready and entry.kind is not Kind.FILES
        return {self._job(part, shape): part for part, shape in shapes if has_jobs}, True

    def _sort_out(self, parts: Sequence[Part]) -> tuple[list[Part], bool]:
        """Return the replicas that can start now, and True if others never can; journal the end of those."""
        steps = list(zip(parts, self._handoff.steps(parts), strict=True))
        never = [part for part, step in steps if step is Next.NEVER]
        ends = zip(never, self._handoff.describe_unmet(never), strict=True)
        state, reason = JobState.CANCELED, DEPENDENCY_FAILED
        self._journal.append([it.end_event(state, reason, clause or None) for it, clause in ends])
        return [part for part, step in steps if step in {Next.START, Next.HAND_OVER}], bool(never)

    def reserve(self, part: Part) -> Shape | None:
        """Take the share of a replica, and return it; None if there is no room for it now."""
        if self._capacity is None:
            return part.entry.shape or ONE_SLOT
        return self._capacity.reserve(part.entry, part.replica)

    def release(self, entry_id: str) -> None:
        """Give back the share of those replicas of an entry that have ended."""
        for part in self._journal.parts[entry_id]:
            if self._capacity is not None and (part.state.final or part.job_id is None):
                self._capacity.release(part.entry, part.replica)

    def locate(self, job: Job, part: Part) -> bool | None:
        """Find out on which node a service runs, where it then stays.

        Returns:
            True if that was not known yet; None if the executor does not know it now.
        """
        key = (part.entry.id, part.replica)
        if self._capacity is None or not self._capacity.is_spread:
            return False
        if part.entry.is_local or key in self._located:
            return False
        try:
            info = self._executor.info(job)
        except JpsiError:
            # the job has ended meanwhile, or the executor does not answer
            return None
        name = None if info is None else info.details.get(_PLACE_KEY)
        if name is None:
            return None
        self._capacity.set_node(part.entry, part.replica, str(name))
        self._located.add(key)
        return True

    def is_blocked_by(self, remaining: Iterable[Part], part: Part) -> bool:
        """Return True if the replicas that stay leave no room for the share of this one."""
        keys = {(it.entry.id, it.replica) for it in remaining}
        capacity = self._capacity
        return capacity is not None and capacity.is_blocked_by(keys, part.entry, part.replica)

    def fail_waiting(self) -> None:
        """Fail the replicas that wait for room, since none will become free."""
        for entry_id in self.waiting:
            parts = self._journal.parts[entry_id]
            waiting = [it for it in parts if it.job_id is None and not it.state.final]
            self._record_end(waiting, JobState.FAILED, NO_ROOM, HELD_BY_SERVICES)
        self.waiting = {}

    def _run_entry_steps(self, entry: Entry, parts: Sequence[Part]) -> bool:
        """Do the steps of an entry, once for all replicas; return True unless they failed."""
        if all(it.job_id is None for it in self._journal.parts[entry.id]):
            staging = self._journal.staging if entry.staged else None
            problem = run_steps(entry.steps, self._executor.files, staging)
            problem = problem or self._pack_inside_files(entry)
            if problem is not None:
                self._record_end(parts, JobState.FAILED, "staging", problem)
                self.release(entry.id)
                return False
        if entry.kind is Kind.FILES:
            self._journal.append([it.end_event(JobState.COMPLETED, exit_code=0) for it in parts])
        return True

    def _pack_inside_files(self, entry: Entry) -> str | None:
        """Pack archives of local files that tasks in an allocation stage; return what went wrong."""
        if entry.kind is not Kind.ALLOCATION or not self._executor.files.are_local:
            return None
        inside = (it for inner in entry.inside for it in inner.walk() if it.staged)
        steps = [it for inner in inside for it in inner.steps if it.content is None]
        local_steps = [it for it in steps if exists_locally(it.path)]
        return run_steps(local_steps, self._executor.files, self._journal.staging)

    def _job(self, part: Part, shape: Shape) -> Job:
        entry = attrs.evolve(part.entry, shape=shape)
        if entry.kind is Kind.ALLOCATION:
            entry = attrs.evolve(entry, command=group_command(self._journal.path, entry.id))
        after = self._handoff.dependencies(part)
        spec = job_spec(entry, part.replica, after, self._journal.staging)
        if self._capacity is not None and (job_id := os.environ.get("JPSI_JOB_ID")):
            # this process runs in the job of a group
            spec.attributes.set_custom_attribute(job_store.ALLOCATION, job_id)
        return Job(spec)

    def _record_end(
        self, parts: Iterable[Part], state: JobState, reason: str, message: str | None = None
    ) -> None:
        self._journal.append([it.end_event(state, reason, message) for it in parts])
