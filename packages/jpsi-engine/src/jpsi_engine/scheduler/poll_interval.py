"""When to ask the batch system: soon after a submission, and ever more rarely after that.

While jobs report by their markers there is hardly anything to ask. A question about very many jobs takes a
program a while itself, each time as long, so that more of them go by before it asks again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

#: While markers arrive, the queue is not asked more often than this.
QUIET_SECONDS = 10.0
_GROWTH = 1.6
_JITTER = 0.1
# In shortest intervals: when to look again whether somebody else is done with asking.
_RETRY = 0.1
# In intervals: how long others may ask, again and again, what does not answer the question here.
_PATIENCE = 3
# How many times as long as the program was busy with a question it is not busy with the next: 5 % of a core.
_REST = 20
_NEVER = float("-inf")


class Poller:
    """Decides when the next question is due. Times are seconds of one clock that never goes back.

    Methods may be called from any thread.

    Args:
        shortest: the first interval, in seconds.
        longest: the longest one.
        jitter: returns a number from 0 to 1, so that programs that were started together do not ask together.
    """

    def __init__(self, shortest: float, longest: float, jitter: Callable[[], float]) -> None:
        #: The bounds of the interval.
        self.shortest = shortest
        self.longest = max(shortest, longest)
        self._jitter = jitter
        self._lock = threading.Lock()
        self._interval = shortest
        self._due = float("inf")
        # When the last question was begun, and when it was answered or not.
        self._begun = _NEVER
        self._asked = _NEVER
        # How long no other is to be begun then.
        self._rest = 0.0
        self._marked = _NEVER
        # When something new to ask about came up first since then, and when something urgent did last.
        self._news: float | None = None
        self._urgent = _NEVER
        # Since when a question that is due was put off: as somebody asks, and as somebody just has.
        self._busy: float | None = None
        self._late: float | None = None

    def due(self) -> float:
        """When to ask next."""
        with self._lock:
            quiet = min(QUIET_SECONDS, self.longest)
            is_quiet = self._marked > self._asked - quiet and self._urgent <= self._begun
            return max(self._due, self._asked + max(self._rest, quiet if is_quiet else 0.0))

    def wanted(self, now: float, *, is_urgent: bool = False) -> None:
        """There is something new to ask about.

        Args:
            now: the time.
            is_urgent: whether markers cannot tell it, as when the batch system has ended a job.
        """
        with self._lock:
            self._news = now if self._news is None else self._news
            self._urgent = now if is_urgent else self._urgent
            self._interval = self.shortest
            soon = max(now, self._asked) + self.shortest
            # One that is overdue by more was forgotten; any other is asked any moment.
            self._due = soon if self._due < now - self.shortest else min(self._due, soon)

    def marked(self, now: float) -> None:
        """A marker arrived."""
        with self._lock:
            self._marked = now

    def asked(self, begun: float, ended: float) -> None:
        """A question was asked, answered or not, by this process or by another that told it.

        What came up after it was begun is still to be asked about.
        """
        with self._lock:
            self._begun, self._asked = max(begun, self._begun), max(ended, self._asked)
            self._news = self._busy = self._late = None
            self._due = self._asked + self._interval * (1 + _JITTER * self._jitter())
            self._interval = min(self._interval * _GROWTH, self.longest)

    def cost(self, seconds: float) -> None:
        """Working through the last question kept this program busy for so long."""
        with self._lock:
            self._rest = min(_REST * seconds, self.longest)

    def is_news(self, begun: float, ended: float, now: float) -> bool:
        """Whether the answer to this question of another process does for the one that is due here."""
        with self._lock:
            is_later = begun > self._begun and (self._news is None or begun >= self._news)
            return is_later and now < ended + self._interval

    def is_too_soon(self, now: float, ended: float) -> bool:
        """Whether to wait, as somebody's question was answered only just now: not if that goes on and on."""
        with self._lock:
            self._busy = None
            self._late = now if self._late is None else self._late
            if now >= min(ended + self.shortest, self._late + _PATIENCE * self._interval):
                return False
            self._due = ended + self.shortest
            return True

    def is_busy(self, now: float) -> bool:
        """Whether to wait, as somebody is asking: not if they have been at it for an interval."""
        with self._lock:
            self._busy = now if self._busy is None else self._busy
            if now >= self._busy + self._interval:
                return False
            self._due = now + _RETRY * self.shortest
            return True
