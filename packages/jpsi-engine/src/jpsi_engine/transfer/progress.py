"""Tells how far what is staged is: once a second, and nothing of what takes less than that."""

from __future__ import annotations

import time
from collections.abc import Callable

from jpsi import StagingProgress

#: Told how far something is, from the thread that moves it.
Told = Callable[[StagingProgress], None]

_SECONDS = 1.0


class Telling:
    """What is told as one file or directory is moved; it is a `moving.Progress`.

    Args:
        told: whom to tell.
        path: what it is called here.
        is_in: whether it is staged in.
        now: the clock.
    """

    def __init__(
        self, told: Told, path: str, *, is_in: bool, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._told = told
        self._path = path
        self._is_in = is_in
        self._now = now
        self._next = now() + _SECONDS
        self._has_told = False

    def __call__(self, done: int, total: int) -> None:
        """So much of it is there."""
        now = self._now()
        # who was told that it is on its way is told that it is there
        if now < self._next and not (self._has_told and done >= total):
            return
        self._next, self._has_told = now + _SECONDS, True
        self._told(StagingProgress(path=self._path, is_in=self._is_in, done=done, total=total))
