"""Holds what transfers on this machine share with those to and from a remote host."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator

from jpsi.plugin.engine import Progress
from jpsi_engine.host import local_file_error
from jpsi_engine.transfer.trees import Entry


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


@contextlib.contextmanager
def open_source(path: str) -> Iterator[int]:
    """Open a file of this machine for reading, and yield its descriptor.

    Raises:
        TransferError: the file cannot be read, or the body raised an `OSError`.
    """
    try:
        fd = os.open(path, os.O_RDONLY)
        try:
            yield fd
        finally:
            os.close(fd)
    except OSError as e:
        raise local_file_error(path, "read", e) from e
