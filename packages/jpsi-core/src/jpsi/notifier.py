"""Delivers callbacks: in order within a lane, lanes in parallel, never on the thread that found the status.

A lane is one sequence of calls: the callbacks of a job, or those of an executor. The whole process shares the
threads; there are few while callbacks return quickly, and more while callbacks block.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logging import Logger

Call = Callable[[], None]

# More threads start only while these are blocked.
_QUICK_THREADS = 4
# Threads that take no call for this time count as blocked.
_BLOCKED_AFTER_SECONDS = 0.05
# A thread without a call ends after this time.
_IDLE_SECONDS = 30.0
# The time that queued calls have when the program ends.
_EXIT_TIMEOUT_SECONDS = 2.0


class Lane:
    """A sequence of calls that are made one at a time, in order."""

    __slots__ = ("calls", "notifier")

    def __init__(self) -> None:
        self.calls: deque[Call] = deque()
        #: The notifier whose threads work on this lane, or will; None for an empty lane.
        self.notifier: Notifier | None = None


class Notifier:
    """A pool of threads that makes the calls of lanes."""

    def __init__(self) -> None:
        lock = threading.RLock()
        self._changed = threading.Condition(lock)
        self._quiet = threading.Condition(lock)
        # the number of lanes that have calls, waiting or under way
        self._busy = 0
        self._ready: deque[Lane] = deque()
        self._threads = 0
        self._idle = 0
        self._taken = 0
        self._has_watcher = False

    def post(self, lane: Lane, call: Call) -> None:
        """Queue `call` behind everything that was posted to the lane before; returns at once."""
        with self._changed:
            if lane.notifier is not None and lane.notifier is not self:
                lane.calls.clear()  # this is a forked child; the parent makes those calls
            lane.calls.append(call)
            if lane.notifier is self:
                return
            lane.notifier = self
            self._busy += 1
            self._ready.append(lane)
            if len(self._ready) <= self._idle:
                self._changed.notify()
            elif self._threads < _QUICK_THREADS:
                self._start()
            elif not self._has_watcher:
                self._has_watcher = _started(self._watch)

    def _start(self) -> None:
        if _started(self._work):
            self._threads += 1
        elif self._threads == 0 and not self._has_watcher:
            # Without any thread the lane would never be served.
            self._has_watcher = _started(self._watch)

    def _work(self) -> None:
        _delivery.active = True
        while True:
            with self._changed:
                while not self._ready:
                    self._idle += 1
                    is_notified = self._changed.wait(_IDLE_SECONDS)
                    self._idle -= 1
                    if not is_notified and not self._ready:
                        self._threads -= 1
                        return
                lane = self._ready.popleft()
                self._taken += 1
                call = lane.calls.popleft()
            try:
                call()
            except BaseException:  # noqa: BLE001  a callback may do anything, SystemExit included
                _log().exception("a status callback raised; the job goes on")
            with self._changed:
                if lane.calls:
                    self._ready.append(lane)
                else:
                    lane.notifier = None
                    self._busy -= 1
                    if not self._busy:
                        self._quiet.notify_all()
            # it may be the last that refers to a job, and so to an executor
            del call

    def drain(self, seconds: float) -> bool:
        """Wait until every posted call has returned; False if that takes longer than `seconds`."""
        with self._changed:
            return self._quiet.wait_for(lambda: not self._busy, seconds)

    def _watch(self) -> None:
        """Add threads while lanes wait and no thread takes them: the others are blocked."""
        while True:
            with self._changed:
                if not self._ready:
                    self._has_watcher = False
                    return
                taken = self._taken
            time.sleep(_BLOCKED_AFTER_SECONDS)
            with self._changed:
                if self._taken == taken:
                    for _ in range(min(len(self._ready), max(self._threads, 1))):
                        self._start()


def _started(work: Call) -> bool:
    """Start a thread; False if the system has none left, which may be temporary."""
    try:
        threading.Thread(target=work, name="jpsi-callbacks", daemon=True).start()
    except RuntimeError:
        _log().warning("jpsi could not start a thread to call status callbacks", exc_info=True)
        return False
    return True


def _log() -> Logger:
    # `import jpsi` imports this module, and logging would take a tenth of that time
    import logging  # noqa: PLC0415

    return logging.getLogger(__name__)


_delivery = threading.local()


def is_delivering() -> bool:
    """Return True if this thread delivers callbacks, so that it must not wait for delivery."""
    return hasattr(_delivery, "active")


_shared = Notifier()


def shared() -> Notifier:
    """Return the notifier of this process."""
    return _shared


@atexit.register
def _deliver_the_last() -> None:
    """Deliver the calls that are still queued when the program ends; a blocking callback is abandoned."""
    _shared.drain(_EXIT_TIMEOUT_SECONDS)


def _after_fork() -> None:
    # The threads stayed with the parent, and so did the calls that they were about to make.
    global _shared  # noqa: PLW0603  the one of this process
    _shared = Notifier()


os.register_at_fork(after_in_child=_after_fork)
