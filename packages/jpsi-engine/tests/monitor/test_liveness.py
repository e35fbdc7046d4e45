"""The counted time of a liveness check, which passes only while the remote side is connected."""

from __future__ import annotations

import pytest

from jpsi_engine.monitor.event_stream import Liveness


@pytest.fixture
def time() -> Liveness:
    """Return a liveness with a report each second from 100 to 120."""
    time = Liveness()
    for second in range(100, 121):
        time.note_report(second)
    return time


def test_no_time_counts_before_the_first_report() -> None:
    assert Liveness().counted_seconds(0, 1000) == 0


def test_time_with_reports_counts(time: Liveness) -> None:
    assert time.counted_seconds(105, 115) == 10
    assert time.counted_seconds(0, 110) == 10


def test_the_time_after_the_last_report_does_not_count_yet(time: Liveness) -> None:
    assert time.counted_seconds(115, 10_000) == 5
    assert time.counted_seconds(130, 10_000) == 0


def test_a_later_report_does_not_count(time: Liveness) -> None:
    assert time.counted_seconds(105, 119.5) == 14
    assert time.counted_seconds(0, 99) == 0


def test_a_long_gap_counts_as_a_short_one(time: Liveness) -> None:
    time.note_report(1000)
    time.note_report(1003)

    assert time.counted_seconds(115, 1003) == 5 + 10 + 3


def test_time_counts_though_each_report_takes_long(time: Liveness) -> None:
    for second in range(150, 1000, 30):
        time.note_report(second)

    assert time.counted_seconds(120, 1000) == 290


def test_time_after_a_disconnect_does_not_count_even_if_a_reconnect_follows_soon(time: Liveness) -> None:
    time.note_disconnect()
    time.note_report(125)
    time.note_report(126)

    assert time.counted_seconds(115, 126) == 5 + 1


def test_a_pause_between_two_reports_counts(time: Liveness) -> None:
    time.note_report(125)

    assert time.counted_seconds(115, 125) == 10
