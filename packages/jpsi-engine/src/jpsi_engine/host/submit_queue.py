"""Queues submissions, first come, first served, until a quota, throttle or free slots admit their jobs.

The first submission in the queue checks for room in its own thread, which can be interrupted. It waits for no
callback and for no event of a job, so a callback may submit jobs.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Collection, Iterator
from typing import TypeVar

import attrs

from jpsi.plugin import JpsiError, SubmitException

log = logging.getLogger(__name__)

T = TypeVar("T")

# When a waiting submission is first logged as a warning, and the interval between such warnings.
_LONG_SECONDS = 30.0
_AGAIN_SECONDS = 600.0
# The pause after a first check that failed for a reason that may pass, and the number of such pauses.
_RETRY_SECONDS, _RETRIES = 1.0, 3
# The time until the next check after a check failed, for a submission that waits already.
_FAILED_SECONDS = 30.0


@attrs.frozen(slots=True)
class QuotaReached:
    """The result of a check that found no room."""

    #: The seconds until the next check.
    seconds: float
    #: The reason, as a sentence.
    why: str


class SubmissionCancelled(Exception):
    """The error for a submission that waited, some of whose jobs are not to be submitted any more."""

    def __init__(self, job_ids: Collection[str]) -> None:
        super().__init__(job_ids)
        self.job_ids = frozenset(job_ids)


def not_admitted(job_id: str) -> SubmitException:
    """Return the error for a job that was given up while it waited."""
    return SubmitException(f"job {job_id} waited for room and was given up before there was any")


@attrs.define(slots=True, eq=False)
class _Place:
    """A submission in the queue."""

    job_ids: frozenset[str]
    since: float
    given_up: set[str] = attrs.field(factory=set)
    #: True if it was logged that it waits.
    is_told: bool = False
    #: How many checks have failed before one succeeded, for a reason that may pass.
    failures: int = 0


class SubmitQueue:
    """The queue of submissions of one executor. Methods may be called from any thread.

    Args:
        now: the clock.
        wait: waits for a condition, for at most so many seconds.
    """

    def __init__(
        self,
        now: Callable[[], float] = time.monotonic,
        wait: Callable[[threading.Condition, float], object] = threading.Condition.wait,
    ) -> None:
        self._now = now
        self._wait = wait
        self._is_closed = False
        self._told_aloud = float("-inf")
        self._renew()
        _entrances.add(self)

    def _renew(self) -> None:
        """Empty the queue; after a fork, the waiting submissions stay with the parent process."""
        self._changed = threading.Condition()
        self._line: list[_Place] = []
        # counts the calls of look_again
        self._news = 0

    def enter(self, job_ids: Collection[str], look: Callable[[], T | QuotaReached]) -> T:
        """Wait until there is room, and return the result of `look`.

        Args:
            job_ids: the jobs that are to be submitted.
            look: checks for room and reserves it, or returns `QuotaReached`. Only the first submission in the
                queue calls it.

        Raises:
            SubmissionCancelled: some of the jobs were given up; there may be room for the others.
            JpsiError: the first check failed, and the next three, a second apart, if the reason may pass. A
                submission that waits already retries instead.
        """
        with self._standing(job_ids) as place:
            while True:
                with self._changed:
                    self._come_first(place)
                    news = self._news
                result = self._looked(place, look)
                if not isinstance(result, QuotaReached):
                    return result
                if place.is_told or not place.failures:
                    self._tell(place, result)
                with self._changed:
                    self._check(place)
                    if self._is_closed:
                        raise SubmissionCancelled(place.job_ids)
                    if self._news == news:
                        self._wait(self._changed, result.seconds)

    def give_up(self, job_ids: Collection[str] | None) -> None:
        """Stop jobs from waiting; None means all, now and later.

        Later jobs are then admitted only if there is room at once.
        """
        with self._changed:
            self._is_closed = self._is_closed or job_ids is None
            for place in self._line:
                place.given_up |= place.job_ids if job_ids is None else place.job_ids & set(job_ids)
            self._changed.notify_all()

    def look_again(self) -> None:
        """Make the first submission check again, as there may be room."""
        with self._changed:
            self._news += 1
            self._changed.notify_all()

    @contextlib.contextmanager
    def _standing(self, job_ids: Collection[str]) -> Iterator[_Place]:
        place = _Place(frozenset(job_ids), self._now())
        with self._changed:
            self._line.append(place)
        try:
            yield place
        finally:
            with self._changed:
                self._line.remove(place)
                self._changed.notify_all()

    def _come_first(self, place: _Place) -> None:
        self._check(place)
        while self._line[0] is not place:
            self._changed.wait()
            self._check(place)

    @staticmethod
    def _check(place: _Place) -> None:
        if place.given_up:
            raise SubmissionCancelled(place.given_up)

    @staticmethod
    def _looked(place: _Place, look: Callable[[], T | QuotaReached]) -> T | QuotaReached:
        try:
            result = look()
        except JpsiError as e:
            if place.is_told:
                return QuotaReached(_FAILED_SECONDS, str(e))
            # such as a list of jobs that changed between its two halves
            if place.failures == _RETRIES or not (isinstance(e, SubmitException) and e.transient):
                raise
            place.failures += 1
            return QuotaReached(_RETRY_SECONDS, str(e))
        place.failures = 0
        return result

    def _tell(self, place: _Place, full: QuotaReached) -> None:
        now = self._now()
        if not place.is_told:
            place.is_told = True
            log.info("jobs wait to be submitted: %s", full.why)
        if now >= max(place.since + _LONG_SECONDS, self._told_aloud + _AGAIN_SECONDS):
            self._told_aloud = now
            log.warning("jobs have waited %.0f s to be submitted: %s", now - place.since, full.why)


_entrances: weakref.WeakSet[SubmitQueue] = weakref.WeakSet()


def _after_fork() -> None:
    for entrance in _entrances:
        entrance._renew()  # noqa: SLF001  the same module


os.register_at_fork(after_in_child=_after_fork)
