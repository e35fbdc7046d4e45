"""Lets one at a time use a file that several machines see, without locks, which file systems may only feign.

Whoever has the turn has made a file beside it exclusively, which says who that is. One whose process has
ended on this machine is followed by the next; of another machine nobody here can tell, and the user is told.
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
    """The turns at one file.

    Args:
        path: the file that is made by whoever has the turn.
        patience: the seconds that others wait for it.
        sleep: waits.
        clock: tells seconds.
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
        """Have the turn; others wait.

        Raises:
            StoreError: somebody else has had it for too long, or the file cannot be made.
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
        # Of all who see that, one ends the turn: another would end that of whoever is next.
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
    """Make a file; False if it is there."""
    try:
        file = path.open("x", encoding="utf-8")
    except FileExistsError:
        return False
    with file:
        file.write(text)
    return True
