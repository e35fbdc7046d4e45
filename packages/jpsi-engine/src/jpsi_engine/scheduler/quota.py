"""Throttles submissions, by the number of jobs of the user that the batch system has.

The batch system's answer includes the jobs of other programs and those that were submitted by hand. Between
two answers, the submissions that processes of this machine announce to each other count, and so do the jobs
that this process follows.
"""

from __future__ import annotations

import contextlib
import math
import os
import threading
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import attrs

from jpsi.plugin import JobState, JpsiError
from jpsi.plugin.engine import Submission
from jpsi_engine.host import QuotaReached, SubmissionCancelled, SubmitQueue, not_admitted_error
from jpsi_engine.scheduler.backend import Backend
from jpsi_engine.scheduler.job_view import JobView
from jpsi_engine.scheduler.shared_poll import SharedPoll
from jpsi_engine.scheduler.snapshot import Snapshot

T = TypeVar("T")

_GROWTH = 1.6
# In shortest intervals: the pause before the next attempt, if another process is polling for the quota.
_RETRY = 0.05
# The lease: after so many seconds without a word, a process no longer counts as submitting.
_LEASE_SECONDS = 600.0
_NEVER = float("-inf")


@attrs.frozen(slots=True, kw_only=True)
class Limits:
    """The quotas; infinity means no limit."""

    #: The most jobs of the user, waiting or running, that the batch system may have.
    queued: float = math.inf
    #: The most of them that may run.
    active: float = math.inf
    #: The oldest answer to use, in seconds; and the longest interval between polls while the quota is
    #: reached.
    shortest: float
    longest: float


@attrs.define(slots=True, eq=False)
class QuotaShare:
    """A permission to submit now."""

    #: The number of jobs.
    queued: float
    #: The number of them that may run at a time.
    active: float
    _unique: str = attrs.field(factory=lambda: os.urandom(4).hex())
    #: When the submission ended, successfully or not.
    ended: float = math.inf

    @property
    def announcement(self) -> str:
        """The text that announces this grant to other processes."""
        return f"{self._unique}/{self.queued:.0f}/{self.ended}"


@attrs.define(slots=True, eq=False)
class Quota:
    """The quota of one executor. Methods may be called from any thread, `reserve` by one thread at a time."""

    _backend: Backend
    _limits: Limits
    #: Returns the jobs that this process follows.
    _own_jobs: Callable[[], Collection[JobView]]
    #: The shared files by which processes announce their submissions.
    _shared_poll: SharedPoll
    #: The clock that all processes of the machine share.
    _now: Callable[[], float]
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)
    _granted: list[QuotaShare] = attrs.field(factory=list, init=False)
    #: The number of elements of an array that may run at a time, for arrays with such a limit.
    _array_limits: dict[str, int] = attrs.field(factory=dict, init=False)
    _last_snapshot: Snapshot | None = attrs.field(default=None, init=False)
    _is_full: bool = attrs.field(default=False, init=False)
    #: While the quota is reached: the pause between polls, unless a job of this process has ended.
    _pause: float = attrs.field(init=False)
    _most_own: int = attrs.field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self._pause = self._limits.shortest

    def reserve(self, count: int) -> QuotaShare | QuotaReached:
        """Reserve quota for up to `count` jobs; return `QuotaReached` if there is none for a single job.

        Raises:
            JpsiError: the batch system did not answer.
        """
        system_digest = self._backend.system_digest()
        self._announce(system_digest)
        with self._shared_poll.lock_polling() as is_ours:
            if not is_ours:
                return QuotaReached(_RETRY * self._limits.shortest, "another process is submitting jobs")
            own_jobs = self._own_jobs()
            snapshot = self._recent_snapshot(system_digest, own_jobs)
            grant = self._compute_grant(system_digest, snapshot, own_jobs, count)
            if isinstance(grant, QuotaShare):
                with self._lock:
                    self._granted.append(grant)
                self._announce(system_digest)
            return grant

    def release(self, grant: QuotaShare) -> None:
        """End a grant: its jobs were submitted, or will not be."""
        grant.active, grant.ended = 0, self._now()
        self._announce(self._backend.system_digest())

    def limit_array(self, array: str, at_a_time: int) -> None:
        """Note that no more than so many elements of an array run at a time."""
        with self._lock:
            self._array_limits[array] = at_a_time

    # ---------------------------------------------------------------------------------- what is known

    def _recent_snapshot(self, system_digest: str, own_jobs: Collection[JobView]) -> Snapshot:
        """Return the newest answer that is recent enough, or poll the batch system for a new one."""
        now = self._now()
        known = (self._last_snapshot, self._shared_poll.read_snapshot(system_digest, now))
        snapshot = max(filter(None, known), key=lambda it: it.begun, default=None)
        if snapshot is None or now >= self._stale_at(snapshot, own_jobs):
            seen = self._backend.query_all()
            snapshot = Snapshot(begun=now, ended=self._now(), queried=None, seen=seen)
            self._shared_poll.write_snapshot(system_digest, snapshot)
            if self._is_full:
                self._pause = min(self._pause * _GROWTH, self._limits.longest)
        if snapshot is not self._last_snapshot:
            self._most_own = 0
        self._last_snapshot = snapshot
        self._most_own = max(self._most_own, len(own_jobs))
        return snapshot

    def _stale_at(self, snapshot: Snapshot, own_jobs: Collection[JobView]) -> float:
        """Return when an answer becomes too old."""
        has_ended = len(own_jobs) < self._most_own
        is_slow = self._is_full and not has_ended
        return snapshot.ended + (self._pause if is_slow else self._limits.shortest)

    def _compute_grant(
        self, system_digest: str, snapshot: Snapshot, own_jobs: Collection[JobView], count: int
    ) -> QuotaShare | QuotaReached:
        own_ids = {job.native_id for job in own_jobs}
        known_count = len(own_ids | snapshot.seen.keys()) + self._count_in_submission(system_digest, snapshot)
        active = 0
        if self._limits.active != math.inf:
            others = [seen for native_id, seen in snapshot.seen.items() if native_id not in own_ids]
            active = self._count_active(own_jobs) + sum(seen.state is JobState.ACTIVE for seen in others)
        queued_left, active_left = self._limits.queued - known_count, self._limits.active - active
        self._is_full = min(queued_left, active_left) < 1
        if not self._is_full:
            self._pause = self._limits.shortest
            return QuotaShare(min(count, queued_left), min(count, active_left))
        left = max(0.0, self._stale_at(snapshot, own_jobs) - self._now())
        name = self._backend.name
        if queued_left < 1:
            why = (
                f"{name} has {known_count} jobs of yours (max_queued is {self._limits.queued}), "
                f"{known_count - len(own_ids)} of which are not of this program"
            )
        else:
            why = f"{active} jobs of yours run on {name}, or may (max_active is {self._limits.active})"
        return QuotaReached(min(left, self._limits.shortest), why)

    def _count_in_submission(self, system_digest: str, snapshot: Snapshot) -> int:
        """Count the jobs being submitted now, and those that other processes submitted since the answer."""
        with self._lock:
            own = {it.announcement for it in self._granted}
            count = sum(int(it.queued) for it in self._granted if it.ended == math.inf)
        for announcement in self._shared_poll.wanted_by_others(system_digest, self._now()) - own:
            with contextlib.suppress(ValueError):  # a word of another version
                _, queued, ended = announcement.split("/")
                count += int(queued) if float(ended) >= snapshot.begun else 0
        return count

    def _count_active(self, own_jobs: Iterable[JobView]) -> int:
        """Count the jobs that may run at a time, of those that this process follows or is submitting."""
        with self._lock:
            elements = Counter(job.place.array if job.place is not None else None for job in own_jobs)
            self._array_limits = {array: it for array, it in self._array_limits.items() if array in elements}
            alone = elements.pop(None, 0)
            together = sum(min(it, self._array_limits.get(str(array), it)) for array, it in elements.items())
            return alone + together + sum(int(it.active) for it in self._granted)

    def _announce(self, system_digest: str) -> None:
        """Announce this process's grants to others, who cannot see the jobs in the batch system yet."""
        with self._lock:
            begun = _NEVER if self._last_snapshot is None else self._last_snapshot.begun
            self._granted = [it for it in self._granted if it.ended >= begun]
            words = frozenset(it.announcement for it in self._granted)
            self._shared_poll.announce(system_digest, words, self._now(), _LEASE_SECONDS)


