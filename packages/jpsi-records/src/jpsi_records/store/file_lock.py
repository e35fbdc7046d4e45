"""A lock file for one user at a time on a network file system, which may not implement file locks.

The holder has created the lock file exclusively; the file names its process. If that process has ended on
this machine, the next one removes the file. For a process on another machine this cannot be known; then
`StoreError` names the process that holds the lock.
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
    """The lock of one file.

    Args:
        path: the lock file.
        timeout: the seconds to wait for another holder.
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
        """Hold the lock, after waiting for other holders.

        Raises:
            StoreError: another process has held the lock for too long, or the file cannot be created.
        """
        with store_errors(f"{self._path}, without which nobody may use the records, cannot be made"):
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
        # Of all processes that see this, one may remove the lock: a second would remove the next holder's.
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
