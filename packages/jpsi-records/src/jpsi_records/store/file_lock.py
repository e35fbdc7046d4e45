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

from ..errors import StoreError
from .process_identity import describe_process, name_of_this_process, process_has_ended

_RETRY_SECONDS = 0.02


class Turns:
    """The lock of one file.

    Args:
        path: the lock file.
        patience: the seconds to wait for another holder.
        sleep: sleeps for the given seconds.
        clock: returns the time in seconds.
    """

    def __init__(
        self,
        path: Path,
        *,
        patience: float,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = path
        self._patience = patience
        self._sleep = sleep
        self._clock = clock

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Hold the lock, after waiting for other holders.

        Raises:
            StoreError: another process has held the lock for too long, or the file cannot be created.
        """
        try:
            self._take()
        except OSError as e:
            msg = f"{self._path}, without which nobody may use the records, cannot be made: {e.strerror}"
            raise StoreError(msg, e) from e
        try:
            yield
        finally:
            self._path.unlink()

    def _take(self) -> None:
        mine = name_of_this_process()
        end = self._clock() + self._patience
        while not _make(self._path, mine):
            self._end_turn_of_the_dead()
            if self._clock() > end:
                msg = (
                    f"{describe_process(self._holder() or '')} has been using the records for too long; "
                    f"if it is not there any more, remove {self._path}"
                )
                raise StoreError(msg)
            self._sleep(_RETRY_SECONDS)

    def _holder(self) -> str | None:
        try:
            return self._path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def _end_turn_of_the_dead(self) -> None:
        holder = self._holder()
        if holder is None or not process_has_ended(holder):
            return
        # Of all processes that see this, one may remove the lock: a second would remove the next holder's.
        name = hashlib.sha256(holder.encode()).hexdigest()[:16]
        undertaker = self._path.with_name(f"{self._path.name}.{name}")
        if not _make(undertaker, ""):
            return
        try:
            if self._holder() == holder:
                self._path.unlink()
        finally:
            undertaker.unlink()


def _make(path: Path, text: str) -> bool:
    """Create a file exclusively; return False if it exists."""
    try:
        file = path.open("x", encoding="utf-8")
    except FileExistsError:
        return False
    with file:
        file.write(text)
    return True