def split_wave(
    parts: Sequence[Sequence[T]], grant: QuotaShare, *, can_limit: bool
) -> tuple[list[tuple[Sequence[T], int | None]], list[Sequence[T]]]:
    """Split parts, each of which is one submission, into the jobs to submit now and those for later.

    >>> split_wave(["abcd", "ef", "g"], QuotaShare(5, 3), can_limit=True)
    ([('abcd', 3)], ['ef', 'g'])
    >>> split_wave(["abcd", "ef", "g"], QuotaShare(5, 9), can_limit=True)
    ([('abcd', None), ('e', None)], ['f', 'g'])

    Args:
        parts: the jobs.
        grant: the permission to submit.
        can_limit: True if the batch system can limit how many elements of an array run at a time.

    Returns:
        The parts to submit now, each with the number of its jobs that may run at a time, or None for all;
        and the parts for later.
    """
    now, later = [], []
    queued, active = grant.queued, grant.active
    for part in parts:
        most = min(len(part), queued, active if not can_limit else math.inf)
        count = 0 if active < 1 else int(most)
        at_a_time = int(min(count, active))
        if count:
            now.append((part[:count], at_a_time if at_a_time < count else None))
        if count < len(part):
            later.append(part[count:])
        queued -= count
        active -= at_a_time
    return now, later


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

    if config.max_queued is None and config.max_active is None:
        return Throttle(backend, SubmitQueue(now), None)
    limits = Limits(
        queued=config.max_queued or math.inf,
        active=config.max_active or math.inf,
        shortest=config.shortest_interval.total_seconds(),
        longest=config.longest_interval.total_seconds(),
    )
    return Throttle(backend, SubmitQueue(now), Quota(backend, limits, own_jobs, shared_poll, now))


@attrs.frozen(slots=True)
class Throttle:
    """The throttle of one executor: its submit queue and its quota. Methods may be called from any thread."""

    _backend: Backend
    #: The queue of jobs that wait for quota.
    _submit_queue: SubmitQueue
    #: The quota; None if there is no limit.
    _quota: Quota | None

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
                arrays = self._backend.capabilities.arrays
                can_limit = arrays is not None and arrays.limits
                now, left = split_wave(left, grant, can_limit=can_limit)
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
