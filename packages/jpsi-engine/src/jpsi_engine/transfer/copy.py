"""What the moving of files has in common, in whichever direction: small files together, and how far it is."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator

from jpsi_engine.host import failed_here
from jpsi_engine.transfer.checksums import SpanSums
from jpsi_engine.transfer.trees import Entry

#: Told how many bytes are there, and how many it will be in all; from the thread that moves them.
Progress = Callable[[int, int], None]

#: Files up to this size go together with others.
SMALL = 1 << 18
# What the words of a command may come to.
_MOST_ENTRIES = 100
_MOST_LETTERS = 1 << 15
_CHUNK = 1 << 20


class Count:
    """How much has been moved."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress = progress
        self._total = total
        self._done = 0
        self.add(0)

    def add(self, count: int) -> None:
        """So much more."""
        self._done += count
        if self._progress is not None:
            self._progress(self._done, self._total)


def groups(entries: Iterable[Entry], root: str, most_bytes: int) -> Iterator[list[Entry]]:
    """Entries in groups, each of which one command can be told of and one piece can hold."""
    group: list[Entry] = []
    letters = count = 0
    for entry in entries:
        length = len(entry.below(root)) + len(entry.text)
        is_full = len(group) >= _MOST_ENTRIES or letters + length > _MOST_LETTERS
        if group and (is_full or count + entry.size > most_bytes):
            yield group
            group, letters, count = [], 0, 0
        group.append(entry)
        letters, count = letters + length, count + entry.size
    if group:
        yield group


@contextlib.contextmanager
def opened(path: str) -> Iterator[int]:
    """The descriptor of a file of this machine that is to be read.

    Raises:
        TransferError: it cannot be read; or an `OSError` was raised inside.
    """
    try:
        fd = os.open(path, os.O_RDONLY)
        try:
            yield fd
        finally:
            os.close(fd)
    except OSError as e:
        raise failed_here(path, "read", e) from e


def feed(fd: int, sums: SpanSums, count: int) -> None:
    """Feed so many bytes from the beginning of a file."""
    offset = 0
    while offset < count and (data := os.pread(fd, min(_CHUNK, count - offset), offset)):
        sums.feed(data)
        offset += len(data)
