"""Dependencies of entries: which can begin now, and which the batch system can wait for."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence

import attrs

from jpsi import Dependency, DependencyKind, Job, JobState

from ..document import When
from ..planning import After, Entry, Kind
from ..run_store import EntryReplica, Journal
from .executor import Executor
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
        self._entries = {it.id: it for it in journal.plan.entries}
        offered = executor.system.capabilities.dependencies
        self._offered = {word for word, kind in _KINDS.items() if kind in offered}
        #: Entries that the driver holds back, because the batch system refused their dependencies.
        self.held: set[str] = set()

    def steps(self, entry: Entry, replicas: Sequence[int]) -> list[Next]:
        """Return the next step of each replica; `HAND_OVER` only where the batch system can wait then."""
        found = self._steps(entry, replicas)
        if Next.HAND_OVER not in found or self._can_hand_over(entry):
            return found
        return [Next.WAIT if it is Next.HAND_OVER else it for it in found]

    def dependencies(self, entry_replica: EntryReplica) -> list[Dependency | Job]:
        """Return the dependencies of a replica for the batch system, without those that are met already."""
        found: list[Dependency | Job] = []
        states = self._states(entry_replica.entry)
        for it in entry_replica.entry.after:
            if dependency_step(it, states, entry_replica.replica) is not Next.HAND_OVER:
                continue
            parts = self._journal.parts[it.id]
            chosen = (
                [parts[entry_replica.replica - 1]]
                if it.each and entry_replica.replica <= len(parts)
                else parts
            )
            ids = [part.job_id for part in chosen if part.job_id and not part.state.final]
            if it.when in _KINDS:
                found += [Dependency(self._jobs[job_id], _KINDS[it.when]) for job_id in ids]
        return found

    def find_unsatisfiable(self, entry: Entry) -> list[Job]:
        """Return the jobs that the batch system still holds for dependencies that can no longer be met."""
        waiting = [
            (job, replica)
            for replica, part in enumerate(self._journal.parts[entry.id], 1)
            if part.state in {JobState.NEW, JobState.QUEUED}
            and (job := self._jobs.get(part.job_id or "")) is not None
            and _has_native_dependencies(job)
        ]
        steps = self._steps(entry, [replica for _, replica in waiting])
        return [job for (job, _), step in zip(waiting, steps, strict=True) if step is Next.NEVER]

    def _steps(self, entry: Entry, replicas: Sequence[int]) -> list[Next]:
        if not replicas:
            return []
        states = self._states(entry)
        if any(it.each for it in entry.after):
            return [next_step(entry, states, it) for it in replicas]
        return [next_step(entry, states)] * len(replicas)

    def _states(self, entry: Entry) -> States:
        return {
            it.id: [
                service_state(self._entries[it.id], part.state, is_ready=part.is_ready)
                if it.when == "started"
                else part.state
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
    attributes = None if job.spec is None else job.spec.attributes
    return bool(attributes is not None and attributes.after)


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
    found = [dependency_step(it, states, replica) for it in entry.after]
    if Next.NEVER in found:
        return Next.NEVER
    if entry.when is When.ON_FAILURE and Next.WAIT not in found and Next.HAND_OVER not in found:
        ended = [state for it in entry.after for state in states[it.id]]
        return Next.START if any(it is not JobState.COMPLETED for it in ended) else Next.NEVER
    if Next.WAIT in found:
        return Next.WAIT
    if Next.HAND_OVER in found:
        return Next.WAIT if entry.when is When.ON_FAILURE else Next.HAND_OVER
    return Next.START


def dependency_step(after: After, states: States, replica: int | None = None) -> Next:
    """Return what one dependency allows for an entry, or for one of its replicas."""
    dependency_states = states[after.id]
    if after.each and replica is not None and replica <= len(dependency_states):
        dependency_states = [dependency_states[replica - 1]]
    if after.when == "started":
        return _started_step(dependency_states)
    has_failed = any(it.final and it is not JobState.COMPLETED for it in dependency_states)
    if has_failed and after.when != "any":
        return Next.START if after.when == "failed" else Next.NEVER
    if all(it.final for it in dependency_states):
        return Next.NEVER if after.when == "failed" else Next.START
    # a batch system can wait for all of them, but not for the first one that fails
    can_hand_over = JobState.NEW not in dependency_states and (
        after.when != "failed" or len(dependency_states) == 1
    )
    return Next.HAND_OVER if can_hand_over else Next.WAIT


def _started_step(dependency_states: Sequence[JobState]) -> Next:
    if all(it is JobState.ACTIVE or it.final for it in dependency_states):
        return (
            Next.START
            if any(it in {JobState.ACTIVE, JobState.COMPLETED} for it in dependency_states)
            else Next.NEVER
        )
    return Next.WAIT


def service_state(entry: Entry, state: JobState, *, is_ready: bool) -> JobState:
    """Return the state of a service for its dependants: it is active only once its probe succeeds."""
    if entry.ready is None or is_ready:
        return state
    if state is JobState.COMPLETED:
        return JobState.FAILED
    return JobState.QUEUED if state is JobState.ACTIVE else state


@attrs.frozen(slots=True)
class Dependants:
    """The entries that wait for each entry."""

    _ids: Mapping[str, Sequence[str]]

    @classmethod
    def from_entries(cls, entries: Iterable[Entry]) -> Dependants:
        """Return the dependants of each entry of a plan."""
        found: dict[str, list[str]] = {}
        for entry in entries:
            for after in entry.after:
                found.setdefault(after.id, []).append(entry.id)
        return cls(found)

    def __getitem__(self, entry_id: str) -> Sequence[str]:
        return self._ids.get(entry_id, ())


def combined_state(states: Sequence[JobState]) -> JobState:
    """Return one state for all replicas of an entry: how it ended, or the furthest that any of them is."""
    if all(it.final for it in states):
        for state in (JobState.FAILED, JobState.CANCELED):
            if state in states:
                return state
        return JobState.COMPLETED
    if any(it is JobState.ACTIVE or it.final for it in states):
        return JobState.ACTIVE
    return JobState.QUEUED if JobState.QUEUED in states else JobState.NEW
