"""Has a batch system change jobs that are known here: end, hold or release them."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime

from jpsi.contract.observation import Observation
from jpsi.engine.backend import Backend
from jpsi.engine.files import is_transient
from jpsi.engine.identity import is_refused
from jpsi.engine.rounds import Rounds
from jpsi.engine.spool import stop_file
from jpsi.engine.stopping import CANCEL
from jpsi.engine.tracked import Tracked
from jpsi.engine.tracker import Stop
from jpsi.engine.tracking import Tracking
from jpsi.model.errors import JpsiError, SubmitException
from jpsi.model.states import JobState


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
        self._remember_stop(job)
        self._tell_others([job])
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
            stopped, failed = self._remember_stops(left)
            refused |= failed
            self._tell_others(stopped)
            try:
                refused |= self._cancelled(stopped) if stopped else {}
            except JpsiError as e:
                # whoever does not answer would not for the rest either
                refused |= {job.job_id: e for job in (*stopped, *itertools.chain.from_iterable(parts))}
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
        return self._requested(jobs, "cancelled", self._backend.cancel)

    def _requested(
        self,
        jobs: Sequence[Tracked],
        done: str,
        request: Callable[[Sequence[str], Mapping[str, Observation]], Mapping[str, str]],
    ) -> dict[str, JpsiError]:
        """Have jobs changed with one request, but for those whose native ids are strangers' by now."""
        seen = self._tracking.present([job for job in jobs if job.has_runner])
        refused: dict[str, JpsiError] = {}
        own: dict[str, Observation] = {}
        meant: list[Tracked] = []
        for job in jobs:
            told = seen.get(job.job_id)
            if told is not None and told.exists and is_refused(told, job.owner_of(told)):
                refused[job.job_id] = _no_longer_its_own(job, done, self._backend.place)
                continue
            meant.append(job)
            if told is not None and told.exists:
                own[job.native_id] = told
        why = request([job.native_id for job in meant], own) if meant else {}
        return refused | {
            job.job_id: _refusal(job, done, why[job.native_id]) for job in meant if job.native_id in why
        }

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
        _check(self._requested([job], "held", lambda ids, _: self._backend.hold(ids)), job)
        self._ask_about([job])

    def release(self, job: Tracked) -> None:
        """Let a held job start."""
        _check(self._requested([job], "released", lambda ids, _: self._backend.release(ids)), job)
        self._ask_about([job])

    def _ask_about(self, jobs: Sequence[Tracked]) -> None:
        """Have the batch system asked soon what became of a request."""
        for job in jobs:
            self._tracking.changed(job, time.monotonic())
        self._rounds.begin()


def _check(refused: Mapping[str, JpsiError], job: Tracked) -> None:
    if job.job_id in refused:
        raise refused[job.job_id]


def _refusal(job: Tracked, done: str, why: str) -> SubmitException:
    msg = f"job {job.job_id} ({job.native_id}) could not be {done}: {why}"
    return SubmitException(msg, transient=True)


def _no_longer_its_own(job: Tracked, done: str, place: str) -> SubmitException:
    msg = (
        f"job {job.job_id} was not {done}: {place} has lost it, and its native id {job.native_id} is now "
        "another job's, which does not carry its tag"
    )
    return SubmitException(msg)
