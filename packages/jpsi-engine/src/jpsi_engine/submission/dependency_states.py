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
    #: The states of arrays, and of ended jobs that are none, and when they were found out.
    _arrays: dict[str, tuple[float, JobState]] = attrs.field(factory=dict, init=False)
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
        arrays = self._recent(self._arrays, native_ids)
        native_ids = [it for it in native_ids if it not in arrays]
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
        others = [it for it in native_ids if it not in own and it not in recorded]
        doubtful = [it for it in others if _may_be_array(known.get(it))]
        return dict.fromkeys(own) | known | recorded | arrays | self._array_states(doubtful, known, monitor)

    def _array_states(
        self, native_ids: Sequence[str], listed: Mapping[str, JobState | None], monitor: JobMonitor
    ) -> dict[str, JobState | None]:
        """Return the states of those native ids that are arrays, by the states of their elements.

        Args:
            native_ids: of jobs that jpsi did not submit one by one.
            listed: the ends that the queue gives for some of these very ids.
            monitor: follows the jobs of this process.

        Raises:
            InvalidJobException: an array has ended as far as is known, and may have had other elements.
        """
        elements = set(self._backend.arrays_of(native_ids))
        arrays = [it for it in native_ids if it not in elements]
        if not arrays or self._backend.capabilities.arrays is None:
            return {}
        found: dict[str, JobState | None] = {}
        for array in arrays:
            found |= self._array_state(array, listed.get(array), monitor)
        now = time.monotonic()
        self._arrays.update({it: (now, state) for it, state in found.items() if state is not None})
        return found

    def _array_state(
        self, array: str, listed: JobState | None, monitor: JobMonitor
    ) -> dict[str, JobState | None]:
        """Return the state of an array by those of its elements; empty if no array of this id is known."""
        seen = self._backend.query_elements(array)
        unfinished = next((it.state for it in seen if it.state is not None and not it.final), None)
        if unfinished is not None or listed is not None:
            return {array: unfinished or listed}
        if not seen:
            seen = self._backend.query_recorded_elements(array)
        own = [it for it in self._native_ids.find_arrays(array) if all(is_own(one, it.tag) for one in seen)]
        if len(own) == 1:
            names = own[0].native_ids
            states = self._query_dependency_states(names, monitor)
            return {array: array_state(list(states.values()))} if states.keys() >= set(names) else {}
        if seen:
            # the queue forgets elements one by one, and the accounting may not have them yet
            why = describe_ended_array(array, self._backend.display_name)
            raise InvalidJobException.of("the job", [why])
        return {}

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
        recent = self._recent(self._accounted, tags)
        left = [native_id for native_id in tags if native_id not in recent]
        found = (self._backend.query_accounting(left) if left else None) or {}
        own = {native_id: seen for native_id, seen in found.items() if is_own(seen, tags[native_id])}
        ended = {it: (now, seen.state) for it, seen in own.items() if seen.final and seen.state is not None}
        self._accounted.update(ended)
        known: dict[str, JobState | None] = {it: recent[it] for it in tags if it in recent}
        return known | {it: seen.state if seen.final else None for it, seen in own.items()}

    def _recent(
        self, cache: Mapping[str, tuple[float, JobState]], native_ids: Iterable[str]
    ) -> dict[str, JobState]:
        """Return the states in a cache that were found out a short time ago."""
        now = time.monotonic()
        # by id: other threads add to it meanwhile
        last = {it: cache.get(it) for it in native_ids}
        return {
            it: entry[1]
            for it, entry in last.items()
            if entry is not None and now - entry[0] < self._cache_seconds
        }

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
    """Return the state of an array by those of all its elements; None if one of them is not known.

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


def describe_ended_array(array: str, system: str) -> str:
    """Return why nothing is decided of an array that jpsi did not submit, and that seems to have ended.

    Args:
        array: its native id.
        system: the batch system.
    """
    return (
        f"attributes.after names the array {array}, of which {system} lists no unfinished element; "
        "it may have forgotten some, so name the elements"
    )


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
