"""How much of the time there was somebody to be heard: while there is nobody, no patience runs out."""

from __future__ import annotations

import threading
from collections import deque

# Who says nothing for longer is not there. One who is there says something each second, or every other; by a
# line that takes longer than that for each word, time passes, if slowly.
_SILENCE_SECONDS = 10.0
# More gaps than anybody's patience spans, and more words than come while a question is asked.
_KEPT = 1000


class HeardTime:
    """Times are seconds of one clock that never goes back. Any thread may call the methods."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._words: deque[float] = deque(maxlen=_KEPT)
        self._is_lost = True
        self._gaps: deque[tuple[float, float]] = deque(maxlen=_KEPT)

    def heard(self, now: float) -> None:
        """Something was said."""
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
        """Nothing is said from now on, or since the last time."""
        with self._lock:
            self._is_lost = True

    def passed(self, since: float, now: float) -> float:
        """How many of the seconds between these times count.

        Those after the last word before `now` do not: what comes later may tell of them, and whoever asks has
        looked at what had come by then.
        """
        with self._lock:
            until = next((word for word in reversed(self._words) if word <= now), float("-inf"))
            missed = sum(max(0.0, min(end, until) - max(begin, since)) for begin, end in self._gaps)
            return max(0.0, until - since - missed)
