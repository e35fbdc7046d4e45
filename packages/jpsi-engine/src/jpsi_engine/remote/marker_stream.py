"""Receives the markers of a remote host on a thread of its own, and creates them in the mirror.

It polls where the transport cannot keep a command open.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping

import attrs

from jpsi.plugin import Command, CommandResult, JpsiError, Lines, LineTransport, Transport, TransportError
from jpsi_engine.host import ReentrantEvent
from jpsi_engine.monitor import EventStream, Liveness
from jpsi_engine.remote.marker_mirror import MarkerMirror
from jpsi_engine.remote.markers import RemoteMarkers, parse_line, render_moves, render_poll, render_watch
from jpsi_engine.spool import Layout

log = logging.getLogger(__name__)

_SHELL = "/bin/sh"
# The shortest and the longest wait before the event stream is opened again.
_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 30.0
# Seconds between two polls if there is no event stream, and the number of polls before opening one again.
_POLL_SECONDS = 2.0
_MAX_POLLS = 30


@attrs.define(slots=True, eq=False)
class MarkerReceiver:
    """The event streams of markers, one after the other, and the handling of their lines.

    Args:
        transport: runs commands on the remote host.
        layout: returns the paths of the remote spool.
        new_mirror: returns the object that creates markers, a new one for each connection.
        run: runs shell text on the remote host.
    """

    _transport: Transport
    _layout: Callable[[], Layout]
    _new_mirror: Callable[[], MarkerMirror]
    _run: Callable[[str], CommandResult]
    _mirror: MarkerMirror = attrs.field(init=False)
    #: The times at which the remote host reported markers.
    liveness: Liveness = attrs.field(factory=Liveness, init=False)

    def stream(self, is_wanted: Callable[[], bool]) -> EventStream:
        """Return the thread that creates the markers of a mirror's jobs in it.

        Args:
            is_wanted: returns True while there are jobs to follow.
        """
        return EventStream(
            self.open,
            self.handle_line,
            is_wanted,
            on_event=lambda _: None,
            first_pause=_FIRST_PAUSE_SECONDS,
            longest_pause=_LONGEST_PAUSE_SECONDS,
        )

    def open(self) -> Lines:
        """Open an event stream of markers; if that is not possible, return polls that look like one."""
        self.liveness.note_disconnect()
        self._mirror = self._new_mirror()
        events, run = self._layout().events, self._run
        if isinstance(self._transport, LineTransport):
            try:
                return self._transport.open(Command([_SHELL], stdin=render_watch(events)))
            except TransportError as e:
                # the remote host may allow only one such command, and another process may have it
                log.debug("markers in %s are polled, as no event stream can be opened: %s", events, e)
        # the polls hold no reference to this object, so that it ends with the executor
        return _PolledLines(lambda: run(render_poll(events)))

    def handle_line(self, line: str) -> Collection[str]:
        """Create the markers that a line completes; return the line if it ends a listing."""
        self._mirror.handle_line(line)
        if not isinstance(parse_line(line), RemoteMarkers):
            return ()
        self.liveness.note_report(time.monotonic())
        self._move(self._mirror.pop_mirrored())
        return (line,)

    def _move(self, names: Mapping[str, Collection[str]]) -> None:
        """Move markers that the mirror has out of the remote directory, so that each is reported once."""
        if names:
            try:
                self._run(render_moves(self._layout().root, names))
            except JpsiError as e:
                log.debug("collected markers could not be moved on the remote host: %s", e)


class _PolledLines:
    """The lines of one poll after the other, until one fails; implements `jpsi.plugin.Lines`."""

    def __init__(self, poll: Callable[[], CommandResult]) -> None:
        self._poll = poll
        self._closed = ReentrantEvent()

    def __iter__(self) -> Iterator[str]:
        for _ in range(_MAX_POLLS):
            try:
                result = self._poll()
            except JpsiError as e:
                log.info("the remote markers could not be read: %s", e)
                return
            if result.timed_out or result.returncode != 0:
                return
            yield from result.stdout.splitlines()
            if self._closed.wait(_POLL_SECONDS):
                return

    def close(self) -> None:
        """Stop polling."""
        self._closed.set()
