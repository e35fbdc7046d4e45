"""When it pays to connect again where it did not work the last time: pure, times are passed in."""

from __future__ import annotations

import attrs

_FIRST_SECONDS = 1.0
_LONGEST_SECONDS = 30.0
_GROWTH = 2.0


@attrs.define(slots=True, eq=False)
class Backoff:
    """What is remembered of attempts that failed: sites shut out those who knock all the time."""

    _pause: float = attrs.field(default=0.0, init=False)
    _until: float = attrs.field(default=float("-inf"), init=False)
    #: Why the last attempt failed.
    why: str = attrs.field(default="", init=False)

    def failed(self, now: float, why: str) -> None:
        """An attempt has failed."""
        self._pause = min(max(_FIRST_SECONDS, self._pause * _GROWTH), _LONGEST_SECONDS)
        self._until = now + self._pause
        self.why = why

    def succeeded(self) -> None:
        """An attempt was of use: the next one that fails is the first."""
        self._pause, self._until = 0.0, float("-inf")

    def seconds_left(self, now: float) -> float:
        """How long not to try; not more than 0 if it may be tried now."""
        return self._until - now
