"""Runs the two threads of a batch executor: one scans for markers, the other polls the batch system.

Each thread calls `JobMonitor`, which decides what the findings mean. They run while there are jobs to follow,
hold no reference to the executor while they wait, and end with it.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import select
import threading
import time
import weakref
from collections.abc import Collection

import attrs

from jpsi_engine.host import MarkerWatch, ReentrantEvent
from jpsi_engine.monitor.job_monitor import JobMonitor

log = logging.getLogger(__name__)

# Seconds between two scans of the markers' directory if the kernel announces new files there.
_ANNOUNCED_SECONDS = 10.0
# Otherwise, seconds between two scans while markers are expected soon. While none are, each pause is longer
# than the last by a factor, up to the longest.
_SCAN_SECONDS = 1.0
_LONGEST_SCAN_SECONDS = 5.0
_SCAN_GROWTH = 1.25
# A scan takes the longer the more jobs are followed, however few of them have left markers. So those that
# appear soon after a scan wait for so many times the CPU time that it took, but no longer than this.
_REST, _LONGEST_REST_SECONDS = 3.0, 0.02
# The longest pause of the polling thread, and the pause after an unexpected error.
_IDLE_SECONDS = 5.0
# The log message for an unexpected error in one round.
_FENCE = "an error interrupted the monitoring of jobs; jpsi continues it"


class _WakePipe:
    """A pipe that wakes the scanning thread: it waits for the pipe with poll(2), and `start` writes to it."""

    def __init__(self) -> None:
        #: True if the scanning thread would notice new jobs too late if `start` did not wake it.
        self.is_needed = True
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)

    def fileno(self) -> int:
        return self._reader

    def wake(self) -> None:
        with contextlib.suppress(BlockingIOError):  # the pipe is full, so the thread is woken already
            os.write(self._writer, b".")

    def drain(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._reader, 65536)

    def close(self) -> None:
        """Wake the waiting threads for the last time; the reading end closes with its last reference."""
        os.close(self._writer)

    def __del__(self) -> None:
        os.close(self._reader)


@attrs.define(slots=True, eq=False)
class PollLoop:
    """The poll loop of one `JobMonitor`: starts the two threads when they are needed."""

    #: The jobs to follow.
    _monitor: JobMonitor
    #: The directory in which markers appear.
    _events: str
    #: True if the kernel announces new files in that directory. Otherwise it is scanned, each second while a
    #: job runs.
    _is_announced: bool = attrs.field(kw_only=True)
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)
    _running: set[str] = attrs.field(factory=set, init=False)
    _changed: ReentrantEvent = attrs.field(factory=ReentrantEvent, init=False)
    #: When the polling thread wakes by itself. Infinity while it computes that time, so that `start` wakes it
    #: for any poll that becomes due in the meantime.
    _wakes_at: float = attrs.field(default=float("inf"), init=False)
    _wake_pipe: _WakePipe = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._wake_pipe = _WakePipe()
        # not at exit of the program: the closed pipe would keep waking the thread
        weakref.finalize(self, self._wake_pipe.close).atexit = False
        weakref.finalize(self, self._changed.set).atexit = False

    def start(self) -> None:
        """Start the threads that do not run, and wake the others: there is a job to follow or a poll to make.

        Raises:
            RuntimeError: no thread can be started now.
        """
        self.wake_if_due()
        if self._wake_pipe.is_needed:
            self._wake_pipe.wake()
        loop = weakref.ref(self)
        work = {
            "scan": functools.partial(_scan, loop, self._wake_pipe, self._events, self._is_announced),
            "poll": functools.partial(_poll, loop, self._changed),
        }
        with self._lock:
            for name in work.keys() - self._running:
                threading.Thread(target=work[name], name=f"jpsi-batch-{name}", daemon=True).start()
                self._running.add(name)

    def wake_if_due(self) -> None:
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

    def scan(self, appeared: Collection[str]) -> bool | None:
        """Scan once; return True if markers are to be expected soon, None if the thread is to end."""
        if self._may_end("scan"):
            return None
        now, is_expecting = time.monotonic(), True
        try:
            self._monitor.collect_markers(now, appeared)
            is_expecting = self._monitor.expects_markers(now)
        except OSError as e:
            log.warning("markers cannot be read: %s", e)
        except Exception:
            log.exception(_FENCE)
        # the markers may have made a poll due
        self.wake_if_due()
        return is_expecting

    def probe(self) -> None:
        """Find out what the site offers (see `JobMonitor.probe_site`), before the first poll."""
        try:
            self._monitor.probe_site(time.monotonic)
        except Exception:
            log.exception(_FENCE)

    def poll(self) -> float | None:
        """Poll if it is time; return the seconds to wait for the next round, None if the thread is to end."""
        if self._may_end("poll"):
            return None
        self._wakes_at = float("inf")
        self._changed.clear()
        now, settles, due = time.monotonic(), self._monitor.next_settle_time(), self._monitor.next_poll_time()
        wait = min(it - now for it in (settles, due, now + _IDLE_SECONDS) if it is not None)
        if wait > 0:
            self._wakes_at = now + wait
            return wait
        busy = time.thread_time()
        try:
            if settles is not None and settles <= now:
                self._monitor.settle(now)
            else:
                self._monitor.poll(time.monotonic)
                self._monitor.note_poll_cost(time.thread_time() - busy)
        except Exception:
            log.exception(_FENCE)
            return _IDLE_SECONDS
        return 0.0


def _watch(events: str) -> MarkerWatch | None:
    try:
        return MarkerWatch(events)
    except OSError:
        log.debug("%s cannot be watched and is scanned instead", events, exc_info=True)
        return None


def next_pause(pause: float, *, is_expecting: bool) -> float:
    """Return the seconds to wait for the next scan, after a pause of `pause` seconds before this one."""
    return _SCAN_SECONDS if is_expecting else min(pause * _SCAN_GROWTH, _LONGEST_SCAN_SECONDS)


def _scan(loop: weakref.ref[PollLoop], wake_pipe: _WakePipe, events: str, is_announced: bool) -> None:  # noqa: FBT001
    with contextlib.ExitStack() as stack:
        watch = _watch(events)
        poll = select.poll()
        poll.register(wake_pipe, select.POLLIN)
        if watch is not None:
            stack.callback(watch.close)
            poll.register(watch, select.POLLIN)
        pause, began = _SCAN_SECONDS, time.thread_time()
        appeared: set[str] = set()
        while (it := loop()) is not None and (is_expecting := it.scan(appeared)) is not None:
            it = None  # so that an abandoned executor goes away
            pause = next_pause(pause, is_expecting=is_expecting)
            appeared = set()
            is_notified = watch is not None and is_announced and not watch.is_removed
            # The caller that follows a new job reads its markers at once, so that job needs no scan now.
            wake_pipe.is_needed = not is_notified
            now = time.thread_time()
            cost, began = now - began, now
            if poll.poll(1000 * (_ANNOUNCED_SECONDS if is_notified else pause)):
                time.sleep(min(_REST * cost, _LONGEST_REST_SECONDS))
                wake_pipe.drain()
                if watch is not None:
                    appeared = watch.drain()


def _poll(loop: weakref.ref[PollLoop], changed: ReentrantEvent) -> None:
    it = loop()
    if it is not None:
        it.probe()
    while it is not None and (wait := it.poll()) is not None:
        it = None  # so that an abandoned executor goes away
        changed.wait(wait)
        it = loop()
