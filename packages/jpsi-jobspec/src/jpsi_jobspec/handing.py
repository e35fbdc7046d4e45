"""What is left to the batch system to wait for, and what is waited for here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jpsi import Dependency, DependencyKind, Job, JobState

from .events import Place
from .executors import Executor
from .journal import Journal
from .planned import Entry, Kind
from .progress import Next, States, as_started, met, next_of
from .submissions import Submissions

# More jobs than these are waited for here, as directives have limits.
_MOST = 50
_KINDS = {"ok": DependencyKind.OK, "any": DependencyKind.ANY, "failed": DependencyKind.NOTOK}


class Handing:
    """Hands over to a batch system what jobs wait for, where it can do that. Used by one thread."""

    def __init__(self, journal: Journal, executor: Executor, submissions: Submissions) -> None:
        """Prepare for one run."""
        self._journal = journal
        self._jobs: Mapping[str, Job] = submissions.jobs
        self._entries = {it.id: it for it in journal.plan.entries}
        offered = executor.system.capabilities.dependencies
        self._offered = {word for word, kind in _KINDS.items() if kind in offered}
        #: Entries that wait here, as the batch system has refused to.
        self.held: set[str] = set()

    def steps(self, entry: Entry, replicas: Sequence[int]) -> list[Next]:
        """What is to be done with these; `HAND_OVER` only where the batch system can wait for the rest."""
        found = self._steps(entry, replicas)
        if Next.HAND_OVER not in found or self._can_take(entry):
            return found
        return [Next.WAIT if it is Next.HAND_OVER else it for it in found]

    def dependencies(self, place: Place) -> list[Dependency | Job]:
        """What the batch system is told that a replica waits for: what is met already was weighed here."""
        found: list[Dependency | Job] = []
        states = self._states(place.entry)
        for it in place.entry.after:
            if met(it, states, place.replica) is not Next.HAND_OVER:
                continue
            parts = self._journal.parts[it.id]
            chosen = [parts[place.replica - 1]] if it.each and place.replica <= len(parts) else parts
            ids = [part.job_id for part in chosen if part.job_id and not part.state.final]
            if it.when in _KINDS:
                found += [Dependency(self._jobs[job_id], _KINDS[it.when]) for job_id in ids]
        return found

    def in_vain(self, entry: Entry) -> list[Job]:
        """The jobs that the batch system still keeps for an end of others that did not come."""
        waiting = [
            (job, replica)
            for replica, part in enumerate(self._journal.parts[entry.id], 1)
            if part.state in {JobState.NEW, JobState.QUEUED}
            and (job := self._jobs.get(part.job_id or "")) is not None
            and _waits_there(job)
        ]
        steps = self._steps(entry, [replica for _, replica in waiting])
        return [job for (job, _), step in zip(waiting, steps, strict=True) if step is Next.NEVER]

    def _steps(self, entry: Entry, replicas: Sequence[int]) -> list[Next]:
        if not replicas:
            return []
        states = self._states(entry)
        if any(it.each for it in entry.after):
            return [next_of(entry, states, it) for it in replicas]
        return [next_of(entry, states)] * len(replicas)

    def _states(self, entry: Entry) -> States:
        return {
            it.id: [
                as_started(self._entries[it.id], part.state, is_ready=part.is_ready)
                if it.when == "started"
                else part.state
                for part in self._journal.parts[it.id]
            ]
            for it in entry.after
        }

    def _can_take(self, entry: Entry) -> bool:
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
        return count <= _MOST


def _waits_there(job: Job) -> bool:
    """Whether the batch system was told of others that a job waits for."""
    attributes = None if job.spec is None else job.spec.attributes
    return bool(attributes is not None and attributes.after)
