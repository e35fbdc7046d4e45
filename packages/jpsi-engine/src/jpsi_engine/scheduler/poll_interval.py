"""Decides when to poll the batch system: soon after a submission, then at growing intervals.

While jobs report by their markers, there is hardly anything to poll for, and even less while all of them
wait: the runner of a job that starts leaves a marker. A poll about very many jobs keeps the program itself
busy for a while, so it pauses the longer before the next. If the batch system does not answer, it is decided
here when the log should say so.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import attrs

#: While markers arrive, the queue is not polled more often than once in so many seconds.
QUIET_SECONDS = 10.0
#: A batch system may fail to answer once or twice; an outage of so many seconds is logged.
PATIENCE_SECONDS = 60.0
_GROWTH = 1.6
_JITTER = 0.1
# While all jobs wait, the interval grows by so much that a job which is cancelled from outside is noticed
# after a tenth of the time that it waited; and a poll of very many jobs is followed at once by an interval of
# so many seconds for each of them.
_WAITING_GROWTH = 1.1
_SECONDS_OF_A_JOB = 0.03
# In intervals: after that time without a word, a process's jobs are not polled any more.
_LEASE = 4
# In shortest intervals: the pause before an urgent poll.
_URGENT = 0.25
# In shortest intervals: the pause before the first poll after one that did not tell how a job has ended.
_UNSETTLED = 0.5
# In shortest intervals: the pause before the next attempt, if another process is polling.
_RETRY = 0.1
# In intervals: how long this process is put off by polls of others that do not answer its question.
_PATIENCE = 3
# The program rests so many times as long as a poll kept it busy: it uses 5 % of a core.
_REST = 20
_NEVER = float("-inf")


@attrs.define
class Outage:
    """The outages of one batch system that one program polls. Times are seconds of one clock."""

    #: A failed poll that ended longer than this before the next one belongs to another outage.
    lapse: float
    _since: float | None = attrs.field(default=None, init=False)
    _last_failure: float = attrs.field(default=0.0, init=False)
    _is_logged: bool = attrs.field(default=False, init=False)

    def note_outage(self, begun: float, ended: float) -> float | None:
        """Note a failed poll; return the length of the outage in seconds if it is to be logged now."""
        if self._since is None or begun > self._last_failure + self.lapse:
            self._since, self._is_logged = begun, False
        self._last_failure = ended
        lasted = ended - self._since
        if self._is_logged or lasted < PATIENCE_SECONDS:
            return None
        self._is_logged = True
        return lasted

    def note_success(self) -> bool:
        """Note an answered poll; return True if that ends an outage that was logged."""
        was_logged, self._since, self._is_logged = self._is_logged, None, False
        return was_logged


class PollInterval:
    """The time of the next poll, in seconds of one monotonic clock.

    Methods may be called from any thread.

    Args:
        shortest: the first interval, in seconds.
        longest: the longest interval.
        waiting: the longest interval while all jobs wait.
        jitter: returns a number from 0 to 1, so that programs that were started together do not poll
            together.
    """

    def __init__(self, shortest: float, longest: float, waiting: float, jitter: Callable[[], float]) -> None:
        #: The bounds of the interval.
        self.shortest = shortest
        self.longest = max(shortest, longest)
        self._longest_waiting = max(self.longest, waiting)
        self._all_wait = False
        # Until then a caller waits for a status; a job that is cancelled while it waits leaves no marker.
        self._deadline = _NEVER
        self._jitter = jitter
        self._lock = threading.Lock()
        self._interval = shortest
        self._due = float("inf")
        # When the last poll was begun, and when it ended, successfully or not.
        self._last_begun = _NEVER
        self._last_ended = _NEVER
        # The seconds after its end in which no other poll may begin.
        self._rest = 0.0
        self._last_marker = _NEVER
        # When the first reason to poll since then came up, when the last one did, and the last urgent one.
        self._requested: float | None = None
        self._last_request = _NEVER
        self._urgent_request = _NEVER
        # True if the last poll did not tell how a job has ended, and no marker will tell.
        self._is_unsettled = False
        # Since when a due poll has been put off: because another process is polling, or because one just has.
        self._busy_since: float | None = None
        self._deferred_since: float | None = None

    def next_poll_time(self) -> float:
        """Return when to poll next."""
        with self._lock:
            quiet = min(QUIET_SECONDS, self.longest)
            is_urgent = self._is_unsettled or self._urgent_request > self._last_begun
            is_quiet = self._last_marker > self._last_ended - quiet and not is_urgent
            return max(self._due, self._last_ended + max(self._rest, quiet if is_quiet else 0.0))

    def request_poll(self, now: float, *, is_urgent: bool = False) -> None:
        """Note a new reason to poll.

        Args:
            now: the current time.
            is_urgent: True if no marker reports the change, for example that the batch system has ended a
                job.
        """
        with self._lock:
            self._requested = now if self._requested is None else self._requested
            self._last_request = now
            self._urgent_request = now if is_urgent else self._urgent_request
            self._interval = self.shortest
            # an urgent poll waits a moment for the other jobs that the same command has ended
            soon = max(now, self._last_ended) + self.shortest
            if is_urgent:
                soon = max(now + _URGENT * self.shortest, self._last_ended + self.shortest)
            # A poll that is overdue by more than that was put off and forgotten; any other happens at any
            # moment.
            self._due = soon if self._due < now - self.shortest else min(self._due, soon)

    def note_jobs(self, now: float, *, waiting: int) -> None:
        """Note after a poll how many jobs wait; 0 if any does not.

        If all of them wait, only an end from outside could go unnoticed.
        """
        with self._lock:
            self._all_wait = waiting > 0
            self._limit_interval(now)
            many = min(_SECONDS_OF_A_JOB * waiting, self._longest_waiting)
            if many > max(self._interval, self.longest) and self._may_pause(now):
                self._interval = many
                self._due = self._jittered_due()

    def note_deadline(self, now: float, seconds: float) -> None:
        """Note that a caller waits for a status of a job, for so many seconds at most."""
        with self._lock:
            self._deadline = max(self._deadline, now + seconds)
            self._limit_interval(now)

    def _is_relaxed(self, now: float) -> bool:
        return self._all_wait and now >= self._deadline

    def _may_pause(self, now: float) -> bool:
        """Return True if there is no other reason to poll than that jobs wait, and none came up in a poll."""
        return self._is_relaxed(now) and not self._is_unsettled and self._last_request < self._last_begun

    def _jittered_due(self) -> float:
        return self._last_ended + self._interval * (1 + _JITTER * self._jitter())

    @property
    def lease(self) -> float:
        """The seconds for which other processes poll about the jobs of this one if it does not poll."""
        with self._lock:
            return _LEASE * max(self._interval, self.longest)

    def _limit_interval(self, now: float) -> None:
        # before the first poll, the request for it decides when it is due
        if self._last_ended > _NEVER and not self._is_relaxed(now):
            self._interval = min(self._interval, self.longest)
            self._due = min(self._due, max(now, self._last_ended + self.longest * (1 + _JITTER)))

    def note_marker(self, now: float) -> None:
        """Note that a marker arrived."""
        with self._lock:
            self._last_marker = now

    def note_unsettled(self, *, is_soon: bool) -> None:
        """Note after a poll that the batch system does not tell yet how a job has ended.

        No marker will tell, so the next poll does not wait until markers are quiet.

        Args:
            is_soon: True if the job has left an exit marker. The first poll is soon then, as most batch
                systems end a job within a second; then the intervals grow.
        """
        with self._lock:
            self._is_unsettled = True
            if is_soon and self._interval <= self.shortest * _GROWTH:
                self._due = min(self._due, self._last_ended + _UNSETTLED * self.shortest)

    def note_poll(self, begun: float, ended: float) -> None:
        """Note a poll, successful or not, by this process or by another one whose snapshot this process uses.

        A reason to poll that came up after the poll was begun stays open.
        """
        with self._lock:
            self._last_begun, self._last_ended = max(begun, self._last_begun), max(ended, self._last_ended)
            self._requested = self._busy_since = self._deferred_since = None
            self._is_unsettled = False
            self._due = self._jittered_due()
            if self._interval < self.longest or not self._is_relaxed(ended):
                self._interval = min(self._interval * _GROWTH, self.longest)
            else:
                self._interval = min(self._interval * _WAITING_GROWTH, self._longest_waiting)

    def note_cost(self, seconds: float) -> None:
        """Note for how many seconds this program was busy with the last poll."""
        with self._lock:
            self._rest = min(_REST * seconds, self.longest)

    def can_replace_poll(self, begun: float, ended: float, now: float) -> bool:
        """Return True if this poll of another process serves as the one that is due."""
        with self._lock:
            is_later = begun > self._last_begun and (self._requested is None or begun >= self._requested)
            return is_later and now < ended + self._interval

    def is_too_soon(self, now: float, ended: float) -> bool:
        """Return True, and put the due poll off, if another process has just polled.

        The poll is not put off for more than a few intervals in all.
        """
        with self._lock:
            self._busy_since = None
            self._deferred_since = now if self._deferred_since is None else self._deferred_since
            if now >= min(ended + self.shortest, self._deferred_since + _PATIENCE * self._patience()):
                return False
            self._due = ended + self.shortest
            return True

    def _patience(self) -> float:
        """Return the interval for which a due poll is put off."""
        return min(self._interval, self.longest)

    def is_busy(self, now: float) -> bool:
        """Return True, and put the due poll off, if another process is polling.

        After a whole interval the poll is not put off any longer.
        """
        with self._lock:
            self._busy_since = now if self._busy_since is None else self._busy_since
            if now >= self._busy_since + self._patience():
                return False
            self._due = now + _RETRY * self.shortest
            return True
