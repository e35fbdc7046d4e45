"""Adapts the chunk size of a transfer, so that other users of the connection need not wait long; pure."""

from __future__ import annotations

import attrs

_SHORTEST_SECONDS, _LONGEST_SECONDS = 0.25, 1.0
_SMALLEST, _LARGEST = 1 << 16, 1 << 24


@attrs.define(slots=True, eq=False)
class ChunkSize:
    """The size of the next chunk, in bytes: a multiple of 64 KiB, at most 16 MiB."""

    size: int = 1 << 20

    def adapt(self, count: int, seconds: float) -> None:
        """Adapt the size to the seconds that a chunk of `count` bytes took."""
        if seconds > _LONGEST_SECONDS and self.size > _SMALLEST:
            self.size //= 2
        elif seconds < _SHORTEST_SECONDS and self.size < _LARGEST and count >= self.size:
            self.size *= 2
