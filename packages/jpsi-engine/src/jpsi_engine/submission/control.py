"""Cancels, holds and releases jobs through the batch system.

Before each request it checks that the native ids still belong to the jobs.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime

import attrs

from jpsi.plugin import JobState, JpsiError, Observation, SubmitException
from jpsi_engine.host import convert_os_errors
from jpsi_engine.monitor import JobMonitor
from jpsi_engine.scheduler import Backend, JobView
from jpsi_engine.spool import stop_file
from jpsi_engine.verdict import CANCEL, Owner, Stop, is_refused


@attrs.frozen(slots=True)
class Control:
    """Requests to cancel, hold or release jobs.

    Methods may be called from any thread. Those for one job raise SubmitException.
    """

    _backend: Backend
    #: The jobs that this process follows.
    _monitor: JobMonitor
    #: Starts what observes the outcome.
    _start_threads: Callable[[], None]
    #: See `RunHost`.
    _share_files: Callable[[Collection[str]], bool]

    def cancel(self, jobs: Sequence[JobView], unmet: str = "") -> dict[str, JpsiError]:
        """Cancel jobs; return, by job id, the errors of those that were not cancelled.

        Args:
            jobs: those to cancel.
            unmet: why a dependency of all of them cannot be met; empty if that is not why they are to end.
        """
        refused: dict[str, JpsiError] = {}
        parts = iter(self._backend.split_for_requests(jobs))
        for part in parts:
            # Some jobs may have ended meanwhile. The stops are recorded part by part, so that the first
            # request does not wait for all records.
            left = [job for job in part if self._monitor.get(job.job_id) is job]
            try:
                refused |= self._cancel_jobs(left, unmet)
            except JpsiError as e:
                # a batch system that does not answer would not answer for the other parts either
                refused |= {job.job_id: e for job in (*left, *itertools.chain.from_iterable(parts))}
        self._request_poll([job for job in jobs if job.job_id not in refused])
        return refused

    def _record_stops(
        self, jobs: Sequence[JobView], unmet: str, seen: Mapping[str, Observation]
    ) -> dict[str, JpsiError]:
        """Record the stops of jobs, also for other machines; return the errors of those that failed.

        A client that sees the end of a job must know that the user wanted it. `seen` has what the batch
        system says about the jobs, by native id.
        """
        failed: dict[str, JpsiError] = {}
        waiting = {native_id for native_id, it in seen.items() if it.state is JobState.QUEUED}
        for job in jobs:
            stop = Stop(
                CANCEL,
                datetime.now(UTC),
                unmet=unmet,
                was_waiting=job.native_id in waiting and not job.markers,
            )
            try:
                with convert_os_errors(f"job {job.job_id} could not be cancelled"):
                    self._monitor.record_stop(job, stop)
            except SubmitException as e:
                failed[job.job_id] = e
        stopped = [job for job in jobs if job.has_runner and job.job_id not in failed]
        self._share_files([stop_file(job.spool_id, job.attempt) for job in stopped])
        return failed

    def _cancel_jobs(self, jobs: Sequence[JobView], unmet: str) -> dict[str, JpsiError]:
        """Cancel jobs with one request; return the errors of those that were not cancelled."""
        try:
            own, seen, refused = self._split_by_owner(jobs, "cancelled")
        except JpsiError:
            # without an answer, at least record that the user wanted the end
            self._record_stops(jobs, unmet, {})
            raise
        failed = self._record_stops(own, unmet, seen)
        stopped = [job for job in own if job.job_id not in failed]
        if stopped:
            refused |= _refusals(stopped, "cancelled", self._backend.cancel(_ids(stopped), seen))
        return refused | failed

    def _change(self, job: JobView, done: str, request: Callable[[Sequence[str]], Mapping[str, str]]) -> None:
        """Change one job with a request; raise if the batch system refuses."""
        own, _, refused = self._split_by_owner([job], done)
        for error in (refused or _refusals(own, done, request(_ids(own)))).values():
            raise error
        self._request_poll([job])

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

    def hold(self, job: JobView) -> None:
        """Keep a pending job from starting."""
        self._request_poll([job])
        seen = self._monitor.info(job, time.monotonic, time.sleep)
        if seen is not None and seen.state is JobState.ACTIVE:
            # some batch systems would accept it silently, and hold the job only after a requeue
            msg = f"job {job.job_id} ({job.native_id}) runs, and only a job that waits can be held"
            raise SubmitException(msg)
        self._change(job, "held", self._backend.hold)

    def release(self, job: JobView) -> None:
        """Let a held job start."""
        self._change(job, "released", self._backend.release)

    def _request_poll(self, jobs: Sequence[JobView]) -> None:
        """Have the poll loop ask soon for the outcome of a request."""
        for job in jobs:
            self._monitor.note_change(job, time.monotonic())
        if jobs:
            self._start_threads()


def _ids(jobs: Sequence[JobView]) -> list[str]:
    return [job.native_id for job in jobs]


def _refusals(jobs: Sequence[JobView], done: str, why: Mapping[str, str]) -> dict[str, JpsiError]:
    """Return the errors of jobs that the batch system refused to change, for the reasons in `why`."""
    return {
        job.job_id: SubmitException(
            f"job {job.job_id} ({job.native_id}) could not be {done}: {why[job.native_id]}", transient=True
        )
        for job in jobs
        if job.native_id in why
    }


def _not_owned_error(job: JobView, done: str, display_name: str, owner: Owner) -> SubmitException:
    begun = f"job {job.job_id} was not {done}: {display_name}"
    if owner is Owner.FOREIGN:
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
