"""Decides how many more jobs the user may submit, from the number that the batch system has of them.

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
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeVar

import attrs

from jpsi.plugin import JobState, Observation
from jpsi_engine.host import QuotaReached
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


class Quota:
    """The quota of one executor. Methods may be called from any thread, `reserve` by one thread at a time.

    Args:
        name: the batch system's name in messages.
        limits: the limits.
        query_queue: queries the batch system for all jobs of the user that have not ended.
        system_digest: returns which batch system that is.
        own_jobs: returns the jobs that this process follows.
        shared_poll: the shared files by which processes announce their submissions.
        now: the clock that all processes of the machine share.
    """

    def __init__(  # noqa: PLR0913  the parts that it connects
        self,
        name: str,
        limits: Limits,
        *,
        query_queue: Callable[[], Mapping[str, Observation]],
        system_digest: Callable[[], str],
        own_jobs: Callable[[], Collection[JobView]],
        shared_poll: SharedPoll,
        now: Callable[[], float],
    ) -> None:
        self._name = name
        self._limits = limits
        self._query_queue = query_queue
        self._system_digest = system_digest
        self._own_jobs = own_jobs
        self._shared_poll = shared_poll
        self._now = now
        self._lock = threading.Lock()
        self._granted: list[QuotaShare] = []
        # the number of elements of an array that may run at a time, for arrays with such a limit
        self._array_limits: dict[str, int] = {}
        self._last_snapshot: Snapshot | None = None
        # while the quota is reached: the pause between polls, unless a job of this process has ended
        self._is_full = False
        self._pause = limits.shortest
        self._most_own = 0

    def reserve(self, count: int) -> QuotaShare | QuotaReached:
        """Reserve quota for up to `count` jobs; return `QuotaReached` if there is none for a single job.

        Raises:
            JpsiError: the batch system did not answer.
        """
        system_digest = self._system_digest()
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
        self._announce(self._system_digest())

    def limit_array(self, array: str, at_a_time: int) -> None:
        """Note that no more than so many elements of an array run at a time."""
        with self._lock:
            self._array_limits[array] = at_a_time

    # ---------------------------------------------------------------------------------- what is known

    def _recent_snapshot(self, system_digest: str, own_jobs: Collection[JobView]) -> Snapshot:
        """Return the newest answer that is recent enough, or poll the batch system for a new one."""
        now = self._now()
        known = [
            it
            for it in (self._last_snapshot, self._shared_poll.read_snapshot(system_digest, now))
            if it is not None
        ]
        snapshot = max(known, key=lambda it: it.begun, default=None)
        if snapshot is None or now >= self._stale_at(snapshot, own_jobs):
            seen = self._query_queue()
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
        if queued_left < 1:
            why = (
                f"{self._name} has {known_count} jobs of yours (max_queued is {self._limits.queued}), "
                f"{known_count - len(own_ids)} of which are not of this program"
            )
        else:
            why = f"{active} jobs of yours run on {self._name}, or may (max_active is {self._limits.active})"
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
