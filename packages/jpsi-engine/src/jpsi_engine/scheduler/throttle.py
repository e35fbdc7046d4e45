"""Throttles submissions to a batch system: lets in as many at a time as the quota allows."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence

from jpsi.plugin import JpsiError
from jpsi.plugin.engine import Submission
from jpsi_engine.host import SubmissionCancelled, SubmitQueue, not_admitted_error
from jpsi_engine.scheduler.backend import Backend
from jpsi_engine.scheduler.job_view import JobView
from jpsi_engine.scheduler.quota import Limits, Quota, QuotaShare, split_wave
from jpsi_engine.scheduler.shared_poll import SharedPoll

#: Jobs that are submitted together, as parts; each has the number of its jobs that may run at a time, or None
#: for all.
Wave = Sequence[tuple[Sequence[Submission], int | None]]


def make_throttle(
    backend: Backend,
    shared_poll: SharedPoll,
    own_jobs: Callable[[], Collection[JobView]],
    now: Callable[[], float],
) -> Throttle:
    """Return the throttle that the configuration of an executor requests.

    Args:
        backend: the batch system.
        shared_poll: the files by which processes announce submissions, in a folder of their own.
        own_jobs: returns the jobs that this process follows.
        now: the clock that all processes of the machine share.
    """
    config = backend.config

    def can_limit() -> bool:
        arrays = backend.capabilities.arrays
        return arrays is not None and arrays.limits

    if config.max_queued is None and config.max_active is None:
        return Throttle(SubmitQueue(now), None, can_limit)
    limits = Limits(
        queued=math.inf if config.max_queued is None else config.max_queued,
        active=math.inf if config.max_active is None else config.max_active,
        shortest=config.shortest_interval.total_seconds(),
        longest=config.longest_interval.total_seconds(),
    )
    quota = Quota(
        backend.name,
        limits,
        query_queue=backend.query_all,
        system_digest=backend.system_digest,
        own_jobs=own_jobs,
        shared_poll=shared_poll,
        now=now,
    )
    return Throttle(SubmitQueue(now), quota, can_limit)


class Throttle:
    """The throttle of one executor: its submit queue and its quota. Methods may be called from any thread.

    Args:
        submit_queue: the queue of jobs that wait for quota.
        quota: the quota; None if there is no limit.
        can_limit: returns True if the batch system can limit how many elements of an array run at a time.
    """

    def __init__(self, submit_queue: SubmitQueue, quota: Quota | None, can_limit: Callable[[], bool]) -> None:
        self._submit_queue = submit_queue
        self._quota = quota
        self._can_limit = can_limit

    @contextlib.contextmanager
    def reserve_one(self, job_id: str) -> Iterator[None]:
        """Wait for quota for one job; the caller submits it inside the context.

        Raises:
            SubmitException: the submission was cancelled, or the batch system did not say whether there is
                quota.
        """
        quota = self._quota
        if quota is None:
            yield
            return
        try:
            grant = self._submit_queue.acquire([job_id], lambda: quota.reserve(1))
        except SubmissionCancelled as e:
            raise not_admitted_error(job_id) from e
        try:
            yield
        finally:
            quota.release(grant)

    def waves(
        self, parts: Sequence[Sequence[Submission]], report_refusal: Callable[[str, JpsiError], None]
    ) -> Generator[Wave]:
        """Yield the jobs to submit now, each time that there is quota.

        The caller has submitted them, or failed to, when it asks for the next ones.
        """
        quota, left = self._quota, list(parts)
        if quota is None:
            yield [(part, None) for part in left]
            return
        while left:
            grant, refusals = self._wait_for_quota(quota, [it.job_id for part in left for it in part])
            for job_id, error in refusals.items():
                report_refusal(job_id, error)
            if grant is None:
                rest = ([it for it in part if it.job_id not in refusals] for part in left)
                left = [part for part in rest if part]
                continue
            try:
                now, left = split_wave(left, grant, can_limit=self._can_limit())
                yield now
            finally:
                quota.release(grant)

    def _wait_for_quota(
        self, quota: Quota, job_ids: Sequence[str]
    ) -> tuple[QuotaShare | None, Mapping[str, JpsiError]]:
        """Wait for quota for jobs; return the grant, or the reasons why some are not to be submitted."""
        try:
            return self._submit_queue.acquire(job_ids, lambda: quota.reserve(len(job_ids))), {}
        except SubmissionCancelled as e:
            return None, {job_id: not_admitted_error(job_id) for job_id in e.job_ids}
        except JpsiError as e:
            return None, dict.fromkeys(job_ids, e)

    def limit_array(self, array: str, at_a_time: int) -> None:
        """Note that no more than so many elements of an array run at a time."""
        if self._quota is not None:
            self._quota.limit_array(array, at_a_time)

    def cancel_waiting(self, job_ids: Collection[str] | None) -> None:
        """Cancel the submission of waiting jobs; see `SubmitQueue`."""
        self._submit_queue.give_up(job_ids)
