"""The times at which an outage of the batch system and its end are reported."""

from __future__ import annotations

from jpsi_engine.scheduler.poll_interval import Outage


def reports(polls: list[tuple[float, bool]]) -> list[float | bool]:
    """Return the reports on polls, each of which has a time and succeeds or not."""
    outage, found = Outage(lapse=120.0), list[float | bool]()
    for time, is_answered in polls:
        report = outage.note_success() or None if is_answered else outage.note_outage(time, time)
        found += [] if report is None else [report]
    return found


def test_one_or_two_failed_polls_are_not_reported() -> None:
    assert reports([(0, False), (30, False), (59, False), (70, True), (80, False), (130, False)]) == []


def test_an_outage_and_its_end_are_each_reported_once() -> None:
    assert reports([(0, False), (40, False), (62, False), (92, False), (122, True), (150, True)]) == [
        62,
        True,
    ]


def test_another_outage_is_reported_again() -> None:
    assert reports([(0, False), (60, False), (90, True), (100, False), (170, False)]) == [60, True, 70]


def test_a_poll_that_fails_slowly_counts_from_its_start() -> None:
    assert Outage(lapse=120.0).note_outage(10, 75) == 65


def test_a_time_without_polls_is_no_outage() -> None:
    assert reports([(0, False), (30, False), (3600, False), (3630, False), (3660, False)]) == [60]
