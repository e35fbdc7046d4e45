"""Has a batch system change jobs that are known here: end, hold or release them."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime

from jpsi.plugin import JobState, JpsiError, Observation, SubmitException
from jpsi.plugin.engine import Owner, is_refused
from jpsi_engine.host import is_transient
from jpsi_engine.monitor import Rounds, Tracking
from jpsi_engine.scheduler import Backend, Tracked
from jpsi_engine.spool import stop_file
from jpsi_engine.verdict import CANCEL, Stop


class Changing:
    """Requests about jobs. Methods may be called from any thread, and raise SubmitException for one job.

    Args:
        backend: who is asked for it.
        tracking: the jobs.
        rounds: in which is found out what came of it.
        pass_on: see `Side`.
    """

    def __init__(
        self,
        backend: Backend,
        tracking: Tracking,
        rounds: Rounds,
        pass_on: Callable[[Collection[str]], None],
    ) -> None:
        self._backend = backend
        self._tracking = tracking
        self._rounds = rounds
        self._pass_on = pass_on

    def cancel(self, job: Tracked) -> None:
        """Ask a job to end."""
        _check(self._cancelled([job]), job)
        self._ask_about([job])

    def cancel_many(self, jobs: Sequence[Tracked]) -> dict[str, JpsiError]:
        """Ask jobs to end; returns why which of them were not."""
        refused: dict[str, JpsiError] = {}
        parts = iter(self._backend.requests(jobs))
        for part in parts:
            # Some may have ended meanwhile; and those that are asked for first do not wait until all others
            # are written down.
            left = [job for job in part if self._tracking.get(job.job_id) is job]
            try:
                refused |= self._cancelled(left)
            except JpsiError as e:
                # whoever does not answer would not for the rest either
                refused |= {job.job_id: e for job in (*left, *itertools.chain.from_iterable(parts))}
        self._ask_about(jobs)
        return refused

    def _remember_stops(self, jobs: Sequence[Tracked]) -> tuple[list[Tracked], dict[str, JpsiError]]:
        """Write down that jobs are told to end; returns those it went well for, and why not others."""
        stopped: list[Tracked] = []
        failed: dict[str, JpsiError] = {}
        for job in jobs:
            try:
                self._remember_stop(job)
            except SubmitException as e:
                failed[job.job_id] = e
            else:
                stopped.append(job)
        return stopped, failed

    def _cancelled(self, jobs: Sequence[Tracked]) -> dict[str, JpsiError]:
        """Cancel jobs with one request; returns why which of them were not."""
        try:
            own, seen, refused = self._split_by_owner(jobs, "cancelled")
        except JpsiError:
            # without an answer, it is known at least that the end was asked for
            self._tell_others(self._remember_stops(jobs)[0])
            raise
        stopped, failed = self._remember_stops(own)
        self._tell_others(stopped)
        return refused | failed | _requested(stopped, seen, "cancelled", self._backend.cancel)

    def _changed(
        self, job: Tracked, done: str, request: Callable[[Sequence[str]], Mapping[str, str]]
    ) -> None:
        """Have one job changed."""
        own, seen, refused = self._split_by_owner([job], done)
        _check(refused | _requested(own, seen, done, lambda native_ids, _: request(native_ids)), job)

    def _split_by_owner(
        self, jobs: Sequence[Tracked], done: str
    ) -> tuple[list[Tracked], dict[str, Observation], dict[str, JpsiError]]:
        """Look whose the native ids of jobs are at this moment.

        Returns:
            the jobs whose native ids are their own, or nobody's; what is seen, by native id; and refusals for
            those whose native ids are strangers' by now.

        Raises:
            JpsiError: the batch system did not answer.
        """
        seen = self._tracking.present([job for job in jobs if job.has_runner])
        refused: dict[str, JpsiError] = {}
        own: list[Tracked] = []
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

    def _remember_stop(self, job: Tracked) -> None:
        try:
            # Remembered before it is asked for: whoever sees the end must know who wanted it.
            self._tracking.remember_stop(job, Stop(CANCEL, datetime.now(UTC)))
        except OSError as e:
            msg = f"job {job.job_id} could not be told to end: {e}"
            raise SubmitException(msg, e, transient=is_transient(e)) from e

    def _tell_others(self, jobs: Sequence[Tracked]) -> None:
        """Have other machines know that jobs are told to end, too."""
        self._pass_on([stop_file(job.spool_id, job.attempt) for job in jobs if job.has_runner])

    def hold(self, job: Tracked) -> None:
        """Keep a pending job from starting."""
        self._ask_about([job])
        seen = self._tracking.info(job, time.monotonic, time.sleep)
        if seen is not None and seen.state is JobState.ACTIVE:
            # some would say nothing, and hold it if it were ever put back
            msg = f"job {job.job_id} ({job.native_id}) runs, and only a job that waits can be held"
            raise SubmitException(msg)
        self._changed(job, "held", self._backend.hold)
        self._ask_about([job])

    def release(self, job: Tracked) -> None:
        """Let a held job start."""
        self._changed(job, "released", self._backend.release)
        self._ask_about([job])

    def _ask_about(self, jobs: Sequence[Tracked]) -> None:
        """Have the batch system asked soon what became of a request."""
        for job in jobs:
            self._tracking.changed(job, time.monotonic())
        self._rounds.begin()


def _requested(
    jobs: Sequence[Tracked],
    seen: Mapping[str, Observation],
    done: str,
    request: Callable[[Sequence[str], Mapping[str, Observation]], Mapping[str, str]],
) -> dict[str, JpsiError]:
    """Have jobs changed with one request; returns why which of them were not."""
    native_ids = [job.native_id for job in jobs]
    own = {native_id: seen[native_id] for native_id in native_ids if native_id in seen}
    why = request(native_ids, own) if jobs else {}
    return {job.job_id: _refusal(job, done, why[job.native_id]) for job in jobs if job.native_id in why}


def _check(refused: Mapping[str, JpsiError], job: Tracked) -> None:
    if job.job_id in refused:
        raise refused[job.job_id]


def _refusal(job: Tracked, done: str, why: str) -> SubmitException:
    msg = f"job {job.job_id} ({job.native_id}) could not be {done}: {why}"
    return SubmitException(msg, transient=True)


def _not_its_own(job: Tracked, done: str, place: str, owner: Owner) -> SubmitException:
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
