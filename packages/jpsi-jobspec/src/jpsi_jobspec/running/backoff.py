"""A backoff: pauses before each retry of what a batch system refused or did not answer."""

from __future__ import annotations

from collections.abc import Callable

_SHORTEST_SECONDS = 1.0
_LONGEST_SECONDS = 60.0


class Backoff:
    """Pauses that grow from one failure to the next one.

    >>> now = [0.0]
    >>> backoff = Backoff(lambda: now[0])
    >>> backoff.start_next(), backoff.start_next(), backoff.is_over
    (1.0, 2.0, False)
    >>> now[0] = 2.0
    >>> backoff.is_over
    True
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        """Begin without a pause; `clock` returns seconds."""
        self._clock = clock
        self._seconds = 0.0
        self._end = 0.0

    @property
    def is_over(self) -> bool:
        """True if it is time to retry."""
        return self._clock() >= self._end

    def start_next(self) -> float:
        """Begin the next pause, and return how many seconds it takes."""
        self._seconds = min(max(_SHORTEST_SECONDS, self._seconds * 2), _LONGEST_SECONDS)
        self._end = self._clock() + self._seconds
        return self._seconds

    def reset(self) -> None:
        """Reset after a success: the next pause is a short one."""
        self._seconds = self._end = 0.0
