"""Dependencies of entries: which can begin now, and which the batch system can wait for.

The driver uses it. A dependency that the batch system can wait for is left to it, so that the job
starts even if no driver runs then.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import TypeVar

from jpsi import Dependency, DependencyKind, Job, JobState

from ..document import When
from ..planning import After, Entry, Kind
from ..run_store import Journal, Part
from .executor import Executor
from .submissions import Submissions

T = TypeVar("T")

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
                others = _select(self._journal.parts[it.id], it, part.replica)
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
            if after.when not in self._offered or any(part.job_id not in self._jobs for part in parts):
                return False
            count += len(parts)
        return count <= _MAX_DEPENDENCIES


def _has_native_dependencies(job: Job) -> bool:
    """Return True if a job was submitted with dependencies."""
    return job.spec is not None and bool(job.spec.attributes.after)


def _select(replicas: Sequence[T], after: After, replica: int | None) -> Sequence[T]:
    """Return those of an entry's replicas that one dependency of a replica is about."""
    if after.each and replica is not None and replica <= len(replicas):
        return [replicas[replica - 1]]
    return replicas


#: The states of the replicas of each entry; NEW is not submitted yet.
States = Mapping[str, Sequence[JobState]]


class Next(enum.Enum):
    """The next step of the driver for an entry."""

    #: All its dependencies are met.
    START = "start"
    #: All its dependencies were submitted, and none has ended otherwise than it should.
    HAND_OVER = "hand over"
    WAIT = "wait"
    #: A dependency has ended otherwise than it should.
    NEVER = "never"


def next_step(entry: Entry, states: States, replica: int | None = None) -> Next:
    """Return what to do with an entry, or with one of its replicas.

    With `replica`, a dependency that is replica by replica considers that one only.
    """
    found = {dependency_step(it, states, replica) for it in entry.after}
    if Next.NEVER in found:
        return Next.NEVER
    if entry.when is When.ON_FAILURE:
        if found & {Next.WAIT, Next.HAND_OVER}:
            return Next.WAIT
        ended = [state for it in entry.after for state in states[it.id]]
        return Next.START if any(it is not JobState.COMPLETED for it in ended) else Next.NEVER
    return next((it for it in (Next.WAIT, Next.HAND_OVER) if it in found), Next.START)


def dependency_step(after: After, states: States, replica: int | None = None) -> Next:
    """Return what one dependency allows for an entry, or for one of its replicas."""
    dependency_states = _select(states[after.id], after, replica)
    if after.when == "started":
        return _started_step(dependency_states)
    has_failed = any(it.final and it is not JobState.COMPLETED for it in dependency_states)
    if has_failed and after.when != "any":
        return Next.START if after.when == "failed" else Next.NEVER
    if all(it.final for it in dependency_states):
        return Next.NEVER if after.when == "failed" else Next.START
    # a batch system can wait for all of them, but not for the first one that fails
    can_wait = after.when != "failed" or len(dependency_states) == 1
    return Next.HAND_OVER if can_wait and JobState.NEW not in dependency_states else Next.WAIT


def _started_step(dependency_states: Sequence[JobState]) -> Next:
    if not all(it is JobState.ACTIVE or it.final for it in dependency_states):
        return Next.WAIT
    has_started = {JobState.ACTIVE, JobState.COMPLETED} & set(dependency_states)
    return Next.START if has_started else Next.NEVER


def service_state(part: Part) -> JobState:
    """Return the state of a service for its dependants: it is active only once its probe succeeds."""
    if part.entry.ready is None or part.is_ready:
        return part.state
    without_probe = {JobState.COMPLETED: JobState.FAILED, JobState.ACTIVE: JobState.QUEUED}
    return without_probe.get(part.state, part.state)


def combined_state(states: Sequence[JobState]) -> JobState:
    """Return one state for all replicas of an entry: how it ended, or the furthest that any of them is."""
    if all(it.final for it in states):
        worst_first = (JobState.FAILED, JobState.CANCELED)
        return next((it for it in worst_first if it in states), JobState.COMPLETED)
    if any(it is JobState.ACTIVE or it.final for it in states):
        return JobState.ACTIVE
    return JobState.QUEUED if JobState.QUEUED in states else JobState.NEW
