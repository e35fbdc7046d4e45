"""Draws the accounting of an execution as a timeline in SVG: a lane for each request, over time.

The web pages of requests, executions and accounting show it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ..model import ExecutionState, Interval
from .html import Html, element

_WIDTH, _LEFT, _LANE, _GAP, _FOOT = 900, 190, 22, 8, 24
_BAR = 14
_MAX_LENGTH = 24
_CLASSES = {ExecutionState.QUEUED: "waits", ExecutionState.CLAIMED: "over", ExecutionState.RUNNING: "runs"}


def timeline(intervals: Sequence[Interval], now: datetime) -> Html:
    """Return a lane for each request with a bar for each of its intervals; empty without intervals."""
    if not intervals:
        return Html("")
    lanes = list(dict.fromkeys(it.request for it in intervals))
    first = min(it.start for it in intervals)
    seconds = max((max(_end(it, now) for it in intervals) - first).total_seconds(), 1e-3)
    height = len(lanes) * (_LANE + _GAP) + _FOOT
    drawn: list[Html] = []
    for number, request in enumerate(lanes):
        top = number * (_LANE + _GAP)
        own = [it for it in intervals if it.request == request]
        drawn += [_label(own[-1], top), _lane(top)]
        drawn += [_bar(it, first, seconds, top, now) for it in own]
    drawn += _axis(first, seconds, height)
    title = element("title", "The requests for it, and the times when it waited and ran")
    return element("svg", title, *drawn, viewBox=f"0 0 {_WIDTH} {height}", role="img")


def _end(interval: Interval, now: datetime) -> datetime:
    return max(interval.start, now if interval.end is None else interval.end)


def _label(last: Interval, top: float) -> Html:
    user = last.user if len(last.user) <= _MAX_LENGTH else f"{last.user[: _MAX_LENGTH - 1]}…"
    return element("text", f"{user}, priority {last.priority:g}", x=0, y=top + _LANE / 2 + 4)


def _lane(top: float) -> Html:
    return element("rect", x=_LEFT, y=top, width=_WIDTH - _LEFT, height=_LANE, rx=3, class_="lane")


def _bar(interval: Interval, first: datetime, seconds: float, top: float, now: datetime) -> Html:
    scale = (_WIDTH - _LEFT) / seconds
    left = _LEFT + (interval.start - first).total_seconds() * scale
    duration_of = (_end(interval, now) - interval.start).total_seconds()
    title = f"{interval.state.value}, priority {interval.priority:g}, {duration(duration_of)}"
    return element(
        "rect",
        element("title", title),
        x=f"{left:.1f}",
        y=top + (_LANE - _BAR) / 2,
        # At least wide enough to be seen.
        width=f"{max(duration_of * scale, 1.5):.1f}",
        height=_BAR,
        rx=2,
        # Pale where the priority lets nothing run.
        fill_opacity=1 if interval.priority > 0 else 0.35,
        class_=_CLASSES.get(interval.state, "over"),
    )


def _axis(first: datetime, seconds: float, height: int) -> list[Html]:
    start = element(
        "text", first.astimezone().strftime("%Y-%m-%d %H:%M:%S"), x=_LEFT, y=height - 8, class_="axis"
    )
    end = element("text", f"+ {duration(seconds)}", x=_WIDTH, y=height - 8, text_anchor="end", class_="axis")
    return [start, end]


def duration(seconds: float) -> str:
    """Return a duration in its two largest units.

    >>> duration(0.42), duration(61), duration(3_660), duration(90_000)
    ('0.42 s', '1 min 1 s', '1 h 1 min', '1 d 1 h')
    """
    if seconds < 60:  # noqa: PLR2004  a minute
        return f"{seconds:.3g} s"
    for unit, size, smaller, small in (("d", 86400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1)):
        if seconds >= size:
            rest = int(seconds % size // small)
            return f"{int(seconds // size)} {unit}" + (f" {rest} {smaller}" if rest else "")
    return ""
