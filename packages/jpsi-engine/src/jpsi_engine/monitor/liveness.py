"""Counts the time during which the other side was alive: while it is silent, no job's patience runs out."""

from __future__ import annotations

import threading
from collections import deque

# After so many seconds of silence the other side counts as gone. One that is alive speaks every one or two
# seconds. If a line takes longer than this for each word, time still counts, if slowly.
_TIMEOUT_SECONDS = 10.0
# More gaps than a patience spans, and more words than arrive during one poll.
_MOST_STORED = 1000


class Liveness:
    """The times at which the other side spoke, in seconds of one monotonic clock. Methods are thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._message_times: deque[float] = deque(maxlen=_MOST_STORED)
        self._is_lost = True
        self._gaps: deque[tuple[float, float]] = deque(maxlen=_MOST_STORED)

    def note_message(self, now: float) -> None:
        """Note that the other side said something."""
        with self._lock:
            if not self._message_times:
                self._gaps.append((float("-inf"), now))
            elif self._is_lost:
                self._gaps.append((self._message_times[-1], now))
            elif now - self._message_times[-1] > _TIMEOUT_SECONDS:
                self._gaps.append((self._message_times[-1] + _TIMEOUT_SECONDS, now))
            self._message_times.append(now)
            self._is_lost = False

    def note_disconnect(self) -> None:
        """Note that the connection is lost: the time since the last word does not count."""
        with self._lock:
            self._is_lost = True

    def counted_seconds(self, since: float, now: float) -> float:
        """Return how many of the seconds between two times count.

        The seconds after the last word before `now` do not count: the next word may report on them, and the
        caller has seen only what had arrived by then.
        """
        with self._lock:
            until = next((word for word in reversed(self._message_times) if word <= now), float("-inf"))
            missed = sum(max(0.0, min(end, until) - max(begin, since)) for begin, end in self._gaps)
            return max(0.0, until - since - missed)
