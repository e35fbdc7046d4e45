"""Locks the SQLite database by a lock file if it is on a network file system.

The locks of such a file system may not work. A process holds the lock if it has created the file; the file
names the process. If the holder has ended on this machine, the next process removes the file. For a holder on
another machine a process cannot know that: when it has waited too long, a `StoreError` names the holder and
the file to remove.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from ..errors import StoreError, store_errors
from .process_identity import describe_process, name_of_this_process, process_has_ended

_RETRY_SECONDS = 0.02


class FileLock:
    """A lock that one process at a time holds.

    Args:
        path: the lock file.
        timeout: the seconds that a process waits for another to release the lock.
        sleep: sleeps for the given seconds.
        clock: returns the time in seconds.
    """

    def __init__(
        self,
        path: Path,
        *,
        timeout: float,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = path
        self._timeout = timeout
        self._sleep = sleep
        self._clock = clock

    @contextlib.contextmanager
    def acquire(self) -> Iterator[None]:
        """Wait until the lock is free, then hold it.

        Raises:
            StoreError: another process has held the lock for too long, or the file cannot be created.
        """
        with store_errors(f"{self._path}, the lock of the records, cannot be created"):
            self._acquire()
        try:
            yield
        finally:
            self._path.unlink()

    def _acquire(self) -> None:
        own_name = name_of_this_process()
        end = self._clock() + self._timeout
        while not _make(self._path, own_name):
            self._break_stale_lock()
            if self._clock() > end:
                msg = (
                    f"{describe_process(self._read_holder() or '')} has been using the records for too long; "
                    f"if it is not there any more, remove {self._path}"
                )
                raise StoreError(msg)
            self._sleep(_RETRY_SECONDS)

    def _read_holder(self) -> str | None:
        try:
            return self._path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def _break_stale_lock(self) -> None:
        holder = self._read_holder()
        if holder is None or not process_has_ended(holder):
            return
        # Only one of the processes that see the stale lock may remove it: a second one might remove the lock
        # of the next holder. The second lock file elects it.
        name = hashlib.sha256(holder.encode()).hexdigest()[:16]
        breaker = self._path.with_name(f"{self._path.name}.{name}")
        if not _make(breaker, ""):
            return
        try:
            if self._read_holder() == holder:
                self._path.unlink()
        finally:
            breaker.unlink()


def _make(path: Path, text: str) -> bool:
    """Create a file exclusively; return False if it exists."""
    try:
        file = path.open("x", encoding="utf-8")
    except FileExistsError:
        return False
    with file:
        file.write(text)
    return True
