"""The backoff between attempts to connect. It is pure: callers pass the time in."""

from __future__ import annotations

import attrs

_FIRST_SECONDS = 1.0
_LONGEST_SECONDS = 30.0
_GROWTH = 2.0


@attrs.define(slots=True, eq=False)
class Backoff:
    """The backoff after failed attempts to connect, as sites lock out clients that connect too often."""

    _pause: float = attrs.field(default=0.0, init=False)
    _until: float = attrs.field(default=float("-inf"), init=False)
    #: The reason why the last attempt failed.
    why: str = attrs.field(default="", init=False)

    def failed(self, now: float, why: str) -> None:
        """Record a failed attempt; double the pause until the next one."""
        self._pause = min(max(_FIRST_SECONDS, self._pause * _GROWTH), _LONGEST_SECONDS)
        self._until = now + self._pause
        self.why = why

    def succeeded(self) -> None:
        """Record a successful attempt: the next failure starts again with the shortest pause."""
        self._pause, self._until = 0.0, float("-inf")

    def seconds_left(self, now: float) -> float:
        """Return the seconds until the next attempt; 0 or less if the caller may try now."""
        return self._until - now
