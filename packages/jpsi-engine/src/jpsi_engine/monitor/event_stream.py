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
from collections.abc import Callable, Collection

from jpsi.plugin import JpsiError, Lines
from jpsi_engine.monitor.job_monitor import JobMonitor
from jpsi_engine.monitor.poll_loop import PollLoop
from jpsi_engine.scheduler import Backend

log = logging.getLogger(__name__)

# Seconds until a command that has ended is started again; the pause grows by the factor.
_FIRST_PAUSE_SECONDS = 5.0
_LONGEST_PAUSE_SECONDS = 3600.0
_GROWTH = 4.0


class EventStream:
    """Listens to announcements on a thread of its own, as long as there are jobs to follow.

    While it listens, the thread holds no reference to this object, and it ends when this object is gone.

    Args:
        listen: starts the command that prints announcements.
        understand: returns the native ids of the jobs that a line is about.
        is_wanted: returns True while there are jobs to follow.
        heard: called with the native ids that a line is about.
        wait: waits for so many seconds, or until the event is set.
        first_pause: the seconds to wait before a command that has ended is started again.
        longest_pause: the longest such pause. The pause grows up to it while the command ends without
            announcing anything.
    """

    def __init__(  # noqa: PLR0913  the parts in which listeners differ
        self,
        listen: Callable[[], Lines],
        understand: Callable[[str], Collection[str]],
        is_wanted: Callable[[], bool],
        heard: Callable[[Collection[str]], None],
        wait: Callable[[threading.Event, float], object] = threading.Event.wait,
        *,
        first_pause: float = _FIRST_PAUSE_SECONDS,
        longest_pause: float = _LONGEST_PAUSE_SECONDS,
    ) -> None:
        self.first_pause = first_pause
        self.longest_pause = longest_pause
        self._listen = listen
        self._understand = understand
        self._is_wanted = is_wanted
        self._heard = heard
        self._wait = wait
        self._lock = threading.Lock()
        self._is_running = False
        self._ear = _Ear()
        weakref.finalize(self, self._ear.close)

    def begin(self) -> None:
        """Start the thread, if it does not run: there are jobs to follow.

        Raises:
            RuntimeError: no thread can be started now.
        """
        with self._lock:
            if not self._is_running:
                thread = threading.Thread(
                    target=_hear, args=(weakref.ref(self), self._ear), name="jpsi-hear", daemon=True
                )
                thread.start()
                self._is_running = True

    def _may_end(self) -> bool:
        with self._lock:
            if self._is_wanted():
                return False
            self._is_running = False
            return True

    def _take(self, line: str) -> bool:
        """Pass on the native ids that a line is about; return True if there are any."""
        try:
            found = self._understand(line)
        except JpsiError as e:
            log.debug("%r was not understood: %s", line, e)
            return False
        if found:
            self._heard(found)
        return bool(found)


def hearing(backend: Backend, tracking: JobMonitor, rounds: PollLoop) -> EventStream:
    """Return a listener to the jobs of a backend; it makes a poll due when a followed job is announced."""

    def heard(native_ids: Collection[str]) -> None:
        if not {job.native_id for job in tracking.all()}.isdisjoint(native_ids):
            tracking.told(time.monotonic())
            with contextlib.suppress(RuntimeError):  # no thread can be started now
                rounds.begin()

    return EventStream(backend.listen, backend.news, lambda: bool(tracking.all()), heard)


class _Ear:
    """The running command; it is closed when the `EventStream` is gone."""

    def __init__(self) -> None:
        self.closed = threading.Event()
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


def _hear(reference: weakref.ref[EventStream], ear: _Ear) -> None:
    pause = None
    while (hearing := _still_wanted(reference)) is not None:
        wait, lines = hearing._wait, None  # noqa: SLF001  two halves of one thing
        first, longest = hearing.first_pause, hearing.longest_pause
        try:
            lines = ear.listen(hearing._listen())  # noqa: SLF001
        except (JpsiError, OSError) as e:
            log.info("nothing is to be heard of jobs: %s", e)
        del hearing
        has_told = False if lines is None else _fenced(reference, lines)
        if has_told is None:
            return
        pause = first if has_told or pause is None else pause
        wait(ear.closed, pause)
        pause = first if has_told else min(pause * _GROWTH, longest)


def _still_wanted(reference: weakref.ref[EventStream]) -> EventStream | None:
    hearing = reference()
    return None if hearing is None or hearing._may_end() else hearing  # noqa: SLF001


def _fenced(reference: weakref.ref[EventStream], lines: Lines) -> bool | None:
    try:
        return _heard_out(reference, lines)
    except Exception:
        log.exception("what is heard of jobs was of no use")
        return False


def _heard_out(reference: weakref.ref[EventStream], lines: Lines) -> bool | None:
    """Read a command's lines to the end; return True if it announced anything.

    Returns None as soon as there are no more jobs to follow.
    """
    has_told = False
    with contextlib.closing(lines):
        for line in lines:
            hearing = _still_wanted(reference)
            if hearing is None:
                return None
            has_told = hearing._take(line) or has_told  # noqa: SLF001
            del hearing
    return has_told
