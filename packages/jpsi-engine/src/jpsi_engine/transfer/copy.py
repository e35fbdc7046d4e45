"""Holds what transfers to and from a remote host share: progress, groups of small files, and checksums."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator

from jpsi_engine.host import local_file_error
from jpsi_engine.transfer.checksums import SpanSums
from jpsi_engine.transfer.trees import Entry

#: Called with the bytes transferred so far and the bytes in all, by the thread that transfers them.
Progress = Callable[[int, int], None]

#: Files up to this size, in bytes, are transferred in groups.
SMALL = 1 << 18
# The limits of a command's arguments.
_MAX_ENTRIES = 100
_MAX_LETTERS = 1 << 15
_CHUNK = 1 << 20


class ProgressCounter:
    """The progress of a transfer, in bytes."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress = progress
        self._total = total
        self._done = 0
        self.add(0)

    def add(self, count: int) -> None:
        """Add to the bytes transferred, and report the progress."""
        self._done += count
        if self._progress is not None:
            self._progress(self._done, self._total)


def group_entries(entries: Iterable[Entry], root: str, most_bytes: int) -> Iterator[list[Entry]]:
    """Yield the entries in groups, each of which fits the arguments of one command and one chunk."""
    group: list[Entry] = []
    letters = count = 0
    for entry in entries:
        length = len(entry.below(root)) + len(entry.text)
        is_full = len(group) >= _MAX_ENTRIES or letters + length > _MAX_LETTERS
        if group and (is_full or count + entry.size > most_bytes):
            yield group
            group, letters, count = [], 0, 0
        group.append(entry)
        letters, count = letters + length, count + entry.size
    if group:
        yield group


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


def feed(fd: int, sums: SpanSums, count: int) -> None:
    """Feed the first `count` bytes of a file to the checksums."""
    offset = 0
    while offset < count and (data := os.pread(fd, min(_CHUNK, count - offset), offset)):
        sums.feed(data)
        offset += len(data)
