"""The two threads of a batch executor: one sees markers, one asks the batch system.

They run while there are jobs to follow, hold on to nothing while they wait, and end with the executor.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import threading
import time
import weakref
from collections.abc import Callable, Collection

from jpsi.engine.tracking import Tracking
from jpsi.engine.watcher import MarkerWatch

log = logging.getLogger(__name__)

# How often the directory is looked at where nothing announces what appears in it, and where something does.
_SCAN_SECONDS = 1.0
_ANNOUNCED_SECONDS = 10.0
_IDLE_SECONDS = 5.0
_FENCE = "following jobs failed once and goes on"


class Rounds:
    """Sees to it that the rounds of one `Tracking` take place.

    Args:
        tracking: whose rounds.
        events: the directory in which markers appear.
        is_announced: whether the kernel announces what appears there; it is scanned each second otherwise.
    """

    def __init__(self, tracking: Tracking, events: str, *, is_announced: bool) -> None:
        self._tracking = tracking
        self._events = events
        self._is_announced = is_announced
        self._lock = threading.Lock()
        self._running: set[str] = set()
        self._changed = threading.Event()
        self._bell = _Bell()
        # not when the program ends: the thread would listen to a bell that never stops
        weakref.finalize(self, self._bell.close).atexit = False

    def begin(self) -> None:
        """There is a job to follow, or something new to ask about.

        Raises:
            RuntimeError: no thread can be started now.
        """
        self._changed.set()
        self._bell.ring()
        with self._lock:
            for name, work in (("see", self._see), ("ask", self._ask)):
                if name not in self._running:
                    threading.Thread(target=work(), name=f"jpsi-batch-{name}", daemon=True).start()
                    self._running.add(name)

    def _may_end(self, name: str) -> bool:
        """Whether a thread has nothing left to do; it ends then, and `begin` starts another."""
        with self._lock:
            if self._tracking.all():
                return False
            self._running.discard(name)
            return True

    def _see(self) -> Callable[[], None]:
        rounds, bell, events, is_announced = weakref.ref(self), self._bell, self._events, self._is_announced

        def see() -> None:
            with contextlib.ExitStack() as stack:
                watch = _watch(events)
                poll = select.poll()
                poll.register(bell, select.POLLIN)
                if watch is not None:
                    stack.callback(watch.close)
                    poll.register(watch, select.POLLIN)
                pause = _ANNOUNCED_SECONDS if watch is not None and is_announced else _SCAN_SECONDS
                appeared: set[str] = set()
                while _see_once(rounds, appeared):
                    appeared = set()
                    if poll.poll(pause * 1000):
                        bell.hear()
                        if watch is not None:
                            appeared = watch.drain()

        return see

    def _ask(self) -> Callable[[], None]:
        rounds, changed = weakref.ref(self), self._changed

        def ask() -> None:
            while True:
                changed.clear()
                wait = _ask_once(rounds)
                if wait is None:
                    return
                changed.wait(wait)

        return ask


class _Bell:
    """A descriptor that another thread can make readable."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)

    def fileno(self) -> int:
        return self._reader

    def ring(self) -> None:
        with contextlib.suppress(BlockingIOError):  # it rings already
            os.write(self._writer, b".")

    def hear(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._reader, 65536)

    def close(self) -> None:
        """Wake whoever listens for the last time; the other end goes with the last of them."""
        os.close(self._writer)

    def __del__(self) -> None:
        os.close(self._reader)


def _watch(events: str) -> MarkerWatch | None:
    try:
        return MarkerWatch(events)
    except OSError:
        log.debug("%s cannot be watched and is scanned instead", events, exc_info=True)
        return None


def _see_once(reference: weakref.ref[Rounds], appeared: Collection[str]) -> bool:
    """One round; returns whether there is to be another."""
    rounds = reference()
    if rounds is None or rounds._may_end("see"):  # noqa: SLF001  two halves of one thing
        return False
    try:
        rounds._tracking.see_markers(time.monotonic(), appeared)  # noqa: SLF001
    except OSError as e:
        log.warning("markers cannot be read: %s", e)
    except Exception:
        log.exception(_FENCE)
    # what was seen may have made a question due
    rounds._changed.set()  # noqa: SLF001
    return True


def _ask_once(reference: weakref.ref[Rounds]) -> float | None:
    """One round; returns how long to wait for the next one, or None if there is none."""
    rounds = reference()
    if rounds is None or rounds._may_end("ask"):  # noqa: SLF001
        return None
    tracking = rounds._tracking  # noqa: SLF001
    due = tracking.next_question()
    if due is None:
        return _IDLE_SECONDS
    left = due - time.monotonic()
    if left > 0:
        return min(left, _IDLE_SECONDS)
    try:
        tracking.ask(time.monotonic)
    except Exception:
        log.exception(_FENCE)
    return 0.0
