"""When the batch system is asked: soon after a submission, and hardly while markers come."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from jpsi.engine.poller import QUIET_SECONDS, Poller


def poller(jitter: float = 0.0) -> Poller:
    return Poller(2.0, 30.0, lambda: jitter)


def asked_until(poller: Poller, end: float) -> Iterator[float]:
    """When a question is asked by somebody who always asks when it is due."""
    while (due := poller.due()) < end:
        yield due
        poller.asked(due)


def test_nothing_is_due_before_anybody_wants_to_know() -> None:
    assert poller().due() == float("inf")


def test_first_question_comes_soon_after_a_submission() -> None:
    asking = poller()

    asking.wanted(100.0)

    assert asking.due() == 102.0


def test_intervals_grow_to_the_longest() -> None:
    asking = poller()
    asking.wanted(0.0)

    times = list(asked_until(asking, 300.0))

    intervals = [round(later - earlier, 6) for earlier, later in itertools.pairwise(times)]
    assert intervals == sorted(intervals)
    assert intervals[0] == 2.0
    assert intervals[-1] == 30.0


def test_submission_makes_a_question_due_soon_again() -> None:
    asking = poller()
    asking.wanted(0.0)
    list(asked_until(asking, 200.0))

    asking.wanted(200.0)

    assert asking.due() <= 202.0


@given(st.lists(st.floats(0.01, 1.9), min_size=1, max_size=200))
def test_many_submissions_neither_hurry_nor_put_off_the_question(pauses: list[float]) -> None:
    asking, now, times = poller(), 0.0, []
    for pause in pauses:
        asking.wanted(now)
        now += pause
        while asking.due() <= now:
            times.append(asking.due())
            asking.asked(asking.due())

    gaps = [later - earlier for earlier, later in zip([0.0, *times], [*times, now], strict=True)]
    assert all(gap <= 2.0 + 1.9 for gap in gaps)
    assert all(gap >= 2.0 - 1e-9 for gap in gaps[:-1])


def test_while_markers_arrive_the_queue_is_hardly_asked() -> None:
    asking = poller()
    asking.wanted(0.0)
    times: list[float] = []
    for tenth in range(600):
        now = tenth / 10
        asking.marked(now)
        asking.wanted(now)
        if asking.due() <= now:
            times.append(now)
            asking.asked(now)

    assert 5 <= len(times) <= 60 / QUIET_SECONDS + 1


def test_jitter_keeps_programs_apart() -> None:
    early, late = poller(0.0), poller(1.0)
    for asking in (early, late):
        asking.wanted(0.0)
        asking.asked(2.0)

    assert early.due() < late.due() <= 2.0 + 2.0 * 1.1


def test_what_markers_cannot_tell_is_asked_soon_all_the_same() -> None:
    asking = poller()
    asking.wanted(0.0)
    asking.asked(2.0)
    asking.marked(3.0)
    assert asking.due() == 2.0 + QUIET_SECONDS

    asking.wanted(3.0, is_urgent=True)

    assert asking.due() == 4.0
