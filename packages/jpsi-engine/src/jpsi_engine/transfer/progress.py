"""Counts the bytes of a transfer, and reports the progress of staging once a second.

Every copy counts its bytes here. Transfers shorter than a second are not reported.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from jpsi import StagingProgress
from jpsi.plugin.engine import Progress
from jpsi_engine.transfer.trees import Entry

#: Called with the progress of a transfer, by the thread that does it.
ProgressCallback = Callable[[StagingProgress], None]

_INTERVAL_SECONDS = 1.0


class ProgressReport:
    """The reporter for one file or directory that is transferred; it is a `jpsi.plugin.engine.Progress`.

    Args:
        report: the function to call.
        path: the path on this machine.
        is_in: True for stage in.
        now: the clock.
    """

    def __init__(
        self, report: ProgressCallback, path: str, *, is_in: bool, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._report = report
        self._path = path
        self._is_in = is_in
        self._now = now
        self._next = now() + _INTERVAL_SECONDS
        self._has_reported = False

    def __call__(self, done: int, total: int) -> None:
        """Report the progress, if a report is due."""
        now = self._now()
        # a transfer that was reported as under way is also reported as complete
        if now < self._next and not (self._has_reported and done >= total):
            return
        self._next, self._has_reported = now + _INTERVAL_SECONDS, True
        self._report(StagingProgress(path=self._path, is_in=self._is_in, done=done, total=total))


class ProgressCounter:
    """The progress of a transfer of these entries, in bytes."""

    def __init__(self, progress: Progress | None, entries: Iterable[Entry]) -> None:
        self._progress = progress
        self._total = sum(entry.size for entry in entries)
        self._done = 0
        self.add(0)

    def add(self, count: int) -> None:
        """Add to the bytes transferred, and report the progress."""
        self._done += count
        if self._progress is not None:
            self._progress(self._done, self._total)
