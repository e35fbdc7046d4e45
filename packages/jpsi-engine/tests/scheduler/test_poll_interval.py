"""The times of polls: soon after a submission, rarely while markers arrive."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jpsi_engine.scheduler.poll_interval import QUIET_SECONDS, PollInterval


def poll_interval(jitter: float = 0.0) -> PollInterval:
    return PollInterval(2.0, 30.0, 300.0, lambda: jitter)


def polls_until(poll_interval: PollInterval, end: float) -> Iterator[float]:
    """Yield the times of polls of a client that polls as soon as a poll is due."""
    while (due := poll_interval.next_poll_time()) < end:
        yield due
        poll_interval.note_poll(due, due)


def test_no_poll_is_due_before_the_first_request() -> None:
    assert poll_interval().next_poll_time() == float("inf")


def test_first_poll_follows_soon_after_a_submission() -> None:
    interval = poll_interval()

    interval.request_poll(100.0)

    assert interval.next_poll_time() == 102.0


def test_intervals_grow_to_the_longest() -> None:
    interval = poll_interval()
    interval.request_poll(0.0)

    times = list(polls_until(interval, 300.0))

    intervals = [round(later - earlier, 6) for earlier, later in itertools.pairwise(times)]
    assert intervals == sorted(intervals)
    assert intervals[0] == 2.0
    assert intervals[-1] == 30.0


def polls_while_all_wait(poll_interval: PollInterval, end: float, jobs: int = 1) -> Iterator[float]:
    """Yield the times of polls each of which shows that all jobs wait."""
    while (due := poll_interval.next_poll_time()) < end:
        yield due
        poll_interval.note_poll(due, due)
        poll_interval.note_jobs(due, waiting=jobs)


def test_while_all_jobs_wait_there_are_at_most_twelve_polls_in_an_hour() -> None:
    interval = poll_interval()
    interval.request_poll(0.0)

    times = list(polls_while_all_wait(interval, 7200.0))

    assert len([it for it in times if it >= 3600.0]) == 12
    assert times[0] == 2.0


def test_ten_thousand_jobs_that_wait_are_polled_twelve_times_in_the_first_hour() -> None:
    interval = poll_interval()
    interval.request_poll(0.0)

    times = list(polls_while_all_wait(interval, 3600.0, 10_000))

    assert times == [2.0 + 300.0 * number for number in range(12)]


def test_a_thousand_jobs_that_wait_are_polled_as_often_as_a_few() -> None:
    few, many = poll_interval(), poll_interval()
    few.request_poll(0.0)
    many.request_poll(0.0)

    assert list(polls_while_all_wait(few, 3600.0)) == list(polls_while_all_wait(many, 3600.0, 1000))


@pytest.mark.parametrize("is_urgent", [False, True])
def test_a_reason_that_came_up_during_a_poll_of_very_many_jobs_is_not_put_off(is_urgent: bool) -> None:
    interval = poll_interval()
    interval.request_poll(0.0)
    interval.note_poll(2.0, 4.0)
    interval.note_jobs(4.0, waiting=10_000)

    interval.request_poll(305.0, is_urgent=is_urgent)
    interval.note_poll(304.0, 306.0)
    interval.note_jobs(306.0, waiting=10_000)

    assert interval.next_poll_time() == 308.0


def test_a_deadline_keeps_polls_of_very_many_jobs_frequent() -> None:
    interval = poll_interval()
    interval.request_poll(0.0)
    interval.note_deadline(0.0, 600.0)

    times = list(polls_while_all_wait(interval, 600.0, 10_000))

    assert max(later - earlier for earlier, later in itertools.pairwise(times)) <= 33.0


def test_while_all_jobs_wait_a_poll_follows_after_about_a_tenth_of_the_time() -> None:
    interval = poll_interval()
    interval.request_poll(0.0)

    times = list(polls_while_all_wait(interval, 2400.0))

    assert all(later - earlier <= 33.0 + later / 10 for earlier, later in itertools.pairwise(times))


def test_a_job_that_has_left_the_wait_advances_the_next_poll() -> None:
    interval = poll_interval()
    interval.request_poll(0.0)
    list(polls_while_all_wait(interval, 3600.0))
    last = interval.next_poll_time()
    interval.note_poll(last, last)
    assert interval.next_poll_time() == last + 300.0

    interval.note_jobs(last, waiting=0)

    assert interval.next_poll_time() == pytest.approx(last + 33.0)


def test_a_deadline_advances_the_next_poll_and_keeps_polls_frequent_until_then() -> None:
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


def test_an_urgent_poll_is_sooner_than_one_after_a_submission() -> None:
    interval = poll_interval()
    interval.request_poll(0.0)
    list(polls_until(interval, 100.0))

    interval.request_poll(100.0, is_urgent=True)

    assert interval.next_poll_time() == 100.5


def test_an_expensive_poll_is_followed_by_a_long_pause() -> None:
    interval = poll_interval()
    interval.request_poll(0.0)
    interval.note_poll(2.0, 2.5)

    interval.note_cost(0.5)
    interval.request_poll(3.0, is_urgent=True)

    assert interval.next_poll_time() == 12.5


def test_no_pause_is_longer_than_the_longest() -> None:
    interval = poll_interval()
    interval.request_poll(0.0)
    interval.note_poll(2.0, 2.5)

    interval.note_cost(7.0)

    assert interval.next_poll_time() == 32.5


def test_polls_of_a_growing_number_of_jobs_take_a_constant_share_of_the_time() -> None:
    """During submissions each poll is about all jobs that were submitted by then."""
    interval, spent, now = poll_interval(), 0.0, 0.0
    while now < 400:
        interval.request_poll(now)
        if interval.next_poll_time() <= now:
            interval.note_poll(now, now)
            interval.note_cost(0.003 * now)
            spent += 0.003 * now
        now += 0.125

    assert 0.03 < spent / now < 0.06


def test_a_submission_makes_a_poll_due_soon_again() -> None:
    interval = poll_interval()
    interval.request_poll(0.0)
    list(polls_until(interval, 200.0))

    interval.request_poll(200.0)

    assert interval.next_poll_time() <= 202.0


@given(st.lists(st.floats(0.01, 1.9), min_size=1, max_size=200))
def test_many_submissions_neither_advance_nor_delay_the_poll(pauses: list[float]) -> None:
    interval, now, times = poll_interval(), 0.0, []
    for pause in pauses:
        interval.request_poll(now)
        now += pause
        while interval.next_poll_time() <= now:
            times.append(interval.next_poll_time())
            interval.note_poll(interval.next_poll_time(), interval.next_poll_time())

    gaps = [later - earlier for earlier, later in zip([0.0, *times], [*times, now], strict=True)]
    assert all(gap <= 2.0 + 1.9 for gap in gaps)
    assert all(gap >= 2.0 - 1e-9 for gap in gaps[:-1])


@pytest.mark.clause("python-polling-each")
def test_polls_are_rare_while_markers_arrive() -> None:
    interval = poll_interval()
    interval.request_poll(0.0)
    times: list[float] = []
    for tenth in range(600):
        now = tenth / 10
        interval.note_marker(now)
        interval.request_poll(now)
        if interval.next_poll_time() <= now:
            times.append(now)
            interval.note_poll(now, now)

    assert 5 <= len(times) <= 60 / QUIET_SECONDS + 1


def test_jitter_separates_the_polls_of_programs() -> None:
    early, late = poll_interval(0.0), poll_interval(1.0)
    for interval in (early, late):
        interval.request_poll(0.0)
        interval.note_poll(2.0, 2.0)

    assert early.next_poll_time() < late.next_poll_time() <= 2.0 + 2.0 * 1.1


def test_a_snapshot_of_another_process_begun_after_the_request_replaces_a_poll() -> None:
    interval = poll_interval()
    interval.request_poll(100.0)
    interval.request_poll(101.5)

    assert not interval.can_replace_poll(99.9, 101.0, 102.0)
    assert interval.can_replace_poll(100.0, 101.0, 102.0)


def test_a_snapshot_of_another_process_replaces_one_poll_and_only_while_it_is_fresh() -> None:
    interval = poll_interval()
    interval.request_poll(0.0)
    interval.note_poll(10.0, 11.0)

    assert not interval.can_replace_poll(10.0, 11.0, 12.9)
    assert interval.can_replace_poll(10.1, 11.0, 12.9)
    assert not interval.can_replace_poll(10.1, 11.0, 11.0 + 2 * 1.6), "the second interval is over"


def test_a_request_during_a_poll_is_polled_after_the_shortest_interval() -> None:
    interval = poll_interval()
    interval.request_poll(0.0)
    list(polls_until(interval, 300.0))
    interval.request_poll(301.0)
    interval.request_poll(302.5)

    interval.note_poll(302.0, 302.2)

    assert interval.next_poll_time() == 304.2
    assert interval.can_replace_poll(302.1, 302.2, 304.0)


def test_an_older_snapshot_that_arrives_later_changes_nothing() -> None:
    interval = poll_interval()
    interval.note_poll(5.0, 6.0)
    interval.note_poll(4.0, 7.0)

    assert not interval.can_replace_poll(5.0, 6.0, 7.0)


def test_a_client_waits_at_most_one_interval_for_a_poll_of_another() -> None:
    interval = poll_interval()
    interval.request_poll(0.0)

    assert interval.is_busy(2.0)
    assert 2.0 < interval.next_poll_time() < 2.5
    assert interval.is_busy(3.9)
    assert not interval.is_busy(4.0)


def test_no_client_polls_right_after_a_poll_of_another() -> None:
    interval = poll_interval()
    interval.request_poll(0.0)

    assert interval.is_too_soon(2.0, 1.0)
    assert interval.next_poll_time() == 3.0
    assert not interval.is_too_soon(3.0, 1.0)


def test_a_poll_is_not_delayed_forever() -> None:
    interval = poll_interval()
    interval.request_poll(0.0)

    delayed = [now for now in range(2, 20) if interval.is_too_soon(now, now)]

    assert delayed == [2, 3, 4, 5, 6, 7]


def test_an_urgent_request_is_polled_soon_though_markers_arrive() -> None:
    interval = poll_interval()
    interval.request_poll(0.0)
    interval.note_poll(2.0, 2.0)
    interval.note_marker(3.0)
    assert interval.next_poll_time() == 2.0 + QUIET_SECONDS

    interval.request_poll(3.0, is_urgent=True)

    assert interval.next_poll_time() == 4.0


def test_an_end_that_the_queue_does_not_tell_yet_is_polled_soon_although_markers_came() -> None:
    interval = poll_interval()
    interval.request_poll(0.0)
    interval.note_marker(1.0)
    interval.note_poll(2.0, 2.0)
    assert interval.next_poll_time() == 2.0 + QUIET_SECONDS

    interval.note_unsettled(is_soon=True)

    assert interval.next_poll_time() == 3.0
    interval.note_poll(3.0, 3.0)
    interval.note_unsettled(is_soon=True)
    assert interval.next_poll_time() == pytest.approx(3.0 + 2.0 * 1.6)
