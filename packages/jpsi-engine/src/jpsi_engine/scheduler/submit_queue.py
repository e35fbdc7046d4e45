"""Queues the submissions of one executor, first come, first served, until there is room for their jobs.

All threads of this process that submit to the executor queue here. A batch executor queues them until its
quota admits them (`scheduler.quota`), the local engine until enough slots are free (`local.slots`).

The first submission in the queue checks for room in its own thread, which can be interrupted. It waits for no
callback and for no event of a job, so a callback may submit jobs.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator
from typing import TypeVar

import attrs

from jpsi.plugin import JpsiError, SubmitException
from jpsi_engine.host import reset_after_fork

log = logging.getLogger(__name__)

_T = TypeVar("_T")

# When a waiting submission is first logged as a warning, and the interval between such warnings.
_WARNING_SECONDS = 30.0
_WARNING_INTERVAL_SECONDS = 600.0
# The pause after a first check that failed for a reason that may pass, and the number of such pauses.
_RETRY_SECONDS, _RETRIES = 1.0, 3
# The time until the next check after a check failed, for a submission that waits already.
_CHECK_FAILED_SECONDS = 30.0


@attrs.frozen(slots=True)
class QuotaReached:
    """The result of a check that found no room."""

    #: The seconds until the next check.
    seconds: float
    #: The reason, as a sentence.
    reason: str


class SubmissionCancelled(Exception):
    """The error for a submission that waited, some of whose jobs are not to be submitted any more."""

    def __init__(self, job_ids: Collection[str]) -> None:
        super().__init__(job_ids)
        self.job_ids = frozenset(job_ids)


def not_admitted_error(job_id: str) -> SubmitException:
    """Return the error for a job that was cancelled while it waited."""
    return SubmitException(f"job {job_id} was cancelled while it waited to be submitted")


@attrs.define(slots=True, eq=False)
class _WaitingSubmission:
    """A submission in the queue."""

    job_ids: frozenset[str]
    queued_at: float
    cancelled_ids: set[str] = attrs.field(factory=set)
    #: True if it was logged that it waits.
    is_logged: bool = False
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
        self._last_warning = float("-inf")
        self._reset()
        reset_after_fork(self, SubmitQueue._reset)

    def _reset(self) -> None:
        """Empty the queue; after a fork, the waiting submissions stay with the parent process."""
        self._changed = threading.Condition()
        self._entries: list[_WaitingSubmission] = []
        # counts the calls of `recheck`
        self._recheck_count = 0

    def acquire(self, job_ids: Collection[str], check: Callable[[], _T | QuotaReached]) -> _T:
        """Wait until there is room, and return the result of `check`.

        Args:
            job_ids: the jobs that are to be submitted.
            check: checks for room and reserves it, or returns `QuotaReached`. Only the first submission in
                the queue calls it.

        Raises:
            SubmissionCancelled: some of the jobs were cancelled; there may be room for the others.
            JpsiError: the first check failed, and the next three, a second apart, if the reason may pass. A
                submission that waits already retries instead.
        """
        with self._queued(job_ids) as entry:
            while True:
                with self._changed:
                    self._wait_for_turn(entry)
                    rechecks = self._recheck_count
                result = self._run_check(entry, check)
                if not isinstance(result, QuotaReached):
                    return result
                if entry.is_logged or not entry.failures:
                    self._log_wait(entry, result)
                with self._changed:
                    self._raise_if_cancelled(entry)
                    if self._is_closed:
                        raise SubmissionCancelled(entry.job_ids)
                    if self._recheck_count == rechecks:
                        self._wait(self._changed, result.seconds)

    def give_up(self, job_ids: Collection[str] | None) -> None:
        """Stop jobs from waiting; None means all, now and later.

        Later jobs are then admitted only if there is room at once.
        """
        with self._changed:
            self._is_closed = self._is_closed or job_ids is None
            for entry in self._entries:
                entry.cancelled_ids |= entry.job_ids if job_ids is None else entry.job_ids & set(job_ids)
            self._changed.notify_all()

    def recheck(self) -> None:
        """Make the first submission check again, as there may be room."""
        with self._changed:
            self._recheck_count += 1
            self._changed.notify_all()

    @contextlib.contextmanager
    def _queued(self, job_ids: Collection[str]) -> Iterator[_WaitingSubmission]:
        entry = _WaitingSubmission(frozenset(job_ids), self._now())
        with self._changed:
            self._entries.append(entry)
        try:
            yield entry
        finally:
            with self._changed:
                self._entries.remove(entry)
                self._changed.notify_all()

    def _wait_for_turn(self, entry: _WaitingSubmission) -> None:
        self._raise_if_cancelled(entry)
        while self._entries[0] is not entry:
            self._changed.wait()
            self._raise_if_cancelled(entry)

    @staticmethod
    def _raise_if_cancelled(entry: _WaitingSubmission) -> None:
        if entry.cancelled_ids:
            raise SubmissionCancelled(entry.cancelled_ids)

    @staticmethod
    def _run_check(entry: _WaitingSubmission, check: Callable[[], _T | QuotaReached]) -> _T | QuotaReached:
        try:
            result = check()
        except JpsiError as e:
            if entry.is_logged:
                return QuotaReached(_CHECK_FAILED_SECONDS, str(e))
            # such as a list of jobs that changed between its two halves
            if entry.failures == _RETRIES or not (isinstance(e, SubmitException) and e.transient):
                raise
            entry.failures += 1
            return QuotaReached(_RETRY_SECONDS, str(e))
        entry.failures = 0
        return result

    def _log_wait(self, entry: _WaitingSubmission, reached: QuotaReached) -> None:
        now = self._now()
        if not entry.is_logged:
            entry.is_logged = True
            log.info("jobs wait to be submitted: %s", reached.reason)
        if now >= max(entry.queued_at + _WARNING_SECONDS, self._last_warning + _WARNING_INTERVAL_SECONDS):
            self._last_warning = now
            log.warning("jobs have waited %.0f s to be submitted: %s", now - entry.queued_at, reached.reason)
