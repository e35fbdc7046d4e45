"""Tells when processes end: one thread for all processes and timers, one pidfd each while there are any.

Where descriptors run short, or the system has no pidfds, the markers that jobs leave are watched instead
and the processes looked at in turn; nothing is lost, it may be told later.
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

# How often markers are looked at where nothing announces them, and where something does.
_SCAN_SECONDS = 0.1
_ANNOUNCED_SECONDS = 5.0
_STATUS_RETRY_SECONDS = 0.05
_STATUS_RETRIES = 20
_FAILED_SECONDS = 1.0
_SLOWEST_RETRY = 60
_SCARCE = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC})
_LONGEST_WAIT_SECONDS = 3600.0
_FENCE = "following jobs failed once and goes on"


@attrs.define(slots=True, eq=False)
class Watched:
    """One process that is waited for."""

    process: ProcessId
    #: Who is told, and about whom.
    sink: Sink
    token: Any
    #: Whether this process started it.
    is_child: bool
    #: Whether it counts among those that a pidfd is open for.
    has_room: bool = False
    #: How it ended, as wait(2) reports it.
    status: int | None = None
    #: How often more is to be asked of the kernel.
    retries: int = _STATUS_RETRIES
    #: How often the sink could not take the news.
    failures: int = 0


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
        self._most = self._limit = pidfd.limit() if limit is None else limit
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
            watched.has_room = self._open < self._limit
            if watched.has_room:
                self._open += 1
        if watched.has_room:
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
        exits: dict[Sink, list[tuple[int | None, Watched]]] = {}
        for key, _ in ready:
            if isinstance(key.data, Watched):
                self._selector.unregister(key.fd)
                exits.setdefault(key.data.sink, []).append((key.fd, key.data))
            else:
                _fenced(key.data)
        for sink, ended in exits.items():
            _fenced(functools.partial(self._tell, sink, ended))
        for call in self._due():
            self._call(call)

    def _call(self, call: Callable[[], None], failures: int = 0) -> None:
        """Call what is due; what fails is tried again, ever more rarely, as somebody waits for it."""
        try:
            call()
        except Exception:
            log.exception(_FENCE)
            again = functools.partial(self._call, call, failures + 1)
            self.call_later(_FAILED_SECONDS * min(failures + 1, _SLOWEST_RETRY), again)

    def _timeout(self) -> float:
        with self._lock:
            left = self._timers[0][0] - time.monotonic() if self._timers else _LONGEST_WAIT_SECONDS
        # epoll(7) counts milliseconds in an int
        return min(max(0.0, left), _LONGEST_WAIT_SECONDS)

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
            fd = pidfd.open_pidfd(watched.process.pid)
        except ProcessLookupError:
            self.call_later(0, functools.partial(self._gone, watched))
            return
        except OSError as e:
            self._do_without(watched, e)
            return
        if not watched.is_child and not watched.process.is_alive():
            # it ended, and perhaps its pid was given to another process, before the pidfd was opened
            os.close(fd)
            self.call_later(0, functools.partial(self._gone, watched))
            return
        try:
            self._selector.register(fd, selectors.EVENT_READ, watched)
        except OSError as e:
            os.close(fd)
            self._do_without(watched, e)

    def _do_without(self, watched: Watched, error: OSError) -> None:
        """There is no pidfd for a process: never on this system, or not now for lack of descriptors."""
        with self._lock:
            self._open -= 1
            self._limit = self._open or int(error.errno in _SCARCE)
            watched.has_room = False
        self._postpone(watched)

    def _tell(self, sink: Sink, ended: list[tuple[int | None, Watched]]) -> None:
        """Tell a sink of processes that ended, each with its pidfd if there is one."""
        for fd, watched in ended:
            if watched.status is None and fd is not None:
                watched.status = pidfd.wait_status(fd, is_child=watched.is_child)
        exits = [
            Exit(watched.token, watched.status, fd is None or watched.retries == 0) for fd, watched in ended
        ]
        try:
            undecided = {id(token) for token in sink.ended(exits)}
        except Exception:
            log.exception(_FENCE)
            self._tell_singly(sink, ended)
            return
        for fd, watched in ended:
            if id(watched.token) in undecided and fd is not None and watched.retries > 0:
                # Its parent has not yet collected its exit code; after that the kernel tells it.
                watched.retries -= 1
                again = functools.partial(self._tell, sink, [(fd, watched)])
                self.call_later(_STATUS_RETRY_SECONDS, again)
            else:
                self._done(fd, watched)

    def _tell_singly(self, sink: Sink, ended: list[tuple[int | None, Watched]]) -> None:
        """After a failure: tell later, and of each on its own, so that one cannot cost the others theirs."""
        for fd, watched in ended:
            watched.failures += 1
            again = functools.partial(self._tell, sink, [(fd, watched)])
            self.call_later(_FAILED_SECONDS * min(watched.failures, _SLOWEST_RETRY), again)

    def _gone(self, watched: Watched) -> None:
        """Tell of a process for which there was no pidfd to be had any more."""
        self._tell(watched.sink, [(None, watched)])

    def _done(self, fd: int | None, watched: Watched) -> None:
        """Nothing more is to be told of a process: there may be room for another."""
        if fd is not None:
            os.close(fd)
        if watched.has_room:
            with self._lock:
                self._open -= 1
            self._fill()

    def _fill(self) -> None:
        """Give room to the one that was postponed first, if there is room."""
        with self._lock:
            if not self._overflow or self._open >= self._limit:
                return
            watched = self._overflow.popleft()
            watched.has_room = True
            self._open += 1
        self._register(watched)

    def _postpone(self, watched: Watched) -> None:
        """Have the markers watched of a job whose process is not, until there is room."""
        with self._lock:
            self._overflow.append(watched)
            is_first = not self._looking
            self._looking = True
            has_room = self._open < self._limit == self._most
        if is_first:
            self.call_later(0, self._look)
        if has_room:
            self._fill()

    def _look(self) -> None:
        """Tell of what was marked and of who has ended among the postponed, and arrange the next look."""
        with self._lock:
            waiting = list(self._overflow)
            self._looking = bool(waiting)
        directories = {watched.sink.events for watched in waiting}
        self._watch_markers(directories)
        self._tell_marked(waiting)
        for watched in waiting:
            self._look_at(watched)
        if self._limit > 0:
            # what was short may not be any more
            self._limit = self._most
            self._fill()
        if waiting:
            is_announced = self._limit > 0 and len(self._marker_watches) == len(directories)
            self.call_later(_ANNOUNCED_SECONDS if is_announced else _SCAN_SECONDS, self._look)

    def _look_at(self, watched: Watched) -> None:
        """See whether a process has ended that there is no pidfd for."""
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
            return  # nothing is known; the next look may tell
        with self._lock:
            if watched not in self._overflow:
                return  # there was room for it in the meantime
            self._overflow.remove(watched)
        self._gone(watched)

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
            _fenced(functools.partial(sink.marked, theirs))


def _fenced(call: Callable[[], Any]) -> None:
    """Call something whose failure must not cost the other jobs their news."""
    try:
        call()
    except Exception:
        log.exception(_FENCE)


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
