"""Finds out whether the jobs that a new job depends on have ended, before it is submitted.

It asks the spool, then the queue, then the accounting. A batch system forgets jobs, and may count a
dependency on an unknown job as satisfied. So jpsi passes on only dependencies on jobs that have not ended,
and decides itself whether the others are satisfied.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import attrs

from jpsi.plugin import Dependency, InvalidJobException, JobSpec, JobState, SubmitException
from jpsi.plugin.engine import dependencies
from jpsi_engine.monitor import JobMonitor
from jpsi_engine.scheduler import Backend, NativeIds, intent_tag, reused_native_ids
from jpsi_engine.spool import RETRY_KEY, Intent, Spool, decode_status
from jpsi_engine.verdict import Facts, is_own, judge


class _Attempt(NamedTuple):
    """An attempt of a job of jpsi's, with its tag in the batch system."""

    job_id: str
    number: int
    tag: str | None


@attrs.define(slots=True, eq=False)
class DependencyStates:
    """The states of the jobs on which other jobs of one executor depend.

    A dependency is open until its job has ended.
    """

    _backend: Backend
    #: The jobs that jpsi submitted.
    _spool: Spool
    #: Maps native ids to the spool's jobs.
    _native_ids: NativeIds
    #: How long an answer about a job that has ended counts, in seconds.
    _cache_seconds: float
    #: The final states of jobs that the queue has forgotten, and when the accounting gave them.
    _accounted: dict[str, tuple[float, JobState]] = attrs.field(factory=dict, init=False)
    #: When native ids were last seen not to have been given to other jobs.
    _confirmed_at: dict[str, float] = attrs.field(factory=dict, init=False)

    def open_dependencies(self, spec: JobSpec, monitor: JobMonitor) -> tuple[Dependency, ...]:
        """Return the dependencies of which the batch system must know, since the jobs have not ended.

        Args:
            spec: a valid spec.
            monitor: follows the jobs of this process.

        If a job ended and the batch system forgot it between this answer and the submission, its end would
        count as a success. Batch systems remember jobs for longer than that takes.

        Raises:
            InvalidJobException: a job does not exist, or has not ended as the dependency asks.
            SubmitException: it is not known at present whether a job has ended.
            OSError: the spool cannot be read.
        """
        wanted = [
            Dependency(self._backend.canonical_or_same(it.native_id or ""), it.kind)
            for it in dependencies(spec)
        ]
        if not wanted:
            return ()
        native_ids = sorted({it.native_id for it in wanted if it.native_id is not None})
        dependency_states = self._query_dependency_states(native_ids, monitor)
        still_open, never, unclear = sort_dependencies(wanted, dependency_states)
        if never:
            raise InvalidJobException.of("the job", list(dict.fromkeys(never)))
        if unclear:
            name = self._backend.display_name
            msg = f"attributes.after: {name} does not say at present whether {', '.join(unclear)} has ended"
            raise SubmitException(msg, transient=True)
        return tuple(still_open)

    def _query_dependency_states(
        self, native_ids: Sequence[str], monitor: JobMonitor
    ) -> dict[str, JobState | None]:
        """Return the states of jobs by the first source that knows them: spool, queue or accounting."""
        # the probe finds the final exit codes; without them, any failed job may be requeued
        self._backend.probe()
        own = self._own_attempts(native_ids, monitor)
        ends = {native_id: self._end_on_disk(it.job_id, it.number) for native_id, it in own.items()}
        known: dict[str, JobState | None] = {name: end for name, end in ends.items() if end is not None}
        # No other source knows whether one more attempt follows these; if the spool has their end, it does.
        undecided = {
            it
            for it, job in own.items()
            if it not in known and self._spool.may_be_retried(job.job_id, job.number)
        }
        retried = {it for it in undecided if self._spool.read_final(own[it].job_id, own[it].number)}
        left_out = known.keys() | retried
        tags = {it: own[it].tag if it in own else None for it in native_ids if it not in left_out}
        for native_id, state in monitor.query_states(tags, time.monotonic, time.sleep).items():
            is_end = state is not None and state.final
            known[native_id] = None if is_end and native_id in undecided else state
        missing = {it: tag for it, tag in tags.items() if it not in known and it not in undecided}
        # A job that the queue has forgotten has ended, even if the accounting does not have it yet.
        recorded = self._accounting_states(missing)
        # some batch systems call an array ended of which elements still run
        doubtful = [it for it in native_ids if it not in own | recorded and _may_be_array(known.get(it))]
        return dict.fromkeys(own) | known | recorded | self._array_states(doubtful, monitor)

    def _array_states(self, native_ids: Sequence[str], monitor: JobMonitor) -> dict[str, JobState | None]:
        """Return the states of those native ids that are arrays, by the states of their elements."""
        elements = set(self._backend.arrays_of(native_ids))
        arrays = [it for it in native_ids if it not in elements]
        if not arrays or self._backend.capabilities.arrays is None:
            return {}
        own = self._native_ids.find_arrays(arrays)
        names = [name for members in own.values() for name in members]
        states = self._query_dependency_states(names, monitor) if names else {}
        found = {array: array_state([states.get(it) for it in members]) for array, members in own.items()}
        for array in arrays:
            if array not in own and (seen := self._elements_elsewhere(array)):
                found[array] = array_state(seen)
        now = time.monotonic()
        self._accounted.update({it: (now, end) for it, end in found.items() if end is not None and end.final})
        return found

    def _elements_elsewhere(self, array: str) -> list[JobState | None]:
        """Return the states of the elements of an array that jpsi did not submit; empty if it is none.

        Elements that the queue lists as ended are not all: it may have forgotten others.
        """
        listed = self._backend.query_elements(array)
        unfinished = [it.state for it in listed if not it.final]
        if unfinished:
            return unfinished
        recorded = self._backend.query_recorded_elements(array)
        return [it.state if it.final else None for it in recorded] or [None for _ in listed]

    def _own_attempts(self, native_ids: Sequence[str], monitor: JobMonitor) -> dict[str, _Attempt]:
        """Return the attempts of jpsi's jobs that have these native ids; collect their markers."""
        now = time.monotonic()
        followed = {it: job for it in native_ids if (job := monitor.find_by_native_id(it, now)) is not None}
        owners = self._native_ids.find_owners([it for it in native_ids if it not in followed])
        if owners:
            others = self._find_reused_ids(owners, now)
            owners = {it: intent for it, intent in owners.items() if it not in others}
            self._spool.collect({intent.job_id for intent in owners.values()})
        own = {
            it: _Attempt(job.spool_id, job.attempt, job.tag) for it, job in followed.items() if job.has_runner
        }
        return own | {
            it: _Attempt(intent.job_id, intent.attempt, intent_tag(intent)) for it, intent in owners.items()
        }

    def _find_reused_ids(self, owners: Mapping[str, Intent], now: float) -> frozenset[str]:
        """Return the native ids that the batch system has given to other jobs."""
        doubtful = {
            native_id: owner
            for native_id, owner in owners.items()
            if now - self._confirmed_at.get(native_id, float("-inf")) >= self._cache_seconds
        }
        others = reused_native_ids(self._backend, self._spool, doubtful)
        self._confirmed_at.update(dict.fromkeys(doubtful.keys() - others, now))
        return others

    def _accounting_states(self, tags: Mapping[str, str | None]) -> dict[str, JobState | None]:
        """Return the states that the accounting gives, now or a short time ago, for jobs not in the queue."""
        now = time.monotonic()
        # by id: other threads add to it meanwhile
        recent = {
            it: last[1]
            for it in tags
            if (last := self._accounted.get(it)) is not None and now - last[0] < self._cache_seconds
        }
        left = [native_id for native_id in tags if native_id not in recent]
        found = (self._backend.query_accounting(left) if left else None) or {}
        own = {native_id: seen for native_id, seen in found.items() if is_own(seen, tags[native_id])}
        ended = {it: (now, seen.state) for it, seen in own.items() if seen.final and seen.state is not None}
        self._accounted.update(ended)
        known: dict[str, JobState | None] = {it: recent[it] for it in tags if it in recent}
        return known | {it: seen.state if seen.final else None for it, seen in own.items()}

    def _end_on_disk(self, job_id: str, attempt: int) -> JobState | None:
        """Return the final state of a job of jpsi's, if the files show that, and that no attempt follows."""
        content = self._spool.read_final(job_id, attempt)
        if content is not None:
            return None if content.get(RETRY_KEY) else decode_status(content).state
        if self._spool.may_be_retried(job_id, attempt):
            return None
        facts = Facts(
            system=self._backend.name,
            now=datetime.now(UTC),
            markers=[marker for marker in self._spool.consumed(job_id) if marker.attempt == attempt],
            requeue_exit_codes=self._backend.requeue_exit_codes,
        )
        status = judge(facts)
        return status.state if status is not None and status.final else None


