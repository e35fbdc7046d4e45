"""Tells when processes end: one thread for all processes and timers, one pidfd each while there are any.

Where descriptors run short, or the system has no pidfds, the markers that jobs leave are watched instead
and the processes looked at in turn; nothing is lost, it may be told later.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import heapq
import itertools
import logging
import os
import resource
import selectors
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import attrs

from jpsi.engine.procfs import ProcessId
from jpsi.engine.watcher import MarkerWatch

log = logging.getLogger(__name__)

# How often markers are looked at where nothing announces them, and where something does.
_SCAN_SECONDS = 0.1
_ANNOUNCED_SECONDS = 5.0
_STATUS_RETRY_SECONDS = 0.05
_STATUS_RETRIES = 20

# linux/pidfd.h: PIDFD_GET_INFO = _IOWR(0xFF, 11, struct pidfd_info), with the exit code since Linux 6.15
_PIDFD_GET_INFO = (3 << 30) | (64 << 16) | (0xFF << 8) | 11
_PIDFD_INFO_SIZE = 64
_PIDFD_INFO_EXIT = 1 << 3
_EXIT_CODE_OFFSET = 60


@attrs.define(slots=True, eq=False)
class Watched:
    """One process that is waited for."""

    process: ProcessId
    #: Who is told, and about whom.
    sink: Sink
    token: Any
    #: Whether this process started it.
    is_child: bool
    retries: int = _STATUS_RETRIES


@attrs.frozen(slots=True)
class Exit:
    """A process ended."""

    token: Any
    #: As wait(2) reports it; None if nobody can tell.
    wait_status: int | None
    #: Whether asking again later cannot tell more.
    is_last: bool


class Sink(Protocol):
    """Who wants to know about processes; the methods are called on the thread of the watch."""

    @property
    def events(self) -> str:
        """The directory in which the jobs of this sink leave markers."""

    def ended(self, exits: list[Exit]) -> Iterable[Any]:
        """Processes ended. Returns the tokens for which that does not suffice, to be told again."""

    def marked(self, tokens: list[Any]) -> None:
        """Jobs may have left markers."""


class ExitWatch:
    """The thread, its descriptors and its timers. All methods may be called from any thread."""

    def __init__(self, limit: int | None = None) -> None:
        self._selector = selectors.DefaultSelector()
        self._limit = _descriptor_limit() if limit is None else limit
        self._lock = threading.Lock()
        self._open = 0
        self._overflow: deque[Watched] = deque()
        self._looking = False
        self._marker_watches: dict[str, MarkerWatch] = {}
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._count = itertools.count()
        self._wake_reader, self._wake_writer = os.pipe()
        os.set_blocking(self._wake_reader, False)
        os.set_blocking(self._wake_writer, False)
        self._selector.register(self._wake_reader, selectors.EVENT_READ, self._woken)
        threading.Thread(target=self._run, name="jpsi-exits", daemon=True).start()

    def watch(self, process: ProcessId, sink: Sink, token: Any, *, is_child: bool) -> None:  # noqa: ANN401  the sink's own
        """Tell `sink` once the process has ended; at once if it has already.

        Args:
            process: the process.
            sink: whom to tell.
            token: what to tell it with.
            is_child: whether this process started it and nobody has waited for it.
        """
        watched = Watched(process, sink, token, is_child)
        with self._lock:
            fits = self._open < self._limit
            if fits:
                self._open += 1
        if fits:
            self._register(watched)
        else:
            self._postpone(watched)

    def call_later(self, seconds: float, call: Callable[[], None]) -> None:
        """Call something on the thread of the watch."""
        with self._lock:
            entry = (time.monotonic() + seconds, next(self._count), call)
            heapq.heappush(self._timers, entry)
            is_next = self._timers[0] is entry
        if is_next:
            self._wake()

    def _wake(self) -> None:
        with contextlib.suppress(BlockingIOError):  # it is awake as it is
            os.write(self._wake_writer, b".")

    def _woken(self) -> None:
        os.read(self._wake_reader, 4096)

    def _run(self) -> None:
        while True:
            # a call of its own, so that nothing is held on to while waiting
            self._take(self._selector.select(self._timeout()))

    def _take(self, ready: list[tuple[selectors.SelectorKey, int]]) -> None:
        exits: dict[Sink, list[tuple[int, Watched]]] = {}
        for key, _ in ready:
            if isinstance(key.data, Watched):
                self._selector.unregister(key.fd)
                exits.setdefault(key.data.sink, []).append((key.fd, key.data))
            else:
                _fenced(key.data)
        for sink, ended in exits.items():
            _fenced(functools.partial(self._tell, sink, ended))
        for call in self._due():
            _fenced(call)

    def _timeout(self) -> float | None:
        with self._lock:
            return max(0.0, self._timers[0][0] - time.monotonic()) if self._timers else None

    def _due(self) -> list[Callable[[], None]]:
        due = []
        now = time.monotonic()
        with self._lock:
            while self._timers and self._timers[0][0] <= now:
                due.append(heapq.heappop(self._timers)[2])
        return due

    def _register(self, watched: Watched) -> None:
        """Open a pidfd, for which there is room, and wait on it."""
        try:
            fd = _pidfd_open(watched.process.pid)
        except ProcessLookupError:
            self.call_later(0, functools.partial(self._gone, watched))
            return
        except OSError:
            # no pidfds here, or no descriptor left for one: the limit is where we are now
            with self._lock:
                self._open -= 1
                self._limit = self._open
            self._postpone(watched)
            return
        if not watched.is_child and not watched.process.is_alive():
            # it ended, and perhaps its pid was given to another process, before the pidfd was opened
            os.close(fd)
            self.call_later(0, functools.partial(self._gone, watched))
            return
        self._selector.register(fd, selectors.EVENT_READ, watched)

    def _tell(self, sink: Sink, ended: list[tuple[int, Watched]]) -> None:
        exits = [
            Exit(watched.token, _wait_status(watched, fd), watched.retries == 0) for fd, watched in ended
        ]
        undecided = {id(token) for token in sink.ended(exits)}
        for fd, watched in ended:
            if id(watched.token) in undecided and watched.retries > 0:
                # Its parent has not yet collected its exit code; after that the kernel tells it.
                watched.retries -= 1
                again = functools.partial(self._tell, sink, [(fd, watched)])
                self.call_later(_STATUS_RETRY_SECONDS, again)
            else:
                os.close(fd)
                self._freed()

    def _gone(self, watched: Watched) -> None:
        """Tell of a process for which there was no pidfd to be had any more."""
        watched.sink.ended([Exit(watched.token, None, is_last=True)])
        self._freed()

    def _freed(self) -> None:
        """There is room for one more pidfd."""
        with self._lock:
            watched = self._overflow.popleft() if self._overflow else None
            if watched is None:
                self._open -= 1
        if watched is not None:
            self._register(watched)

    def _postpone(self, watched: Watched) -> None:
        """Have the markers watched of a job whose process is not, until there is room."""
        with self._lock:
            self._overflow.append(watched)
            is_first = not self._looking
            self._looking = True
        if is_first:
            self.call_later(0, self._look)

    def _look(self) -> None:
        """Tell of what was marked and of who has ended among the postponed, and arrange the next look."""
        with self._lock:
            waiting = list(self._overflow)
            self._looking = bool(waiting)
        self._watch_markers({watched.sink.events for watched in waiting})
        self._tell_marked(waiting)
        if self._limit == 0:
            for watched in waiting:
                self._look_at(watched)
        if waiting:
            announced = len(self._marker_watches) == len({w.sink.events for w in waiting})
            self.call_later(_ANNOUNCED_SECONDS if announced and self._limit else _SCAN_SECONDS, self._look)

    def _look_at(self, watched: Watched) -> None:
        """Without pidfds: see whether a process has ended."""
        status = None
        try:
            if watched.is_child:
                pid, status = os.waitpid(watched.process.pid, os.WNOHANG)
                if pid == 0:
                    return
            else:
                os.kill(watched.process.pid, 0)
                return
        except ChildProcessError:
            status = None
        except ProcessLookupError:
            pass
        except PermissionError:
            return
        with self._lock:
            self._overflow.remove(watched)
        watched.sink.ended([Exit(watched.token, status, is_last=True)])

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
            look = functools.partial(self._marked, marker_watch, events)
            self._selector.register(marker_watch, selectors.EVENT_READ, look)

    def _marked(self, marker_watch: MarkerWatch, events: str) -> None:
        marker_watch.drain()
        with self._lock:
            waiting = [watched for watched in self._overflow if watched.sink.events == events]
        self._tell_marked(waiting)

    def _tell_marked(self, waiting: list[Watched]) -> None:
        tokens: dict[Sink, list[Any]] = {}
        for watched in waiting:
            tokens.setdefault(watched.sink, []).append(watched.token)
        for sink, theirs in tokens.items():
            sink.marked(theirs)


def _fenced(call: Callable[[], Any]) -> None:
    """Call something whose failure must not cost the other jobs their news."""
    try:
        call()
    except Exception:
        log.exception("following jobs failed once and goes on")


def _pidfd_open(pid: int) -> int:
    if not hasattr(os, "pidfd_open"):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    return os.pidfd_open(pid)


def _wait_status(watched: Watched, fd: int) -> int | None:
    """How a process ended, as wait(2) reports it."""
    if watched.is_child:
        try:
            result = os.waitid(os.P_PIDFD, fd, os.WEXITED | os.WNOHANG)
        except ChildProcessError:
            result = None  # the application collects every child, or ignores SIGCHLD
        if result is not None:
            exited = result.si_code == os.CLD_EXITED
            return result.si_status << 8 if exited else result.si_status
    answer = bytearray(_PIDFD_INFO_SIZE)
    struct.pack_into("Q", answer, 0, _PIDFD_INFO_EXIT)
    try:
        fcntl.ioctl(fd, _PIDFD_GET_INFO, answer)
    except OSError:
        return None  # Linux < 6.15
    if not struct.unpack_from("Q", answer, 0)[0] & _PIDFD_INFO_EXIT:
        return None
    status: int = struct.unpack_from("i", answer, _EXIT_CODE_OFFSET)[0]
    return status


def _descriptor_limit() -> int:
    """How many descriptors may go to processes: most, but leave the application some."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return 1 << 20
    return max(soft - 256, soft // 2)


_shared: ExitWatch | None = None
_shared_lock = threading.Lock()


def shared() -> ExitWatch:
    """The watch of this process."""
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
