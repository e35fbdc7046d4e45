"""Hears of markers where files are elsewhere, and has them appear here, on a thread of its own."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping

from jpsi.plugin import Command, CommandResult, JpsiError, Lines, LineTransport, Transport, TransportError
from jpsi_engine.monitor import HeardTime, Hearing
from jpsi_engine.remote.marker_mirror import MarkerMirror
from jpsi_engine.remote.markers import FarAll, looking_text, moving_text, read_line, watching_text
from jpsi_engine.spool import Layout

log = logging.getLogger(__name__)

_SHELL = "/bin/sh"
# How long to wait before listening again: from the first to the last of these.
_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 30.0
# How often to look where nothing can be listened to, and how many times before that is tried again.
_LOOK_SECONDS = 2.0
_LOOKS = 30


class FarListening:
    """Has the markers of the jobs in a mirror appear there; implements `sides.Listening`.

    Args:
        transport: leads to where they are.
        layout: where the spool is over there.
        mirror: makes what has markers appear, anew for each connection.
        is_wanted: whether there are jobs to hear of.
        run: has shell text carried out over there.
    """

    def __init__(
        self,
        transport: Transport,
        layout: Callable[[], Layout],
        mirror: Callable[[], MarkerMirror],
        is_wanted: Callable[[], bool],
        run: Callable[[str], CommandResult],
    ) -> None:
        self._time = HeardTime()
        ears = _Ears(transport, layout, mirror, run, self._time)
        self._hearing = Hearing(
            ears.listen,
            ears.take,
            is_wanted,
            lambda _: None,
            first_pause=_FIRST_PAUSE_SECONDS,
            longest_pause=_LONGEST_PAUSE_SECONDS,
        )

    def begin(self) -> None:
        """See `sides.Listening`."""
        self._hearing.begin()

    def passed(self, since: float, now: float) -> float:
        """See `sides.Listening`."""
        return self._time.passed(since, now)


class _Ears:
    """What is listened to, one after the other, and what is made of it."""

    def __init__(
        self,
        transport: Transport,
        layout: Callable[[], Layout],
        mirror: Callable[[], MarkerMirror],
        run: Callable[[str], CommandResult],
        heard: HeardTime,
    ) -> None:
        self._transport = transport
        self._layout = layout
        self._new_mirror = mirror
        self._mirror = mirror()
        self._run = run
        self._heard = heard

    def listen(self) -> Lines:
        """Begin to listen, or to look every now and then."""
        self._heard.lost()
        self._mirror = self._new_mirror()
        events, run = self._layout().events, self._run
        if isinstance(self._transport, LineTransport):
            try:
                return self._transport.open(Command([_SHELL], stdin=watching_text(events)))
            except TransportError as e:
                # somebody else may listen, and others may not be let in
                log.debug("markers in %s are looked for, not listened to: %s", events, e)
        # whoever looks holds on to nothing meanwhile, so that it ends with the executor
        return _Looks(lambda: run(looking_text(events)))

    def take(self, line: str) -> Collection[str]:
        """Have what a line tells appear; returns it if it says that all is told."""
        self._mirror.take(line)
        if not isinstance(read_line(line), FarAll):
            return ()
        self._heard.heard(time.monotonic())
        self._move(self._mirror.made())
        return (line,)

    def _move(self, names: Mapping[str, Collection[str]]) -> None:
        """Have what is here go from where it is told again and again."""
        if names:
            try:
                self._run(moving_text(self._layout().root, names))
            except JpsiError as e:
                log.debug("markers that are known stay where they are: %s", e)


class _Looks:
    """What is told by one look after the other, until one fails; implements `jpsi.plugin.Lines`."""

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
        """Look no more."""
        self._closed.set()