def _may_be_array(state: JobState | None) -> bool:
    """Return True unless the batch system lists a job of this state and this very native id."""
    return state is None or state.final


def array_state(states: Sequence[JobState | None]) -> JobState | None:
    """Return the state of an array by the states of its elements, None for one whose state is not known.

    It is unfinished as long as any element is, and has completed if all have.

    >>> str(array_state([JobState.COMPLETED, JobState.FAILED]))
    'FAILED'
    >>> str(array_state([JobState.FAILED, JobState.QUEUED]))
    'QUEUED'
    """
    unfinished = next((it for it in states if it is not None and not it.final), None)
    if unfinished is not None or None in states:
        return unfinished
    return next((it for it in states if it is not JobState.COMPLETED), JobState.COMPLETED)


def sort_dependencies(
    wanted: Iterable[Dependency], known: Mapping[str, JobState | None]
) -> tuple[list[Dependency], list[str], list[str]]:
    """Sort the dependencies of a job by the states of their jobs.

    Args:
        wanted: the dependencies, each with a native id.
        known: the states of jobs by native id; None for a job that exists in an unknown state. Jobs that
            neither jpsi nor the batch system knows are left out.

    Returns:
        The dependencies on jobs that have not ended; why the job can never start, one sentence each; and the
        native ids of jobs that may or may not have ended.
    """
    still_open, never, unclear = list[Dependency](), list[str](), list[str]()
    for dependency in wanted:
        native_id = dependency.native_id or ""
        state = known.get(native_id)
        if native_id not in known:
            never.append(
                f"attributes.after names the job {native_id}, which is not known, or not known any more"
            )
        elif state is None:
            unclear.append(native_id)
        elif (is_met := dependency.kind.is_met(state)) is None:
            still_open.append(dependency)
        elif not is_met:
            never.append(dependency.describe_unmet(native_id, state))
    return still_open, never, unclear
