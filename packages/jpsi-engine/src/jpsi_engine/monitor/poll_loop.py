"""The two threads of a batch executor: one scans for markers, the other polls the batch system.

They run while there are jobs to follow, hold no reference to the executor while they wait, and end with it.
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

from jpsi_engine.host import MarkerWatch
from jpsi_engine.monitor.job_monitor import JobMonitor

log = logging.getLogger(__name__)

# Seconds between two scans of the markers' directory: where the kernel announces new files; and, where it
# does not, from the shortest to the longest pause, the longer the less there is to expect.
_ANNOUNCED_SECONDS = 10.0
_SCAN_SECONDS = 1.0
_LONGEST_SCAN_SECONDS = 5.0
_SCAN_GROWTH = 1.25
_IDLE_SECONDS = 5.0
_FENCE = "following jobs failed once and goes on"


class PollLoop:
    """The poll loop: starts the two threads of one `JobMonitor` when they are needed.

    Args:
        monitor: the jobs to follow.
        events: the directory in which markers appear.
        is_announced: True if the kernel announces new files in that directory. Otherwise it is scanned, each
            second while a job runs.
    """

    def __init__(self, monitor: JobMonitor, events: str, *, is_announced: bool) -> None:
        self._monitor = monitor
        self._events = events
        self._is_announced = is_announced
        self._lock = threading.Lock()
        self._running: set[str] = set()
        self._changed = threading.Event()
        # When the polling thread wakes next. Infinite while it decides that, so that any due time counts as
        # earlier.
        self._wakes_at = float("inf")
        self._wake_pipe = _WakePipe()
        # not at exit of the program: the closed pipe would keep waking the thread
        weakref.finalize(self, self._wake_pipe.close).atexit = False

    def start(self) -> None:
        """Start the threads that do not run, and wake them: there is a job to follow, or a poll to make.

        Raises:
            RuntimeError: no thread can be started now.
        """
        self._wake_if_due()
        if self._wake_pipe.is_needed:
            self._wake_pipe.wake()
        with self._lock:
            for name, make_work in (("see", self._scan_work), ("ask", self._poll_work)):
                if name not in self._running:
                    threading.Thread(target=make_work(), name=f"jpsi-batch-{name}", daemon=True).start()
                    self._running.add(name)

    def _wake_if_due(self) -> None:
        """Wake the polling thread if a poll is due before it would wake by itself."""
        due = self._monitor.next_poll_time()
        if due is not None and due < self._wakes_at:
            self._changed.set()

    def _may_end(self, name: str) -> bool:
        """Return True if a thread has nothing left to do; it ends then, and `start` starts another."""
        with self._lock:
            if self._monitor.all():
                return False
            self._running.discard(name)
            return True

    def _scan_work(self) -> Callable[[], None]:
        poll_loop, wake_pipe, events, is_announced = (
            weakref.ref(self),
            self._wake_pipe,
            self._events,
            self._is_announced,
        )

        def scan() -> None:
            with contextlib.ExitStack() as stack:
                watch = _watch(events)
                poll = select.poll()
                poll.register(wake_pipe, select.POLLIN)
                if watch is not None:
                    stack.callback(watch.close)
                    poll.register(watch, select.POLLIN)
                pause = _SCAN_SECONDS
                appeared: set[str] = set()
                while (is_expecting := _scan_once(poll_loop, appeared)) is not None:
                    pause = next_pause(pause, is_expecting=is_expecting)
                    appeared = set()
                    is_notified = watch is not None and is_announced and not watch.is_removed
                    # The caller that follows a new job reads its markers at once, so the watch needs no bell
                    # for it.
                    wake_pipe.is_needed = not is_notified
                    if poll.poll(1000 * (_ANNOUNCED_SECONDS if is_notified else pause)):
                        wake_pipe.drain()
                        if watch is not None:
                            appeared = watch.drain()

        return scan

    def _poll_work(self) -> Callable[[], None]:
        poll_loop, changed = weakref.ref(self), self._changed

        def poll_queue() -> None:
            _probe_once(poll_loop)
            while True:
                wait = _poll_once(poll_loop)
                if wait is None:
                    return
                changed.wait(wait)

        return poll_queue


class _WakePipe:
    """A pipe: one thread waits for it with poll(2), another makes it readable."""

    def __init__(self) -> None:
        #: True if the waiting thread would notice new jobs too late without the bell.
        self.is_needed = True
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)

    def fileno(self) -> int:
        return self._reader

    def wake(self) -> None:
        with contextlib.suppress(BlockingIOError):  # it rings already
            os.write(self._writer, b".")

    def drain(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._reader, 65536)

    def close(self) -> None:
        """Wake the waiting threads for the last time; the reading end closes with its last reference."""
        os.close(self._writer)

    def __del__(self) -> None:
        os.close(self._reader)


def _watch(events: str) -> MarkerWatch | None:
    try:
        return MarkerWatch(events)
    except OSError:
        log.debug("%s cannot be watched and is scanned instead", events, exc_info=True)
        return None


def next_pause(pause: float, *, is_expecting: bool) -> float:
    """Return the seconds to wait for the next scan, after a pause of `pause` seconds before this one."""
    return _SCAN_SECONDS if is_expecting else min(pause * _SCAN_GROWTH, _LONGEST_SCAN_SECONDS)


def _scan_once(reference: weakref.ref[PollLoop], appeared: Collection[str]) -> bool | None:
    """Scan once; return True if markers are to be expected soon, None if the thread is to end."""
    poll_loop = reference()
    if poll_loop is None or poll_loop._may_end("see"):  # noqa: SLF001  two halves of one thing
        return None
    monitor, now, is_expecting = poll_loop._monitor, time.monotonic(), True  # noqa: SLF001
    try:
        monitor.collect_markers(now, appeared)
        is_expecting = monitor.expects_markers(now)
    except OSError as e:
        log.warning("markers cannot be read: %s", e)
    except Exception:
        log.exception(_FENCE)
    # the markers may have made a poll due
    poll_loop._wake_if_due()  # noqa: SLF001
    return is_expecting


def _probe_once(reference: weakref.ref[PollLoop]) -> None:
    poll_loop = reference()
    if poll_loop is not None:
        try:
            poll_loop._monitor.probe_site(time.monotonic)  # noqa: SLF001
        except Exception:
            log.exception(_FENCE)


def _poll_once(reference: weakref.ref[PollLoop]) -> float | None:
    """Poll if it is time; return the seconds to wait for the next round, None if the thread is to end."""
    poll_loop = reference()
    if poll_loop is None or poll_loop._may_end("ask"):  # noqa: SLF001
        return None
    monitor = poll_loop._monitor  # noqa: SLF001
    poll_loop._wakes_at = float("inf")  # noqa: SLF001
    poll_loop._changed.clear()  # noqa: SLF001
    due, now = monitor.next_poll_time(), time.monotonic()
    wait = _IDLE_SECONDS if due is None else min(due - now, _IDLE_SECONDS)
    if wait > 0:
        poll_loop._wakes_at = now + wait  # noqa: SLF001
        return wait
    busy = time.thread_time()
    try:
        monitor.poll(time.monotonic)
        monitor.note_poll_cost(time.thread_time() - busy)
    except Exception:
        log.exception(_FENCE)
        return _IDLE_SECONDS
    return 0.0
