"""Markers on a remote host: shell text that reports them as they appear, and the parser of its lines.

    clock SECONDS        the time by the remote clock; printed at intervals even if nothing happens
    marker SECONDS NAME  a marker and its time by that clock; `-` if the time is unknown
    all                  the end of one listing: all markers of it have been printed

The shell text prints a marker again each time another one appears, until a client has moved it.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping

import attrs

from jpsi.plugin import line, word
from jpsi_engine.remote.ownership import UNSAFE, render_unsafe_function

_NANOSECONDS = 1_000_000_000
_SECONDS = re.compile(r"(\d{1,12})(?:\.(\d+))?\Z")
# A reported name becomes the name of a file on this machine. The pattern keeps it in its directory, even if
# the remote host is hostile.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}\Z")
#: Shell text for the current directory: turns names, one a line, into lines about markers.
# stat(1) is in no standard: it may be that of GNU, of Busybox, which prints whole seconds, or of BSD.
TIMES = r"""case $(stat -c %.9Y . 2>/dev/null) in
    [0-9]*.[0-9]*) _jpsi_times() { xargs stat -c 'marker %.9Y %n'; } ;;
    *) case $(stat -c %Y . 2>/dev/null) in
        [0-9]*) _jpsi_times() { xargs stat -c 'marker %Y %n'; } ;;
        *) case $(stat -f %Fm . 2>/dev/null) in
            [0-9]*.[0-9]*) _jpsi_times() { xargs stat -f 'marker %Fm %N'; } ;;
            *) _jpsi_times() { sed 's/^/marker - /'; } ;;
        esac ;;
    esac ;;
esac"""
_WATCH_LOOP = r"""{
@UNSAFE@
( umask 077; mkdir -p @EVENTS@ )
cd @EVENTS@ || exit
@TIMES@
_jpsi_seen='' _jpsi_rounds=0
while :; do
    # each time: a user may have removed it, and the next submission made another
    cd @EVENTS@ || exit
    if [ "$_jpsi_rounds" -le 0 ]; then
        printf 'clock %s\n' "$(date +%s.%N)" || exit
        _jpsi_rounds=@ROUNDS@
    fi
    set -- *
    if [ "$*" != "$_jpsi_seen" ]; then
        _jpsi_seen=$*
        for _jpsi_name do
            case $_jpsi_name in -* | *[!A-Za-z0-9._-]*) ;; *) printf '%s\n' "$_jpsi_name" ;; esac
        done | _jpsi_times 2>/dev/null
    fi
    echo all || exit
    _jpsi_rounds=$((_jpsi_rounds - 1))
    @PAUSE@
done
}
"""
# The number of rounds from one clock line to the next.
_ROUNDS = 15
# The number of latest clock lines that count.
_SAMPLES = 20


def render_watch(events: str, pause: int = 1) -> str:
    """Return shell text that reports the markers in a directory every `pause` seconds, without end."""
    return _render_loop(events, line("sleep", str(pause)))


def render_poll(events: str) -> str:
    """Return shell text that reports the markers in a directory once."""
    return _render_loop(events, "exit 0")


def _render_loop(events: str, pause: str) -> str:
    # if other users can write there, the markers prove nothing
    unsafe = f'{render_unsafe_function(events)}\n[ -z "$({UNSAFE})" ] || exit'
    values = {
        "@UNSAFE@": unsafe,
        "@EVENTS@": word(events),
        "@ROUNDS@": str(_ROUNDS),
        "@PAUSE@": pause,
        "@TIMES@": TIMES,
    }
    return re.sub("@[A-Z]+@", lambda match: values[match[0]], _WATCH_LOOP)


def render_moves(root: str, names: Mapping[str, Iterable[str]]) -> str:
    """Return shell text that moves markers into their jobs' folders, once a client has them; by job id.

    The markers of a job without a folder are removed.
    """
    lines = ["{", f"cd {word(root)}/events || exit"]
    for job_id, markers in names.items():
        # with a slash, so that mv fails if the folder was removed meanwhile
        words, folder = line(*markers), word(f"../jobs/{job_id}/")
        lines.append(f"mv -f {words} {folder} 2>/dev/null || [ -d {folder} ] || rm -f {words}")
    return "\n".join([*lines, "}", ""])


@attrs.frozen(slots=True)
class RemoteMarker:
    """A marker on the remote host."""

    name: str
    #: Nanoseconds since 1970 by the remote clock; None if unknown.
    time_ns: int | None


@attrs.frozen(slots=True)
class RemoteClock:
    """The time by the remote clock."""

    time_ns: int


@attrs.frozen(slots=True)
class RemoteMarkers:
    """The end of one listing of markers."""


def parse_line(text: str) -> RemoteMarker | RemoteClock | RemoteMarkers | None:
    """Parse a line; return None if it has no meaning.

    >>> parse_line("marker 1.5 a1.1.active")
    RemoteMarker(name='a1.1.active', time_ns=1500000000)
    """
    match text.split(" "):
        case ["marker", seconds, name] if _NAME.match(name):
            return RemoteMarker(name, _nanoseconds(seconds))
        case ["clock", seconds] if (time_ns := _nanoseconds(seconds)) is not None:
            return RemoteClock(time_ns)
        case ["all"]:
            return RemoteMarkers()
    return None


def _nanoseconds(text: str) -> int | None:
    # where date(1) knows no %N, something else stands after the dot
    parsed = _SECONDS.match(text) or _SECONDS.match(text.partition(".")[0])
    if parsed is None:
        return None
    return int(parsed[1]) * _NANOSECONDS + int(f"{parsed[2] or '':0<9.9}")


@attrs.define(slots=True, eq=False)
class ClockDifference:
    """The difference between this machine's clock and the remote one, as measured on one connection.

    A line arrives some time after it was printed, and the delay is unknown. So the least difference of the
    last clock lines is the best estimate; older ones are dropped, as clocks drift and are set. The order of
    times is always kept.
    """

    _samples: deque[int] = attrs.field(factory=lambda: deque(maxlen=_SAMPLES), init=False)
    #: The latest remote time that was converted, and its time by this machine's clock.
    _latest: tuple[int, int] | None = attrs.field(default=None, init=False)

    def add_sample(self, remote_ns: int, local_ns: int) -> None:
        """Note the time that the remote clock showed, and the time by this machine's clock on arrival."""
        self._samples.append(local_ns - remote_ns)

    def to_local(self, remote_ns: int | None, local_ns: int) -> int:
        """Convert a remote time to this machine's clock; it is never after `local_ns`, the present."""
        if remote_ns is None or not self._samples:
            return local_ns
        parsed = remote_ns + min(self._samples)
        if self._latest is None or remote_ns >= self._latest[0]:
            parsed = parsed if self._latest is None else max(parsed, self._latest[1])
            self._latest = remote_ns, min(parsed, local_ns)
        return min(parsed, local_ns)
