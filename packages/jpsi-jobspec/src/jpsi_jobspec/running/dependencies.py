"""Hands the dependencies of entries to batch systems that can wait for them.

The job then starts even if no driver runs. `next_step` decides which dependencies these are; the driver waits
for the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from jpsi import Dependency, DependencyKind, Job, JobState

from ..planning import Entry, Kind
from ..run_store import Journal, Part
from .executor import Executor
from .next_step import (
    Next,
    States,
    dependency_step,
    describe_unmet,
    next_step,
    select_replicas,
    service_state,
)
from .submissions import Submissions

# Directives have limits: the driver, not the batch system, waits for more jobs than these.
_MAX_DEPENDENCIES = 50
_KINDS = {"ok": DependencyKind.OK, "any": DependencyKind.ANY, "failed": DependencyKind.NOTOK}


class DependencyHandoff:
    """The handoff of dependencies to a batch system that supports them. Used by one thread."""

    def __init__(self, journal: Journal, executor: Executor, submissions: Submissions) -> None:
        """Prepare for one run."""
        self._journal = journal
        self._jobs: Mapping[str, Job] = submissions.jobs
        offered = executor.system.capabilities.dependencies
        self._offered = {word for word, kind in _KINDS.items() if kind in offered}
        #: Entries that the driver holds back, because the batch system refused their dependencies.
        self.held: set[str] = set()

    def steps(self, parts: Sequence[Part]) -> list[Next]:
        """Return the next step of each of some replicas of an entry.

        It is `HAND_OVER` only where the batch system can wait then.
        """
        found = self._steps(parts)
        if Next.HAND_OVER not in found or self._can_hand_over(parts[0].entry):
            return found
        return [Next.WAIT if it is Next.HAND_OVER else it for it in found]

    def dependencies(self, part: Part) -> list[Dependency | Job]:
        """Return the dependencies of a replica for the batch system, without those that are met already."""
        found: list[Dependency | Job] = []
        states = self._states(part.entry)
        for it in part.entry.after:
            if it.when in _KINDS and dependency_step(it, states, part.replica) is Next.HAND_OVER:
                others = select_replicas(self._journal.parts[it.id], it, part.replica)
                ids = [other.job_id for other in others if other.job_id and not other.state.final]
                found += [Dependency(self._jobs[job_id], _KINDS[it.when]) for job_id in ids]
        return found

    def find_unsatisfiable(self, entry: Entry) -> list[Job]:
        """Return the jobs that the batch system still holds for dependencies that can no longer be met."""
        waiting = [
            (job, part)
            for part in self._journal.parts[entry.id]
            if part.state in {JobState.NEW, JobState.QUEUED}
            and (job := self._jobs.get(part.job_id or "")) is not None
            and _has_native_dependencies(job)
        ]
        steps = self._steps([part for _, part in waiting])
        return [job for (job, _), step in zip(waiting, steps, strict=True) if step is Next.NEVER]

    def describe_unmet(self, parts: Iterable[Part]) -> list[str]:
        """Return why replicas can never start, a clause for each."""
        states: dict[str, States] = {}
        found: dict[tuple[str, int], str] = {}
        clauses = []
        for part in parts:
            entry = part.entry
            if entry.id not in states:
                states[entry.id] = self._states(entry)
            # without `each`, all replicas wait for the same
            replica = part.replica if any(it.each for it in entry.after) else 1
            if (entry.id, replica) not in found:
                found[entry.id, replica] = describe_unmet(entry, states[entry.id], replica)
            clauses.append(found[entry.id, replica])
        return clauses

    def _steps(self, parts: Sequence[Part]) -> list[Next]:
        if not parts:
            return []
        entry = parts[0].entry
        states = self._states(entry)
        if any(it.each for it in entry.after):
            return [next_step(entry, states, it.replica) for it in parts]
        return [next_step(entry, states)] * len(parts)

    def _states(self, entry: Entry) -> States:
        return {
            it.id: [
                service_state(part) if it.when == "started" else part.state
                for part in self._journal.parts[it.id]
            ]
            for it in entry.after
        }

    def _can_hand_over(self, entry: Entry) -> bool:
        if entry.kind is Kind.FILES or entry.steps or entry.id in self.held:
            return False
        count = 0
        for after in entry.after:
            parts = self._journal.parts[after.id]
            if all(part.state.final for part in parts):
                continue
            # a batch system waits for one attempt of a job alone
            is_retried = any(part.entry.attributes.job.get("retry") for part in parts)
            is_known = all(part.job_id in self._jobs for part in parts)
            if after.when not in self._offered or is_retried or not is_known:
                return False
            count += len(parts)
        return count <= _MAX_DEPENDENCIES


def _has_native_dependencies(job: Job) -> bool:
    """Return True if a job was submitted with dependencies."""
    return job.spec is not None and bool(job.spec.attributes.after)
