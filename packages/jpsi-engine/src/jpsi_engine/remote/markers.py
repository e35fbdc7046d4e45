"""Markers where files are elsewhere: shell text that tells of them as they appear, and what its lines say.

    clock SECONDS        the time by the clock over there; also said where there is nothing else to say
    marker SECONDS NAME  a marker is there, and when it was left by that clock; `-` if nothing tells that
    all                  by now, all is told that there is; said each time that somebody has looked

A marker is told again each time when another appears, until somebody has moved it.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping

import attrs

from jpsi.plugin import line, word
from jpsi_engine.remote.ownership import UNSAFE, unsafe_function

_NANOSECONDS = 1_000_000_000
_SECONDS = re.compile(r"(\d{1,12})(?:\.(\d+))?\Z")
# What is told becomes the name of a file here: it leads to no other directory, whoever is over there.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}\Z")
#: Shell text for a directory that is entered: makes of names, one a line, lines about markers.
# stat(1) is in no standard: it is that of GNU, of Busybox, which tells whole seconds, or of BSD.
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
_WATCHING = r"""{
@UNSAFE@
( umask 077; mkdir -p @EVENTS@ )
cd @EVENTS@ || exit
@TIMES@
_jpsi_seen='' _jpsi_rounds=0
while :; do
    # each time: somebody may have removed it, and the next submission made another
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
# So many rounds pass between two words about the time.
_ROUNDS = 15
# How many of these words count.
_WORDS = 20


def watching_text(events: str, pause: int = 1) -> str:
    """Shell text that tells of the markers in a directory, looking each `pause` seconds, and has no end."""
    return _watching(events, line("sleep", str(pause)))


def looking_text(events: str) -> str:
    """Shell text that tells once of the markers in a directory."""
    return _watching(events, "exit 0")


def _watching(events: str, pause: str) -> str:
    # what others may have left there tells nothing
    unsafe = f'{unsafe_function(events)}\n[ -z "$({UNSAFE})" ] || exit'
    values = {
        "@UNSAFE@": unsafe,
        "@EVENTS@": word(events),
        "@ROUNDS@": str(_ROUNDS),
        "@PAUSE@": pause,
        "@TIMES@": TIMES,
    }
    return re.sub("@[A-Z]+@", lambda match: values[match[0]], _WATCHING)


def moving_text(root: str, names: Mapping[str, Iterable[str]]) -> str:
    """Shell text that puts markers into their jobs' folders, once somebody else has them; by job id.

    Those of a job that has no folder any more are removed.
    """
    return "\n".join(["{", f"cd {word(root)}/events || exit", *_moves(names), "}", ""])


def _moves(names: Mapping[str, Iterable[str]]) -> Iterator[str]:
    for job_id, markers in names.items():
        # with a slash: where the folder is removed meanwhile, none of them takes its place
        words, folder = line(*markers), word(f"../jobs/{job_id}/")
        yield f"mv -f {words} {folder} 2>/dev/null || [ -d {folder} ] || rm -f {words}"


@attrs.frozen(slots=True)
class FarMarker:
    """A marker that is there."""

    name: str
    #: Nanoseconds since 1970 by the clock over there; None if nothing tells.
    time_ns: int | None


@attrs.frozen(slots=True)
class FarClock:
    """The time by the clock over there."""

    time_ns: int


@attrs.frozen(slots=True)
class FarAll:
    """By now, all is told that there is."""


def read_line(text: str) -> FarMarker | FarClock | FarAll | None:
    """What a line says; None if it says nothing.

    >>> read_line("marker 1.5 a1.1.active")
    FarMarker(name='a1.1.active', time_ns=1500000000)
    """
    match text.split(" "):
        case ["marker", seconds, name] if _NAME.match(name):
            return FarMarker(name, _nanoseconds(seconds))
        case ["clock", seconds] if (time_ns := _nanoseconds(seconds)) is not None:
            return FarClock(time_ns)
        case ["all"]:
            return FarAll()
    return None


def _nanoseconds(text: str) -> int | None:
    # where date(1) knows no %N, something else stands after the dot
    found = _SECONDS.match(text) or _SECONDS.match(text.partition(".")[0])
    if found is None:
        return None
    return int(found[1]) * _NANOSECONDS + int(f"{found[2] or '':0<9.9}")


@attrs.define(slots=True, eq=False)
class ClockDifference:
    """By how much the clock here is ahead of the one over there, as far as one connection tells.

    What is told there is heard here later, by nobody knows how much: the least difference is the best guess,
    of the last ones, as clocks drift apart and are set right. Whatever that does, the order of times is kept.
    """

    _last: deque[int] = attrs.field(factory=lambda: deque(maxlen=_WORDS), init=False)
    #: The latest time over there that was asked for, and what it was here.
    _latest: tuple[int, int] | None = attrs.field(default=None, init=False)

    def heard(self, far_ns: int, here_ns: int) -> None:
        """The clock over there was said to show this, and the clock here shows that."""
        self._last.append(here_ns - far_ns)

    def here(self, far_ns: int | None, here_ns: int) -> int:
        """What the clock here showed when the one over there showed this; at the latest it was just now."""
        if far_ns is None or not self._last:
            return here_ns
        found = far_ns + min(self._last)
        if self._latest is None or far_ns >= self._latest[0]:
            found = found if self._latest is None else max(found, self._latest[1])
            self._latest = far_ns, min(found, here_ns)
        return min(found, here_ns)
