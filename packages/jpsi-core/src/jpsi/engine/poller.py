"""When to ask the batch system: soon after a submission, and ever more rarely after that.

While jobs report by their markers there is hardly anything to ask.
"""

from __future__ import annotations

from collections.abc import Callable

#: While markers arrive, the queue is not asked more often than this.
QUIET_SECONDS = 10.0
_GROWTH = 1.6
_JITTER = 0.1


class Poller:
    """Decides when the next question is due. Times are seconds of one clock that never goes back.

    Args:
        shortest: the first interval, in seconds.
        longest: the longest one.
        jitter: returns a number from 0 to 1, so that programs that were started together do not ask together.
    """

    def __init__(self, shortest: float, longest: float, jitter: Callable[[], float]) -> None:
        self._shortest = shortest
        self._longest = max(shortest, longest)
        self._jitter = jitter
        self._interval = shortest
        self._due = float("inf")
        self._asked = float("-inf")
        self._marked = float("-inf")
        self._is_urgent = False

    def due(self) -> float:
        """When to ask next."""
        quiet = min(QUIET_SECONDS, self._longest)
        if self._marked > self._asked - quiet and not self._is_urgent:
            return max(self._due, self._asked + quiet)
        return self._due

    def wanted(self, now: float, *, is_urgent: bool = False) -> None:
        """There is something new to ask about.

        Args:
            now: the time.
            is_urgent: whether markers cannot tell it, as when the batch system has ended a job.
        """
        self._is_urgent = self._is_urgent or is_urgent
        self._interval = self._shortest
        soon = max(now, self._asked) + self._shortest
        self._due = soon if self._due < now else min(self._due, soon)

    def marked(self, now: float) -> None:
        """A marker arrived."""
        self._marked = now

    def asking(self) -> None:
        """The question goes out; what is urgent from now on it does not answer."""
        self._is_urgent = False

    def asked(self, now: float) -> None:
        """The question was asked at this time, answered or not."""
        self._asked = now
        self._due = now + self._interval * (1 + _JITTER * self._jitter())
        self._interval = min(self._interval * _GROWTH, self._longest)
