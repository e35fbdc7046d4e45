"""When somebody should hear that a batch system does not answer."""

from __future__ import annotations

from jpsi_engine.scheduler.poll_interval import Outage


def told(questions: list[tuple[float, bool]]) -> list[float | bool]:
    """What is told of questions, each at a time, answered or not."""
    silence, found = Outage(lapse=120.0), list[float | bool]()
    for time, is_answered in questions:
        told = silence.note_success() or None if is_answered else silence.note_outage(time, time)
        found += [] if told is None else [told]
    return found


def test_a_question_or_two_that_is_missed_is_not_told() -> None:
    assert told([(0, False), (30, False), (59, False), (70, True), (80, False), (130, False)]) == []


def test_a_silence_is_told_once_and_so_is_its_end() -> None:
    assert told([(0, False), (40, False), (62, False), (92, False), (122, True), (150, True)]) == [62, True]


def test_another_silence_is_told_again() -> None:
    assert told([(0, False), (60, False), (90, True), (100, False), (170, False)]) == [60, True, 70]


def test_a_question_that_takes_long_to_fail_counts_from_its_beginning() -> None:
    assert Outage(lapse=120.0).note_outage(10, 75) == 65


def test_nothing_is_said_of_a_time_in_which_nobody_asked() -> None:
    assert told([(0, False), (30, False), (3600, False), (3630, False), (3660, False)]) == [60]
