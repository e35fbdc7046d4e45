"""Delays submissions while the user has too many jobs in the batch system (`max_queued`, `max_active`).

A batch executor asks its `Throttle` before each submission. The quota counts all jobs of the user that the
batch system reports, including those of other programs and those submitted by hand. Between two answers it
also counts the jobs that this process follows or has submitted, and the submissions that the user's processes
on this machine announce to each other.
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
from jpsi_engine.scheduler.backend import Backend
from jpsi_engine.scheduler.job_view import JobView
from jpsi_engine.scheduler.shared_poll import SharedPoll
from jpsi_engine.scheduler.snapshot import Snapshot
from jpsi_engine.scheduler.submit_queue import (
    QuotaReached,
    SubmissionCancelled,
    SubmitQueue,
    not_admitted_error,
)
from jpsi_engine.spool import ArrayMember

_T = TypeVar("_T")

# The factor by which the pause between polls grows while the quota is reached.
_GROWTH = 1.6
# The pause before the next attempt while another process holds the lock, as a fraction of the shortest
# interval.
_RETRY_FRACTION = 0.05
# Other processes ignore an announcement this many seconds after it was last renewed (its process may have
# crashed).
_LEASE_SECONDS = 600.0
_NEVER = float("-inf")


@attrs.frozen(slots=True, kw_only=True)
class Limits:
    """The limits that the configuration of an executor sets; infinity means no limit."""

    #: The most jobs of the user, waiting or running, that the batch system may have (`max_queued`).
    queued: float = math.inf
    #: The most of them that may run (`max_active`).
    active: float = math.inf
    #: The seconds after which an answer of the batch system is too old to use.
    shortest: float
    #: The longest interval between polls while the quota is reached, in seconds.
    longest: float


@attrs.define(slots=True, eq=False)
class Grant:
    """The permission that a quota gives to submit some jobs now."""

    #: The number of jobs.
    queued: float
    #: The number of them that may run at a time; 0 once the submission ended.
    active: float
    _unique: str = attrs.field(factory=lambda: os.urandom(4).hex())
    #: When the submission ended, successfully or not; infinity while it goes on.
    ended: float = math.inf

    @property
    def announcement(self) -> str:
        """The text that announces this grant to other processes."""
        return f"{self._unique}/{self.queued:.0f}/{self.ended}"


@attrs.define(slots=True, eq=False)
class Quota:
    """The quota of one executor. Methods may be called from any thread, `reserve` by one thread at a time.

    `SubmitQueue` sees to that: only the first submission in the queue calls `reserve`.
    """

    _backend: Backend
    _limits: Limits
    #: Returns the jobs that this process follows.
    _own_jobs: Callable[[], Collection[JobView]]
    #: The files by which the user's processes on this machine announce their submissions to each other.
    _shared_poll: SharedPoll
    #: The clock that all processes of the machine share.
    _now: Callable[[], float]
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)
    _grants: list[Grant] = attrs.field(factory=list, init=False)
    #: The number of elements of an array that may run at a time, for arrays with such a limit.
    _array_limits: dict[str, int] = attrs.field(factory=dict, init=False)
    #: The jobs that this process has submitted, by native id: when, and their places in arrays. They count
    #: until a snapshot from after that lacks them, even if they have left their exit codes.
    _submitted: dict[str, tuple[float, ArrayMember | None]] = attrs.field(factory=dict, init=False)
    _last_snapshot: Snapshot | None = attrs.field(default=None, init=False)
    _is_full: bool = attrs.field(default=False, init=False)
    #: The seconds between polls while the quota is reached. Each poll that finds it reached lengthens them.
    #: The shortest interval applies instead once a job of this process has ended, as others may be admitted
    #: then.
    _pause: float = attrs.field(init=False)
    #: The most jobs that this process followed since it began to use the last snapshot. If it follows fewer
    #: now, some have ended.
    _most_own: int = attrs.field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self._pause = self._limits.shortest

    def reserve(self, count: int) -> Grant | QuotaReached:
        """Reserve quota for up to `count` jobs; return `QuotaReached` if there is none for a single job.

        Raises:
            JpsiError: the batch system did not answer.
        """
        system_digest = self._backend.system_digest()
        self._announce(system_digest)
        with self._shared_poll.lock_polling() as is_ours:
            if not is_ours:
                return QuotaReached(
                    _RETRY_FRACTION * self._limits.shortest, "another process is submitting jobs"
                )
            own_jobs = self._own_jobs()
            snapshot = self._recent_snapshot(system_digest, own_jobs)
            grant = self._compute_grant(system_digest, snapshot, own_jobs, count)
            if isinstance(grant, Grant):
                with self._lock:
                    self._grants.append(grant)
                self._announce(system_digest)
            return grant

    def release(self, grant: Grant) -> None:
        """End a grant, after its jobs were submitted or failed to be."""
        grant.active, grant.ended = 0, self._now()
        self._announce(self._backend.system_digest())

    def note_submitted(self, job: JobView) -> None:
        """Note that a job was submitted, which this process is about to follow."""
        with self._lock:
            self._submitted[job.native_id] = (self._now(), job.place)

    def limit_array(self, array: str, at_a_time: int) -> None:
        """Note that at most `at_a_time` elements of an array run at a time."""
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
        followed = {job.native_id for job in own_jobs}
        with self._lock:
            # a job may have ended before any submission saw that this process followed it
            noted = {it for it, (at, _) in self._submitted.items() if at >= snapshot.begun}
        has_ended = len(own_jobs) < self._most_own or not noted <= followed
        is_slow = self._is_full and not has_ended
        return snapshot.ended + (self._pause if is_slow else self._limits.shortest)

    def _compute_grant(
        self, system_digest: str, snapshot: Snapshot, own_jobs: Collection[JobView], count: int
    ) -> Grant | QuotaReached:
        with self._lock:
            # a job that was noted just as the query began may be in its answer, or not
            noted = self._submitted.items()
            self._submitted = {
                it: (at, place) for it, (at, place) in noted if at >= snapshot.begun or it in snapshot.seen
            }
            own = {native_id: place for native_id, (_, place) in self._submitted.items()}
            own_in_submission = sum(int(it.queued) for it in self._grants if it.ended == math.inf)
        own |= {job.native_id: job.place for job in own_jobs}
        known_count = len(own.keys() | snapshot.seen.keys()) + own_in_submission
        known_count += self._count_in_submission_by_others(system_digest, snapshot)
        # Of the other jobs, those count as active that the batch system reports as running; of its own, this
        # process counts all that may run, since a waiting one may start at any time.
        active = 0
        if self._limits.active != math.inf:
            running = {it for it, seen in snapshot.seen.items() if seen.state is JobState.ACTIVE}
            active = self._count_active(own.values()) + len(running - own.keys())
        queued_left, active_left = self._limits.queued - known_count, self._limits.active - active
        self._is_full = min(queued_left, active_left) < 1
        if not self._is_full:
            self._pause = self._limits.shortest
            return Grant(min(count, queued_left), min(count, active_left))
        seconds_left = max(0.0, self._stale_at(snapshot, own_jobs) - self._now())
        name = self._backend.name
        if queued_left < 1:
            why = (
                f"{name} has {known_count} jobs of yours (max_queued is {self._limits.queued}), "
                f"{known_count - len(own) - own_in_submission} of which are not of this program"
            )
        else:
            why = f"{active} jobs of yours run on {name}, or may (max_active is {self._limits.active})"
        return QuotaReached(min(seconds_left, self._limits.shortest), why)

    def _count_in_submission_by_others(self, system_digest: str, snapshot: Snapshot) -> int:
        """Count the jobs that other processes are submitting now, or have submitted since the snapshot."""
        count = 0
        with self._lock:
            own_announcements = {it.announcement for it in self._grants}
        for announcement in (
            self._shared_poll.wanted_by_others(system_digest, self._now()) - own_announcements
        ):
            with contextlib.suppress(ValueError):  # written by another version of jpsi
                _, queued, ended = announcement.split("/")
                count += int(queued) if float(ended) >= snapshot.begun else 0
        return count

    def _count_active(self, places: Iterable[ArrayMember | None]) -> int:
        """Return how many of this process's jobs, and of those that it is submitting, may run at a time."""
        with self._lock:
            elements = Counter(None if place is None else place.array for place in places)
            self._array_limits = {array: it for array, it in self._array_limits.items() if array in elements}
            alone = elements.pop(None, 0)
            together = sum(min(it, self._array_limits.get(str(array), it)) for array, it in elements.items())
            return alone + together + sum(int(it.active) for it in self._grants)

    def _announce(self, system_digest: str) -> None:
        """Announce this process's grants to others, who may not see their jobs in the batch system yet."""
        with self._lock:
            begun = _NEVER if self._last_snapshot is None else self._last_snapshot.begun
            self._grants = [it for it in self._grants if it.ended >= begun]
            announcements = frozenset(it.announcement for it in self._grants)
            self._shared_poll.announce(system_digest, announcements, self._now(), _LEASE_SECONDS)


