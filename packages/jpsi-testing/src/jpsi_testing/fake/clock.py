"""A clock for tests, which stands still until the test advances it.

With it a `FakeScheduler` simulates hours in no time, and always in the same way.
"""

from __future__ import annotations

from collections.abc import Callable

# 2026-01-01 00:00 UTC
_START = 1_767_225_600.0


class FakeClock:
    """A clock for tests: call it for the time, in seconds since 1970.

    >>> clock = FakeClock(100)
    >>> clock.advance(2.5)
    >>> clock()
    102.5
    """

    def __init__(self, start: float = _START) -> None:
        self._now = start
        self._listeners: list[Callable[[], None]] = []

    def __call__(self) -> float:
        """Return the time."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Advance the time; return when everything that is due by the new time has happened."""
        if seconds < 0:
            raise ValueError(f"a clock cannot go back by {-seconds} s")
        self._now += seconds
        for listener in self._listeners:
            listener()

    def on_advance(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever time has passed."""
        self._listeners.append(listener)
