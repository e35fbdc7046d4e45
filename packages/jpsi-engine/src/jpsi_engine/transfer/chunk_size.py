"""How much is sent at once, so that nobody who shares the way waits for long: pure."""

from __future__ import annotations

import attrs

_SHORTEST_SECONDS, _LONGEST_SECONDS = 0.25, 1.0
_SMALLEST, _LARGEST = 1 << 16, 1 << 24


@attrs.define(slots=True, eq=False)
class Pace:
    """The size of the next piece, in bytes: a multiple of 64 KiB, at most 16 MiB."""

    size: int = 1 << 20

    def took(self, count: int, seconds: float) -> None:
        """A piece of so many bytes took that long."""
        if seconds > _LONGEST_SECONDS and self.size > _SMALLEST:
            self.size //= 2
        elif seconds < _SHORTEST_SECONDS and self.size < _LARGEST and count >= self.size:
            self.size *= 2