def split_wave(
    parts: Sequence[Sequence[_T]], grant: Grant, *, can_limit: bool
) -> tuple[list[tuple[Sequence[_T], int | None]], list[Sequence[_T]]]:
    """Split parts, each of which is one submission, into the jobs to submit now and those for later.

    >>> split_wave(["abcd", "ef", "g"], Grant(5, 3), can_limit=True)
    ([('abcd', 3)], ['ef', 'g'])
    >>> split_wave(["abcd", "ef", "g"], Grant(5, 9), can_limit=True)
    ([('abcd', None), ('e', None)], ['f', 'g'])

    Args:
        parts: the jobs.
        grant: how many of the jobs may be submitted, and run, now.
        can_limit: True if the batch system can limit how many elements of an array run at a time.

    Returns:
        The parts to submit now, each with the number of its jobs that may run at a time (None for all), and
        the parts for later.
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


#: Jobs to submit together: parts, each with the number of its jobs that may run at a time (None for all).
Wave = Sequence[tuple[Sequence[Submission], int | None]]


def make_throttle(
    backend: Backend,
    shared_poll: SharedPoll,
    own_jobs: Callable[[], Collection[JobView]],
    now: Callable[[], float],
) -> Throttle:
    """Return the throttle of one executor; it has a quota if `max_queued` or `max_active` is configured.

    Args:
        backend: the batch system.
        shared_poll: the files by which processes announce submissions, in a folder used for nothing else.
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
        """Yield the jobs to submit now, each time that the quota admits some.

        When the caller asks for the next wave, it has submitted the last one or failed to.
        """
        quota, parts_left = self._quota, list(parts)
        if quota is None:
            yield [(part, None) for part in parts_left]
            return
        while parts_left:
            grant, refusals = self._wait_for_quota(quota, [it.job_id for part in parts_left for it in part])
            for job_id, error in refusals.items():
                report_refusal(job_id, error)
            if grant is None:
                rest = ([it for it in part if it.job_id not in refusals] for part in parts_left)
                parts_left = [part for part in rest if part]
                continue
            try:
                arrays = self._backend.capabilities.arrays
                can_limit = arrays is not None and arrays.limits
                now, parts_left = split_wave(parts_left, grant, can_limit=can_limit)
                yield now
            finally:
                quota.release(grant)

    def _wait_for_quota(
        self, quota: Quota, job_ids: Sequence[str]
    ) -> tuple[Grant | None, Mapping[str, JpsiError]]:
        """Wait for quota for jobs; return the grant, or None and errors for jobs that are not submitted."""
        try:
            return self._submit_queue.acquire(job_ids, lambda: quota.reserve(len(job_ids))), {}
        except SubmissionCancelled as e:
            return None, {job_id: not_admitted_error(job_id) for job_id in e.job_ids}
        except JpsiError as e:
            return None, dict.fromkeys(job_ids, e)

    def note_submitted(self, job: JobView) -> None:
        """Note that a job was submitted, which this process is about to follow."""
        if self._quota is not None:
            self._quota.note_submitted(job)

    def limit_array(self, array: str, at_a_time: int) -> None:
        """Note that at most `at_a_time` elements of an array run at a time."""
        if self._quota is not None:
            self._quota.limit_array(array, at_a_time)

    def cancel_waiting(self, job_ids: Collection[str] | None) -> None:
        """Cancel the submission of waiting jobs; see `SubmitQueue`."""
        self._submit_queue.give_up(job_ids)
