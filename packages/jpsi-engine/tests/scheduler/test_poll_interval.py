"""When the batch system is asked: soon after a submission, and hardly while markers come."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jpsi_engine.scheduler.poll_interval import QUIET_SECONDS, PollInterval


def poll_interval(jitter: float = 0.0) -> PollInterval:
    return PollInterval(2.0, 30.0, lambda: jitter)


def asked_until(poll_interval: PollInterval, end: float) -> Iterator[float]:
    """When a question is asked by somebody who always asks when it is due."""
    while (due := poll_interval.next_poll_time()) < end:
        yield due
        poll_interval.note_poll(due, due)


def test_nothing_is_due_before_anybody_wants_to_know() -> None:
    assert poll_interval().next_poll_time() == float("inf")


def test_first_question_comes_soon_after_a_submission() -> None:
    asking = poll_interval()

    asking.request_poll(100.0)

    assert asking.next_poll_time() == 102.0


def test_intervals_grow_to_the_longest() -> None:
    asking = poll_interval()
    asking.request_poll(0.0)

    times = list(asked_until(asking, 300.0))

    intervals = [round(later - earlier, 6) for earlier, later in itertools.pairwise(times)]
    assert intervals == sorted(intervals)
    assert intervals[0] == 2.0
    assert intervals[-1] == 30.0


def polls_while_all_wait(poll_interval: PollInterval, end: float) -> Iterator[float]:
    """Yield the times of polls each of which shows that all jobs wait."""
    for polled in asked_until(poll_interval, end):
        yield polled
        poll_interval.note_jobs(polled, all_wait=True)


def test_while_all_jobs_wait_there_are_at_most_twelve_polls_in_an_hour() -> None:
    interval = poll_interval()
    interval.request_poll(0.0)

    times = list(polls_while_all_wait(interval, 7200.0))

    assert len([it for it in times if it >= 3600.0]) == 12
    assert times[0] == 2.0


def test_a_job_that_does_not_wait_any_more_brings_the_next_poll_forward() -> None:
    interval = poll_interval()
    interval.request_poll(0.0)
    list(polls_while_all_wait(interval, 3600.0))
    last = interval.next_poll_time()
    interval.note_poll(last, last)
    assert interval.next_poll_time() == last + 300.0

    interval.note_jobs(last, all_wait=False)

    assert interval.next_poll_time() == pytest.approx(last + 33.0)


def test_a_caller_with_a_deadline_brings_the_next_poll_forward_and_keeps_polls_frequent_until_then() -> None:
    interval = poll_interval()
    interval.request_poll(0.0)
    last = list(polls_while_all_wait(interval, 3600.0))[-1]

    interval.note_deadline(last + 100.0, 600.0)

    times = list(polls_while_all_wait(interval, last + 700.0))
    assert times[0] == last + 100.0
    assert max(later - earlier for earlier, later in itertools.pairwise(times)) <= 33.0
    after = list(polls_while_all_wait(interval, last + 7200.0))
    assert after[-1] - after[-2] == 300.0


def test_before_the_first_poll_a_deadline_changes_nothing() -> None:
    interval = poll_interval()

    interval.note_deadline(0.0, 60.0)

    assert interval.next_poll_time() == float("inf")


def test_an_urgent_poll_comes_sooner_than_one_after_a_submission() -> None:
    interval = poll_interval()
    interval.request_poll(0.0)
    list(asked_until(interval, 100.0))

    interval.request_poll(100.0, is_urgent=True)

    assert interval.next_poll_time() == 100.5


def test_a_question_that_keeps_the_program_busy_is_followed_by_a_long_pause() -> None:
    asking = poll_interval()
    asking.request_poll(0.0)
    asking.note_poll(2.0, 2.5)

    asking.note_cost(0.5)
    asking.request_poll(3.0, is_urgent=True)

    assert asking.next_poll_time() == 12.5


def test_no_pause_is_longer_than_the_longest() -> None:
    asking = poll_interval()
    asking.request_poll(0.0)
    asking.note_poll(2.0, 2.5)

    asking.note_cost(7.0)

    assert asking.next_poll_time() == 32.5


def test_questions_about_ever_more_jobs_take_a_steady_part_of_the_time() -> None:
    """While jobs are submitted, each question is about all that there are by then."""
    asking, spent, now = poll_interval(), 0.0, 0.0
    while now < 400:
        asking.request_poll(now)
        if asking.next_poll_time() <= now:
            asking.note_poll(now, now)
            asking.note_cost(0.003 * now)
            spent += 0.003 * now
        now += 0.125

    assert 0.03 < spent / now < 0.06


def test_submission_makes_a_question_due_soon_again() -> None:
    asking = poll_interval()
    asking.request_poll(0.0)
    list(asked_until(asking, 200.0))

    asking.request_poll(200.0)

    assert asking.next_poll_time() <= 202.0


@given(st.lists(st.floats(0.01, 1.9), min_size=1, max_size=200))
def test_many_submissions_neither_hurry_nor_put_off_the_question(pauses: list[float]) -> None:
    asking, now, times = poll_interval(), 0.0, []
    for pause in pauses:
        asking.request_poll(now)
        now += pause
        while asking.next_poll_time() <= now:
            times.append(asking.next_poll_time())
            asking.note_poll(asking.next_poll_time(), asking.next_poll_time())

    gaps = [later - earlier for earlier, later in zip([0.0, *times], [*times, now], strict=True)]
    assert all(gap <= 2.0 + 1.9 for gap in gaps)
    assert all(gap >= 2.0 - 1e-9 for gap in gaps[:-1])


@pytest.mark.clause("python-polling-each")
def test_while_markers_arrive_the_queue_is_hardly_asked() -> None:
    asking = poll_interval()
    asking.request_poll(0.0)
    times: list[float] = []
    for tenth in range(600):
        now = tenth / 10
        asking.note_marker(now)
        asking.request_poll(now)
        if asking.next_poll_time() <= now:
            times.append(now)
            asking.note_poll(now, now)

    assert 5 <= len(times) <= 60 / QUIET_SECONDS + 1


def test_jitter_keeps_programs_apart() -> None:
    early, late = poll_interval(0.0), poll_interval(1.0)
    for asking in (early, late):
        asking.request_poll(0.0)
        asking.note_poll(2.0, 2.0)

    assert early.next_poll_time() < late.next_poll_time() <= 2.0 + 2.0 * 1.1


def test_answer_of_another_process_does_if_it_was_begun_after_what_is_new() -> None:
    asking = poll_interval()
    asking.request_poll(100.0)
    asking.request_poll(101.5)

    assert not asking.can_replace_poll(99.9, 101.0, 102.0)
    assert asking.can_replace_poll(100.0, 101.0, 102.0)


def test_answer_of_another_process_does_once_and_not_when_it_is_old() -> None:
    asking = poll_interval()
    asking.request_poll(0.0)
    asking.note_poll(10.0, 11.0)

    assert not asking.can_replace_poll(10.0, 11.0, 12.9)
    assert asking.can_replace_poll(10.1, 11.0, 12.9)
    assert not asking.can_replace_poll(10.1, 11.0, 11.0 + 2 * 1.6), "the second interval is over"


def test_what_came_up_after_a_question_was_begun_is_asked_in_the_shortest_interval() -> None:
    asking = poll_interval()
    asking.request_poll(0.0)
    list(asked_until(asking, 300.0))
    asking.request_poll(301.0)
    asking.request_poll(302.5)

    asking.note_poll(302.0, 302.2)

    assert asking.next_poll_time() == 304.2
    assert asking.can_replace_poll(302.1, 302.2, 304.0)


def test_older_answer_that_comes_later_changes_nothing_back() -> None:
    asking = poll_interval()
    asking.note_poll(5.0, 6.0)
    asking.note_poll(4.0, 7.0)

    assert not asking.can_replace_poll(5.0, 6.0, 7.0)


def test_somebody_who_asks_is_waited_for_but_not_longer_than_an_interval() -> None:
    asking = poll_interval()
    asking.request_poll(0.0)

    assert asking.is_busy(2.0)
    assert 2.0 < asking.next_poll_time() < 2.5
    assert asking.is_busy(3.9)
    assert not asking.is_busy(4.0)


def test_nobody_asks_when_somebody_was_answered_just_now() -> None:
    asking = poll_interval()
    asking.request_poll(0.0)

    assert asking.is_too_soon(2.0, 1.0)
    assert asking.next_poll_time() == 3.0
    assert not asking.is_too_soon(3.0, 1.0)


def test_question_is_not_put_off_for_ever() -> None:
    asking = poll_interval()
    asking.request_poll(0.0)

    put_off = [now for now in range(2, 20) if asking.is_too_soon(now, now)]

    assert put_off == [2, 3, 4, 5, 6, 7]


def test_what_markers_cannot_tell_is_asked_soon_all_the_same() -> None:
    asking = poll_interval()
    asking.request_poll(0.0)
    asking.note_poll(2.0, 2.0)
    asking.note_marker(3.0)
    assert asking.next_poll_time() == 2.0 + QUIET_SECONDS

    asking.request_poll(3.0, is_urgent=True)

    assert asking.next_poll_time() == 4.0
