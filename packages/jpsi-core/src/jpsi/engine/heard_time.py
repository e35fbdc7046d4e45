"""How much of the time there was somebody to be heard: while there is nobody, no patience runs out."""

from __future__ import annotations

import threading
from collections import deque

# Who says nothing for longer is not there. One who is there says something each second, or every other; by a
# line that takes longer than that for each word, time passes, if slowly.
_SILENCE_SECONDS = 10.0
# More gaps than anybody's patience spans.
_KEPT = 1000


class HeardTime:
    """Times are seconds of one clock that never goes back. Any thread may call the methods."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: float | None = None
        self._is_lost = True
        self._gaps: deque[tuple[float, float]] = deque(maxlen=_KEPT)

    def heard(self, now: float) -> None:
        """Something was said."""
        with self._lock:
            if self._last is None:
                self._gaps.append((float("-inf"), now))
            elif self._is_lost:
                self._gaps.append((self._last, now))
            elif now - self._last > _SILENCE_SECONDS:
                self._gaps.append((self._last + _SILENCE_SECONDS, now))
            self._last, self._is_lost = now, False

    def lost(self) -> None:
        """Nothing is said from now on, or since the last time."""
        with self._lock:
            self._is_lost = True

    def passed(self, since: float, now: float) -> float:
        """How many of the seconds between these times count.

        Those after the last word do not yet: it may be the last one for long.
        """
        with self._lock:
            if self._last is None:
                return 0.0
            until = min(now, self._last)
            missed = sum(max(0.0, min(end, until) - max(begin, since)) for begin, end in self._gaps)
            return max(0.0, until - since - missed)
