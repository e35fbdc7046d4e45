"""Listens to a batch system that announces changes of its jobs, so that a poll follows each announcement.

An announcement is a hint and nothing more: it causes a poll, and only the poll changes the state of a job. If
the announcements stop, statuses come later and are not lost.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Collection

import attrs

from jpsi.plugin import JpsiError, Lines
from jpsi_engine.host import ReentrantEvent
from jpsi_engine.monitor.job_monitor import JobMonitor
from jpsi_engine.monitor.poll_loop import PollLoop
from jpsi_engine.scheduler import Backend

log = logging.getLogger(__name__)

# Seconds until a command that has ended is started again; the pause grows by the factor.
_FIRST_PAUSE_SECONDS = 5.0
_LONGEST_PAUSE_SECONDS = 3600.0
_GROWTH = 4.0


@attrs.define(slots=True, eq=False)
class EventStream:
    """Listens to announcements on a thread of its own, as long as there are jobs to follow.

    While it listens, the thread holds no reference to this object, and it ends when this object is gone.
    """

    #: Starts the command that prints announcements.
    listen: Callable[[], Lines]
    #: Returns the native ids of the jobs that a line is about.
    parse: Callable[[str], Collection[str]]
    #: Returns True while there are jobs to follow.
    is_wanted: Callable[[], bool]
    #: Called with the native ids that a line is about.
    on_event: Callable[[Collection[str]], None]
    #: Waits for so many seconds, or until the event is set.
    wait: Callable[[ReentrantEvent, float], object] = ReentrantEvent.wait
    #: The seconds to wait before a command that has ended is started again; and the longest such pause. The
    #: pause grows up to it while the command ends without announcing anything.
    first_pause: float = _FIRST_PAUSE_SECONDS
    longest_pause: float = _LONGEST_PAUSE_SECONDS
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)
    _is_running: bool = attrs.field(default=False, init=False)
    _open_stream: _OpenStream = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._open_stream = _OpenStream()
        weakref.finalize(self, self._open_stream.close)

    def start(self) -> None:
        """Start the thread, if it does not run: there are jobs to follow.

        Raises:
            RuntimeError: no thread can be started now.
        """
        with self._lock:
            if not self._is_running:
                thread = threading.Thread(
                    target=_run_stream,
                    args=(weakref.ref(self), self._open_stream),
                    name="jpsi-event-stream",
                    daemon=True,
                )
                thread.start()
                self._is_running = True

    def _may_end(self) -> bool:
        with self._lock:
            if self.is_wanted():
                return False
            self._is_running = False
            return True

    def _handle_line(self, line: str) -> bool:
        """Pass on the native ids that a line is about; return True if there are any."""
        try:
            native_ids = self.parse(line)
        except JpsiError as e:
            log.debug("the plugin cannot parse the event %r: %s", line, e)
            return False
        if native_ids:
            self.on_event(native_ids)
        return bool(native_ids)


def make_event_stream(backend: Backend, monitor: JobMonitor, poll_loop: PollLoop) -> EventStream:
    """Return a listener to the jobs of a backend; it makes a poll due when a followed job is announced."""

    def on_event(native_ids: Collection[str]) -> None:
        if not {job.native_id for job in monitor.all()}.isdisjoint(native_ids):
            monitor.note_event(time.monotonic())
            with contextlib.suppress(RuntimeError):  # no thread can be started now
                poll_loop.start()

    return EventStream(backend.open_event_stream, backend.parse_event, lambda: bool(monitor.all()), on_event)


class _OpenStream:
    """The running command; it is closed when the `EventStream` is gone."""

    def __init__(self) -> None:
        self.closed = ReentrantEvent()
        self.lines: Lines | None = None

    def listen(self, lines: Lines) -> Lines:
        self.lines = lines
        if self.closed.is_set():
            lines.close()
        return lines

    def close(self) -> None:
        self.closed.set()
        if self.lines is not None:
            self.lines.close()


def _run_stream(reference: weakref.ref[EventStream], open_stream: _OpenStream) -> None:
    pause = None
    # it is closed with its owner, or at exit of the program while that still exists
    while not open_stream.closed.is_set() and (stream := _if_wanted(reference)) is not None:
        wait, lines = stream.wait, None
        first, longest = stream.first_pause, stream.longest_pause
        try:
            lines = open_stream.listen(stream.listen())
        except (JpsiError, OSError) as e:
            log.info("the command that prints job events failed; jpsi keeps polling: %s", e)
        del stream
        has_announced = False if lines is None else _read_lines(reference, lines)
        if has_announced is None:
            return
        pause = first if has_announced or pause is None else pause
        wait(open_stream.closed, pause)
        pause = first if has_announced else min(pause * _GROWTH, longest)


def _if_wanted(reference: weakref.ref[EventStream]) -> EventStream | None:
    stream = reference()
    return None if stream is None or stream._may_end() else stream  # noqa: SLF001  two halves of one thing


def _read_lines(reference: weakref.ref[EventStream], lines: Lines) -> bool | None:
    """Read a command's lines to the end; return True if it announced anything.

    Returns None as soon as there are no more jobs to follow.
    """
    has_announced = False
    try:
        with contextlib.closing(lines):
            for line in lines:
                stream = _if_wanted(reference)
                if stream is None:
                    return None
                has_announced = stream._handle_line(line) or has_announced  # noqa: SLF001
                del stream
    except Exception:
        log.exception("handling job events failed; jpsi keeps polling")
        return False
    return has_announced


# The seconds after a report that count if the next one is late. A host that is reached reports every one or
# two seconds. Even if each report takes longer than this, some time counts, so that jobs
# are declared lost at last.
_TIMEOUT_SECONDS = 10.0
# The most reports and gaps to store: more gaps than occur before a job counts as lost, and more reports than
# arrive during one poll of the batch system.
_MOST_STORED = 1000


class Liveness:
    """The times of a remote host's reports, in seconds of one monotonic clock. Methods are thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._report_times: deque[float] = deque(maxlen=_MOST_STORED)
        self._is_lost = True
        # the begin and end of each time that does not count
        self._gaps: deque[tuple[float, float]] = deque(maxlen=_MOST_STORED)

    def note_report(self, now: float) -> None:
        """Note that a report arrived."""
        with self._lock:
            if not self._report_times:
                self._gaps.append((float("-inf"), now))
            elif self._is_lost:
                self._gaps.append((self._report_times[-1], now))
            elif now - self._report_times[-1] > _TIMEOUT_SECONDS:
                self._gaps.append((self._report_times[-1] + _TIMEOUT_SECONDS, now))
            self._report_times.append(now)
            self._is_lost = False

    def note_disconnect(self) -> None:
        """Note that the last connection was lost: the time from its last report to the next is a gap.

        The caller notes it when it opens the next connection.
        """
        with self._lock:
            self._is_lost = True

    def counted_seconds(self, since: float, now: float) -> float:
        """Return how many of the seconds between two times count.

        The seconds between the last report before `now` and `now` do not count: the next report may tell what
        happened in them.
        """
        with self._lock:
            until = next((it for it in reversed(self._report_times) if it <= now), float("-inf"))
            missed = sum(max(0.0, min(end, until) - max(begin, since)) for begin, end in self._gaps)
            return max(0.0, until - since - missed)
