"""Receives the markers of a remote host on a thread of its own, and creates them in the mirror.

It polls where the transport cannot keep a command open.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping

from jpsi.plugin import Command, CommandResult, JpsiError, Lines, LineTransport, Transport, TransportError
from jpsi_engine.monitor import EventStream, Liveness
from jpsi_engine.remote.marker_mirror import MarkerMirror
from jpsi_engine.remote.markers import RemoteMarkers, looking_text, moving_text, read_line, watching_text
from jpsi_engine.spool import Layout

log = logging.getLogger(__name__)

_SHELL = "/bin/sh"
# The shortest and the longest wait before the event stream is opened again.
_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 30.0
# Seconds between two polls if there is no event stream, and the number of polls before opening one again.
_LOOK_SECONDS = 2.0
_LOOKS = 30


class MarkerStream:
    """The thread that creates the markers of a mirror's jobs in it; implements `submission.MarkerSource`.

    Args:
        transport: runs commands on the remote host.
        layout: returns the paths of the remote spool.
        mirror: returns the object that creates markers, a new one for each connection.
        is_wanted: returns True while there are jobs to follow.
        run: runs shell text on the remote host.
    """

    def __init__(
        self,
        transport: Transport,
        layout: Callable[[], Layout],
        mirror: Callable[[], MarkerMirror],
        is_wanted: Callable[[], bool],
        run: Callable[[str], CommandResult],
    ) -> None:
        self._time = Liveness()
        ears = _Ears(transport, layout, mirror, run, self._time)
        self._hearing = EventStream(
            ears.listen,
            ears.take,
            is_wanted,
            lambda _: None,
            first_pause=_FIRST_PAUSE_SECONDS,
            longest_pause=_LONGEST_PAUSE_SECONDS,
        )

    def begin(self) -> None:
        """See `submission.MarkerSource`."""
        self._hearing.begin()

    def passed(self, since: float, now: float) -> float:
        """See `submission.MarkerSource`."""
        return self._time.passed(since, now)


class _Ears:
    """The event streams of markers, one after the other, and the handling of their lines."""

    def __init__(
        self,
        transport: Transport,
        layout: Callable[[], Layout],
        mirror: Callable[[], MarkerMirror],
        run: Callable[[str], CommandResult],
        heard: Liveness,
    ) -> None:
        self._transport = transport
        self._layout = layout
        self._new_mirror = mirror
        self._mirror = mirror()
        self._run = run
        self._heard = heard

    def listen(self) -> Lines:
        """Open an event stream of markers; if that is not possible, return polls that look like one."""
        self._heard.lost()
        self._mirror = self._new_mirror()
        events, run = self._layout().events, self._run
        if isinstance(self._transport, LineTransport):
            try:
                return self._transport.open(Command([_SHELL], stdin=watching_text(events)))
            except TransportError as e:
                # the remote host may allow only one such command, and another process may have it
                log.debug("markers in %s are looked for, not listened to: %s", events, e)
        # the polls hold no reference to this object, so that it ends with the executor
        return _Looks(lambda: run(looking_text(events)))

    def take(self, line: str) -> Collection[str]:
        """Create the markers that a line completes; return the line if it ends a listing."""
        self._mirror.take(line)
        if not isinstance(read_line(line), RemoteMarkers):
            return ()
        self._heard.heard(time.monotonic())
        self._move(self._mirror.made())
        return (line,)

    def _move(self, names: Mapping[str, Collection[str]]) -> None:
        """Move markers that the mirror has out of the remote directory, so that each is reported once."""
        if names:
            try:
                self._run(moving_text(self._layout().root, names))
            except JpsiError as e:
                log.debug("markers that are known stay where they are: %s", e)


class _Looks:
    """The lines of one poll after the other, until one fails; implements `jpsi.plugin.Lines`."""

    def __init__(self, look: Callable[[], CommandResult]) -> None:
        self._look = look
        self._closed = threading.Event()

    def __iter__(self) -> Iterator[str]:
        for _ in range(_LOOKS):
            try:
                result = self._look()
            except JpsiError as e:
                log.info("no markers are to be had: %s", e)
                return
            if result.timed_out or result.returncode != 0:
                return
            yield from result.stdout.splitlines()
            if self._closed.wait(_LOOK_SECONDS):
                return

    def close(self) -> None:
        """Stop polling."""
        self._closed.set()
