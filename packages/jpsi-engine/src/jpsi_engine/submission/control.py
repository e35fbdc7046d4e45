"""Cancels, holds and releases jobs through the batch system.

Before each request it checks that the native ids still belong to the jobs.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime

from jpsi.plugin import JobState, JpsiError, Observation, SubmitException
from jpsi_engine.host import is_transient
from jpsi_engine.monitor import JobMonitor, PollLoop
from jpsi_engine.scheduler import Backend, JobView
from jpsi_engine.spool import stop_file
from jpsi_engine.verdict import CANCEL, Owner, Stop, is_refused


class Control:
    """Requests to cancel, hold or release jobs.

    Methods may be called from any thread. Those for one job raise SubmitException.

    Args:
        backend: the batch system.
        tracking: the jobs that this process follows.
        rounds: the poll loop, which observes the outcome.
        pass_on: see `RunHost`.
    """

    def __init__(
        self,
        backend: Backend,
        tracking: JobMonitor,
        rounds: PollLoop,
        pass_on: Callable[[Collection[str]], None],
    ) -> None:
        self._backend = backend
        self._tracking = tracking
        self._rounds = rounds
        self._pass_on = pass_on

    def cancel(self, job: JobView) -> None:
        """Cancel one job."""
        _check(self._cancelled([job]), job)
        self._ask_about([job])

    def cancel_many(self, jobs: Sequence[JobView]) -> dict[str, JpsiError]:
        """Cancel jobs; return, by job id, the errors of those that were not cancelled."""
        refused: dict[str, JpsiError] = {}
        parts = iter(self._backend.requests(jobs))
        for part in parts:
            # Some jobs may have ended meanwhile. The stops are recorded part by part, so that the first
            # request does not wait for all records.
            left = [job for job in part if self._tracking.get(job.job_id) is job]
            try:
                refused |= self._cancelled(left)
            except JpsiError as e:
                # a batch system that does not answer would not answer for the other parts either
                refused |= {job.job_id: e for job in (*left, *itertools.chain.from_iterable(parts))}
        self._ask_about(jobs)
        return refused

    def _remember_stops(self, jobs: Sequence[JobView]) -> tuple[list[JobView], dict[str, JpsiError]]:
        """Record the stops of jobs; return the jobs recorded, and the errors of the others."""
        stopped: list[JobView] = []
        failed: dict[str, JpsiError] = {}
        for job in jobs:
            try:
                self._remember_stop(job)
            except SubmitException as e:
                failed[job.job_id] = e
            else:
                stopped.append(job)
        return stopped, failed

    def _cancelled(self, jobs: Sequence[JobView]) -> dict[str, JpsiError]:
        """Cancel jobs with one request; return the errors of those that were not cancelled."""
        try:
            own, seen, refused = self._split_by_owner(jobs, "cancelled")
        except JpsiError:
            # without an answer, at least record that the user wanted the end
            self._tell_others(self._remember_stops(jobs)[0])
            raise
        stopped, failed = self._remember_stops(own)
        self._tell_others(stopped)
        return refused | failed | _requested(stopped, seen, "cancelled", self._backend.cancel)

    def _changed(
        self, job: JobView, done: str, request: Callable[[Sequence[str]], Mapping[str, str]]
    ) -> None:
        """Change one job with a request; raise if the batch system refuses."""
        own, seen, refused = self._split_by_owner([job], done)
        _check(refused | _requested(own, seen, done, lambda native_ids, _: request(native_ids)), job)

    def _split_by_owner(
        self, jobs: Sequence[JobView], done: str
    ) -> tuple[list[JobView], dict[str, Observation], dict[str, JpsiError]]:
        """Check that the native ids of jobs still belong to them.

        Returns:
            the jobs whose native ids are their own, or not in the queue; the observations, by native id; and
            the errors of jobs whose native ids belong to other jobs now.

        Raises:
            JpsiError: the batch system did not answer.
        """
        seen = self._tracking.present([job for job in jobs if job.has_runner])
        refused: dict[str, JpsiError] = {}
        own: list[JobView] = []
        observed: dict[str, Observation] = {}
        for job in jobs:
            told = seen.get(job.job_id)
            if told is None or not told.exists:
                own.append(job)
                continue
            owner = job.owner_of(told)
            if is_refused(told, owner):
                refused[job.job_id] = _not_its_own(job, done, self._backend.place, owner)
            else:
                own.append(job)
                observed[job.native_id] = told
        return own, observed, refused

    def _remember_stop(self, job: JobView) -> None:
        try:
            # Recorded before the request: a client that sees the end must know that the user wanted it.
            self._tracking.remember_stop(job, Stop(CANCEL, datetime.now(UTC)))
        except OSError as e:
            msg = f"job {job.job_id} could not be told to end: {e}"
            raise SubmitException(msg, e, transient=is_transient(e)) from e

    def _tell_others(self, jobs: Sequence[JobView]) -> None:
        """Pass the recorded stops of jobs on to other machines."""
        self._pass_on([stop_file(job.spool_id, job.attempt) for job in jobs if job.has_runner])

    def hold(self, job: JobView) -> None:
        """Keep a pending job from starting."""
        self._ask_about([job])
        seen = self._tracking.info(job, time.monotonic, time.sleep)
        if seen is not None and seen.state is JobState.ACTIVE:
            # some batch systems would accept it silently, and hold the job only after a requeue
            msg = f"job {job.job_id} ({job.native_id}) runs, and only a job that waits can be held"
            raise SubmitException(msg)
        self._changed(job, "held", self._backend.hold)
        self._ask_about([job])

    def release(self, job: JobView) -> None:
        """Let a held job start."""
        self._changed(job, "released", self._backend.release)
        self._ask_about([job])

    def _ask_about(self, jobs: Sequence[JobView]) -> None:
        """Have the poll loop ask soon for the outcome of a request."""
        for job in jobs:
            self._tracking.changed(job, time.monotonic())
        self._rounds.begin()


def _requested(
    jobs: Sequence[JobView],
    seen: Mapping[str, Observation],
    done: str,
    request: Callable[[Sequence[str], Mapping[str, Observation]], Mapping[str, str]],
) -> dict[str, JpsiError]:
    """Change jobs with one request; return the errors of those that the batch system refused."""
    native_ids = [job.native_id for job in jobs]
    own = {native_id: seen[native_id] for native_id in native_ids if native_id in seen}
    why = request(native_ids, own) if jobs else {}
    return {job.job_id: _refusal(job, done, why[job.native_id]) for job in jobs if job.native_id in why}


def _check(refused: Mapping[str, JpsiError], job: JobView) -> None:
    if job.job_id in refused:
        raise refused[job.job_id]


def _refusal(job: JobView, done: str, why: str) -> SubmitException:
    msg = f"job {job.job_id} ({job.native_id}) could not be {done}: {why}"
    return SubmitException(msg, transient=True)


def _not_its_own(job: JobView, done: str, place: str, owner: Owner) -> SubmitException:
    begun = f"job {job.job_id} was not {done}: {place}"
    if owner is Owner.STRANGER:
        why = (
            f"has lost it, and its native id {job.native_id} is now another job's, "
            "which does not carry its tag"
        )
    else:
        why = (
            f"shows {job.native_id} without the tag {job.tag}: somebody has taken the tag away, or this is "
            f"another job; look at it, and use a command of {place}'s own"
        )
    return SubmitException(f"{begun} {why}")
