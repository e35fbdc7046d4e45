from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from jpsi_records.model.entities import ExecutionState, Interval
from jpsi_records.web.timeline import timeline

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def interval(start: float, end: float | None, request: str = "r", **more: object) -> Interval:
    values = {
        "execution": "e",
        "user": "ca",
        "priority": 1,
        "state": ExecutionState.RUNNING,
        "start": BEGIN + timedelta(seconds=start),
        "end": None if end is None else BEGIN + timedelta(seconds=end),
        **more,
    }
    return Interval(request=request, **values)  # type: ignore[arg-type]  # each as it is


def bars(*intervals: Interval, now: float = 100) -> list[tuple[float, float]]:
    """Return the start and the width of each bar."""
    drawn = timeline(intervals, BEGIN + timedelta(seconds=now)).text
    found = re.findall(r'<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)" height="14"', drawn)
    return [(float(left), float(width)) for left, width in found]


def test_without_intervals_nothing_is_drawn() -> None:
    assert timeline([], BEGIN).text == ""


def test_bars_are_as_long_as_their_intervals() -> None:
    (first, second) = bars(interval(0, 25), interval(25, 100))

    assert first == (190, 177.5)
    assert second == (367.5, 532.5)


def test_an_open_interval_is_drawn_until_now() -> None:
    assert bars(interval(0, None), now=50) == [(190, 710)]
    assert bars(interval(0, 100), interval(50, None, "other"), now=75)[1][1] == 177.5


def test_a_short_interval_has_a_minimal_width() -> None:
    assert bars(interval(0, 0), interval(0, 1e6))[0][1] == 1.5
    assert bars(interval(0, 0)) == [(190, 1.5)]


def test_each_request_has_a_lane_with_labelled_bars() -> None:
    waits = interval(0, 90, "other", priority=0, state=ExecutionState.QUEUED, user="<u>")

    drawn = timeline([interval(0, 100), waits], BEGIN).text

    assert drawn.count('class="lane"') == 2
    assert "<title>queued, priority 0, 1 min 30 s</title>" in drawn
    assert 'fill-opacity="0.35"' in drawn
    assert "&lt;u&gt;, priority 0" in drawn
