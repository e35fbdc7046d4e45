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
        monitor: the jobs that this process follows.
        poll_loop: the poll loop, which observes the outcome.
        share_files: see `RunHost`.
    """

    def __init__(
        self,
        backend: Backend,
        monitor: JobMonitor,
        poll_loop: PollLoop,
        share_files: Callable[[Collection[str]], None],
    ) -> None:
        self._backend = backend
        self._monitor = monitor
        self._poll_loop = poll_loop
        self._share_files = share_files

    def cancel(self, job: JobView) -> None:
        """Cancel one job."""
        _raise_if_refused(self._cancel_jobs([job]), job)
        self._request_poll([job])

    def cancel_many(self, jobs: Sequence[JobView]) -> dict[str, JpsiError]:
        """Cancel jobs; return, by job id, the errors of those that were not cancelled."""
        refused: dict[str, JpsiError] = {}
        parts = iter(self._backend.split_for_requests(jobs))
        for part in parts:
            # Some jobs may have ended meanwhile. The stops are recorded part by part, so that the first
            # request does not wait for all records.
            left = [job for job in part if self._monitor.get(job.job_id) is job]
            try:
                refused |= self._cancel_jobs(left)
            except JpsiError as e:
                # a batch system that does not answer would not answer for the other parts either
                refused |= {job.job_id: e for job in (*left, *itertools.chain.from_iterable(parts))}
        self._request_poll(jobs)
        return refused

    def _record_stops(self, jobs: Sequence[JobView]) -> tuple[list[JobView], dict[str, JpsiError]]:
        """Record the stops of jobs; return the jobs recorded, and the errors of the others."""
        stopped: list[JobView] = []
        failed: dict[str, JpsiError] = {}
        for job in jobs:
            try:
                self._record_stop(job)
            except SubmitException as e:
                failed[job.job_id] = e
            else:
                stopped.append(job)
        return stopped, failed

    def _cancel_jobs(self, jobs: Sequence[JobView]) -> dict[str, JpsiError]:
        """Cancel jobs with one request; return the errors of those that were not cancelled."""
        try:
            own, seen, refused = self._split_by_owner(jobs, "cancelled")
        except JpsiError:
            # without an answer, at least record that the user wanted the end
            self._share_stops(self._record_stops(jobs)[0])
            raise
        stopped, failed = self._record_stops(own)
        self._share_stops(stopped)
        return refused | failed | _request(stopped, seen, "cancelled", self._backend.cancel)

    def _change(self, job: JobView, done: str, request: Callable[[Sequence[str]], Mapping[str, str]]) -> None:
        """Change one job with a request; raise if the batch system refuses."""
        own, seen, refused = self._split_by_owner([job], done)
        _raise_if_refused(refused | _request(own, seen, done, lambda native_ids, _: request(native_ids)), job)

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
        seen = self._monitor.query_now([job for job in jobs if job.has_runner])
        refused: dict[str, JpsiError] = {}
        own: list[JobView] = []
        observed: dict[str, Observation] = {}
        for job in jobs:
            observation = seen.get(job.job_id)
            if observation is None or not observation.exists:
                own.append(job)
                continue
            owner = job.owner_of(observation)
            if is_refused(observation, owner):
                refused[job.job_id] = _not_owned_error(job, done, self._backend.display_name, owner)
            else:
                own.append(job)
                observed[job.native_id] = observation
        return own, observed, refused

    def _record_stop(self, job: JobView) -> None:
        try:
            # Recorded before the request: a client that sees the end must know that the user wanted it.
            self._monitor.record_stop(job, Stop(CANCEL, datetime.now(UTC)))
        except OSError as e:
            msg = f"job {job.job_id} could not be cancelled: {e}"
            raise SubmitException(msg, e, transient=is_transient(e)) from e

    def _share_stops(self, jobs: Sequence[JobView]) -> None:
        """Pass the recorded stops of jobs on to other machines."""
        self._share_files([stop_file(job.spool_id, job.attempt) for job in jobs if job.has_runner])

    def hold(self, job: JobView) -> None:
        """Keep a pending job from starting."""
        self._request_poll([job])
        seen = self._monitor.info(job, time.monotonic, time.sleep)
        if seen is not None and seen.state is JobState.ACTIVE:
            # some batch systems would accept it silently, and hold the job only after a requeue
            msg = f"job {job.job_id} ({job.native_id}) runs, and only a job that waits can be held"
            raise SubmitException(msg)
        self._change(job, "held", self._backend.hold)
        self._request_poll([job])

    def release(self, job: JobView) -> None:
        """Let a held job start."""
        self._change(job, "released", self._backend.release)
        self._request_poll([job])

    def _request_poll(self, jobs: Sequence[JobView]) -> None:
        """Have the poll loop ask soon for the outcome of a request."""
        for job in jobs:
            self._monitor.note_change(job, time.monotonic())
        self._poll_loop.start()


def _request(
    jobs: Sequence[JobView],
    seen: Mapping[str, Observation],
    done: str,
    request: Callable[[Sequence[str], Mapping[str, Observation]], Mapping[str, str]],
) -> dict[str, JpsiError]:
    """Change jobs with one request; return the errors of those that the batch system refused."""
    native_ids = [job.native_id for job in jobs]
    own = {native_id: seen[native_id] for native_id in native_ids if native_id in seen}
    why = request(native_ids, own) if jobs else {}
    return {job.job_id: _refusal_error(job, done, why[job.native_id]) for job in jobs if job.native_id in why}


def _raise_if_refused(refused: Mapping[str, JpsiError], job: JobView) -> None:
    if job.job_id in refused:
        raise refused[job.job_id]


def _refusal_error(job: JobView, done: str, why: str) -> SubmitException:
    msg = f"job {job.job_id} ({job.native_id}) could not be {done}: {why}"
    return SubmitException(msg, transient=True)


def _not_owned_error(job: JobView, done: str, display_name: str, owner: Owner) -> SubmitException:
    begun = f"job {job.job_id} was not {done}: {display_name}"
    if owner is Owner.STRANGER:
        why = (
            f"has lost it, and its native id {job.native_id} is now another job's, "
            "which does not carry its tag"
        )
    else:
        why = (
            f"shows {job.native_id} without the tag {job.tag}: a user has removed the tag, or this is "
            f"another job; look at it, and use a command of {display_name}'s own"
        )
    return SubmitException(f"{begun} {why}")
