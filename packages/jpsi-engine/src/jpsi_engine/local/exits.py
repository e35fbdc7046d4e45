"""Detects the end of processes: one thread for all processes and timers, and a pidfd for each process.

If descriptors are scarce or the system has no pidfds, the thread watches the markers of jobs instead, and
polls their processes. No end is lost, but it may be noticed later.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import heapq
import itertools
import logging
import os
import selectors
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import attrs

from jpsi_engine.host import MarkerWatch, ProcessId, pidfd

log = logging.getLogger(__name__)

# Seconds between two scans for markers: without inotify(7), and with it.
_SCAN_SECONDS = 0.1
_ANNOUNCED_SECONDS = 5.0
_STATUS_RETRY_SECONDS = 0.05
_STATUS_RETRIES = 20
_FAILED_SECONDS = 1.0
_SLOWEST_RETRY = 60
_SCARCE = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC})
_LONGEST_WAIT_SECONDS = 3600.0
_FENCE = "an error interrupted the monitoring of jobs; jpsi continues it"


@attrs.define(slots=True, eq=False)
class Watched:
    """A process whose end is awaited."""

    process: ProcessId
    #: The receiver of the end, and the token that names the job to it.
    sink: Sink
    token: Any
    #: True if this process started it.
    is_child: bool
    #: True if it counts against the limit of open pidfds.
    has_pidfd_slot: bool = False
    #: Its wait status, as wait(2) reports it.
    status: int | None = None
    #: The peak memory, in bytes, of the largest of its processes; None if it is not known.
    memory: int | None = None
    #: The number of times that the wait status may still be read from the kernel.
    retries: int = _STATUS_RETRIES
    #: The number of times that the sink raised an exception.
    failures: int = 0


@attrs.frozen(slots=True)
class Exit:
    """The end of a process."""

    token: Any
    #: The wait status as wait(2) reports it; None if it is unknown.
    wait_status: int | None
    #: True if a later request cannot give more.
    is_last: bool
    #: The peak memory, in bytes, of the largest of its processes; None if it is not known.
    memory: int | None = None


class Sink(Protocol):
    """A receiver of the ends of processes; the watch calls the methods on its thread."""

    @property
    def events(self) -> str:
        """The directory in which the jobs of this sink leave markers."""

    def on_exits(self, exits: list[Exit]) -> Iterable[Any]:
        """Take the ends of processes.

        Returns the tokens for which more must be known; for these the watch calls this method again.
        """

    def on_markers(self, tokens: list[Any]) -> None:
        """Look for markers, which these jobs may have left."""


class ExitWatch:
    """The watching thread with its descriptors and timers. All methods may be called from any thread."""

    def __init__(self, limit: int | None = None) -> None:
        self._selector = selectors.DefaultSelector()
        self._full_limit = self._limit = pidfd.max_pidfds() if limit is None else limit
        self._lock = threading.Lock()
        self._open = 0
        self._overflow: deque[Watched] = deque()
        self._is_scanning = False
        self._marker_watches: dict[str, MarkerWatch] = {}
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._count = itertools.count()
        self._wake_reader, self._wake_writer = os.pipe()
        os.set_blocking(self._wake_reader, False)
        os.set_blocking(self._wake_writer, False)
        drain = functools.partial(os.read, self._wake_reader, 4096)
        self._selector.register(self._wake_reader, selectors.EVENT_READ, drain)
        threading.Thread(target=self._run, name="jpsi-exits", daemon=True).start()

    def watch(self, process: ProcessId, sink: Sink, token: Any, *, is_child: bool) -> None:  # noqa: ANN401  the sink's own
        """Call `sink` once the process has ended; at once if it has ended already.

        Args:
            process: the process.
            sink: the receiver.
            token: the argument for the receiver.
            is_child: True if this process started it and has not waited for it.
        """
        with self._lock:
            self._overflow.append(Watched(process, sink, token, is_child))
        self._open_pidfds()

    def add_reader(self, source: Any, function: Callable[[], None]) -> None:  # noqa: ANN401  a file or a socket
        """Call a function on the watch's thread whenever `source` is readable."""
        self._selector.register(source, selectors.EVENT_READ, function)

    def remove_reader(self, source: Any) -> None:  # noqa: ANN401  as above
        """Call the function of this reader no more; called on the watch's thread."""
        self._selector.unregister(source)

    def call_later(self, seconds: float, function: Callable[..., None], *arguments: object) -> None:
        """Call a function with these arguments on the watch's thread after so many seconds."""
        with self._lock:
            call: Callable[[], None] = functools.partial(function, *arguments)
            entry = (time.monotonic() + seconds, next(self._count), call)
            heapq.heappush(self._timers, entry)
            is_next = self._timers[0] is entry
        if is_next:
            with contextlib.suppress(BlockingIOError):  # it is awake as it is
                os.write(self._wake_writer, b".")

    def _run(self) -> None:
        while True:
            # in a call of its own, so that no object is kept alive by a local variable during the wait
            self._handle_ready(self._selector.select(self._timeout()))

    def _handle_ready(self, ready: list[tuple[selectors.SelectorKey, int]]) -> None:
        exits: dict[Sink, list[tuple[int | None, Watched]]] = {}
        for key, _ in ready:
            if isinstance(key.data, Watched):
                self._selector.unregister(key.fd)
                exits.setdefault(key.data.sink, []).append((key.fd, key.data))
            else:
                _call_safely(key.data)
        for sink, ended in exits.items():
            try:
                self._report_exits(sink, ended)
            except Exception:
                log.exception(_FENCE)
        for call in self._pop_due_calls():
            self.call(call)

    def call(self, call: Callable[[], None], failures: int = 0) -> None:
        """Call a function; if it raises, call it again with growing pauses, on the watch's thread.

        Some job waits for the call, so it is never given up.
        """
        try:
            call()
        except Exception:
            log.exception(_FENCE)
            self.call_later(_retry_pause(failures + 1), self.call, call, failures + 1)

    def _timeout(self) -> float:
        with self._lock:
            left = self._timers[0][0] - time.monotonic() if self._timers else _LONGEST_WAIT_SECONDS
        # epoll(7) counts milliseconds in an int
        return min(max(0.0, left), _LONGEST_WAIT_SECONDS)

    def _pop_due_calls(self) -> list[Callable[[], None]]:
        due = []
        now = time.monotonic()
        with self._lock:
            while self._timers and self._timers[0][0] <= now:
                due.append(heapq.heappop(self._timers)[2])
        return due

    def _open_pidfds(self) -> None:
        """Open pidfds for the processes that have none, as far as the limit has room.

        Of the jobs that are left, the markers are watched, and not the processes.
        """
        is_failed = False
        while not is_failed:
            with self._lock:
                if not self._overflow or self._open >= self._limit:
                    break
                watched = self._overflow.popleft()
                watched.has_pidfd_slot = True
                self._open += 1
            try:
                self._register(watched)
            except OSError as e:
                # the system has no pidfds, or descriptors are scarce
                is_failed = True
                with self._lock:
                    self._open -= 1
                    self._limit = self._open or int(e.errno in _SCARCE)
                    watched.has_pidfd_slot = False
                    self._overflow.append(watched)
        with self._lock:
            is_first = bool(self._overflow) and not self._is_scanning
            self._is_scanning = self._is_scanning or is_first
        if is_first:
            self.call_later(0, self._scan)

    def _register(self, watched: Watched) -> None:
        """Open a pidfd for a process, and wait on it."""
        try:
            fd = pidfd.open_pidfd(watched.process.pid)
        except ProcessLookupError:
            self.call_later(0, self._report_gone, watched)
            return
        try:
            # if it ended before the pidfd was opened, its pid may belong to another process now
            is_gone = not watched.is_child and not watched.process.is_alive()
            if not is_gone:
                self._selector.register(fd, selectors.EVENT_READ, watched)
        except OSError:
            os.close(fd)
            raise
        if is_gone:
            os.close(fd)
            self.call_later(0, self._report_gone, watched)

    def _report_exits(self, sink: Sink, ended: list[tuple[int | None, Watched]]) -> None:
        """Give a sink the ends of processes, each with its pidfd if there is one."""
        for fd, watched in ended:
            if watched.status is None and fd is not None:
                reaped = pidfd.reap(fd) if watched.is_child else None
                watched.status, watched.memory = reaped or (pidfd.wait_status(fd), None)
        exits = [Exit(it.token, it.status, fd is None or it.retries == 0, it.memory) for fd, it in ended]
        try:
            undecided = {id(token) for token in sink.on_exits(exits)}
        except Exception:
            log.exception(_FENCE)
            # each process by itself, so that one failure does not block the others
            for fd, watched in ended:
                watched.failures += 1
                self.call_later(_retry_pause(watched.failures), self._report_exits, sink, [(fd, watched)])
            return
        for fd, watched in ended:
            if id(watched.token) in undecided:
                # Its parent has not yet collected its exit code; only after that does the kernel report it.
                watched.retries = max(0, watched.retries - 1)
                self.call_later(_STATUS_RETRY_SECONDS, self._report_exits, sink, [(fd, watched)])
            else:
                self._stop_watching(fd, watched)

    def _report_gone(self, watched: Watched) -> None:
        """Give the sink the end of a process for which no pidfd could be opened any more."""
        self._report_exits(watched.sink, [(None, watched)])

    def _stop_watching(self, fd: int | None, watched: Watched) -> None:
        """Stop watching a process, and start to watch the next one that was postponed."""
        if fd is not None:
            os.close(fd)
        if watched.has_pidfd_slot:
            with self._lock:
                self._open -= 1
            self._open_pidfds()

    def _scan(self) -> None:
        """Report markers and ends among the postponed processes, and schedule the next look."""
        with self._lock:
            waiting = list(self._overflow)
            self._is_scanning = bool(waiting)
        directories = {watched.sink.events for watched in waiting}
        self._watch_markers(directories)
        self._report_markers(waiting)
        for watched in waiting:
            self._check_exit(watched)
        if self._limit > 0:
            # descriptors may not be scarce any more
            self._limit = self._full_limit
            self._open_pidfds()
        if waiting:
            is_announced = self._limit > 0 and len(self._marker_watches) == len(directories)
            self.call_later(_ANNOUNCED_SECONDS if is_announced else _SCAN_SECONDS, self._scan)

    def _check_exit(self, watched: Watched) -> None:
        """Check whether a process without a pidfd has ended."""
        try:
            if watched.is_child and watched.status is None:
                pid, status = os.waitpid(watched.process.pid, os.WNOHANG)
                if pid == 0:
                    return
                watched.status = status
        except ChildProcessError:
            pass  # the application collects every child, or ignores SIGCHLD
        try:
            if watched.status is None and watched.process.is_alive():
                return
        except OSError:
            return  # unknown; the next look tries again
        with self._lock:
            if watched not in self._overflow:
                return  # it got a pidfd in the meantime
            self._overflow.remove(watched)
        self._report_gone(watched)

    def _watch_markers(self, wanted: set[str]) -> None:
        for events in self._marker_watches.keys() - wanted:
            marker_watch = self._marker_watches.pop(events)
            self._selector.unregister(marker_watch)
            marker_watch.close()
        for events in wanted - self._marker_watches.keys():
            try:
                marker_watch = MarkerWatch(events)
            except OSError:
                log.debug("%s cannot be watched and is scanned instead", events, exc_info=True)
                continue
            self._marker_watches[events] = marker_watch
            handle = functools.partial(self._handle_markers, marker_watch, events)
            self._selector.register(marker_watch, selectors.EVENT_READ, handle)

    def _handle_markers(self, marker_watch: MarkerWatch, events: str) -> None:
        marker_watch.drain()
        with self._lock:
            waiting = [watched for watched in self._overflow if watched.sink.events == events]
        self._report_markers(waiting)

    def _report_markers(self, waiting: list[Watched]) -> None:
        tokens: dict[Sink, list[Any]] = {}
        for watched in waiting:
            tokens.setdefault(watched.sink, []).append(watched.token)
        for sink, sink_tokens in tokens.items():
            _call_safely(sink.on_markers, sink_tokens)


def _retry_pause(failures: int) -> float:
    return _FAILED_SECONDS * min(failures, _SLOWEST_RETRY)


def _call_safely(function: Callable[..., Any], *arguments: object) -> None:
    """Call a function and log its exception, so that the other jobs are still followed."""
    try:
        function(*arguments)
    except Exception:
        log.exception(_FENCE)


_shared: ExitWatch | None = None
_shared_lock = threading.Lock()


def shared_watch() -> ExitWatch:
    """Return the watch of this process; the first call starts it."""
    global _shared  # noqa: PLW0603  the one of this process
    with _shared_lock:
        if _shared is None:
            _shared = ExitWatch()
        return _shared


def _after_fork() -> None:
    # The thread stayed with the parent, which goes on following its jobs.
    global _shared, _shared_lock  # noqa: PLW0603  the one of this process
    _shared = None
    _shared_lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
