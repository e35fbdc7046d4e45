"""Counts the time during which the other side was alive: while it is silent, no job's patience runs out."""

from __future__ import annotations

import threading
from collections import deque

# After so many seconds of silence the other side counts as gone. One that is alive speaks every one or two
# seconds. If a line takes longer than this for each word, time still counts, if slowly.
_SILENCE_SECONDS = 10.0
# More gaps than a patience spans, and more words than arrive during one poll.
_KEPT = 1000


class Liveness:
    """The times at which the other side spoke, in seconds of one monotonic clock. Methods are thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._words: deque[float] = deque(maxlen=_KEPT)
        self._is_lost = True
        self._gaps: deque[tuple[float, float]] = deque(maxlen=_KEPT)

    def heard(self, now: float) -> None:
        """Note that the other side said something."""
        with self._lock:
            if not self._words:
                self._gaps.append((float("-inf"), now))
            elif self._is_lost:
                self._gaps.append((self._words[-1], now))
            elif now - self._words[-1] > _SILENCE_SECONDS:
                self._gaps.append((self._words[-1] + _SILENCE_SECONDS, now))
            self._words.append(now)
            self._is_lost = False

    def lost(self) -> None:
        """Note that the connection is lost: the time since the last word does not count."""
        with self._lock:
            self._is_lost = True

    def passed(self, since: float, now: float) -> float:
        """Return how many of the seconds between two times count.

        The seconds after the last word before `now` do not count: the next word may report on them, and the
        caller has seen only what had arrived by then.
        """
        with self._lock:
            until = next((word for word in reversed(self._words) if word <= now), float("-inf"))
            missed = sum(max(0.0, min(end, until) - max(begin, since)) for begin, end in self._gaps)
            return max(0.0, until - since - missed)
