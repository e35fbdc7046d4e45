"""The line before an executor: in order, never for ever, and each may leave it."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable

import pytest

from gate import PATIENCE
from jpsi.model.errors import SubmitException
from jpsi_engine.host.submit_queue import QuotaReached, SubmissionCancelled, SubmitQueue
from jpsi_testing.fake import FakeClock

FULL = QuotaReached(2.0, "it is full")
SILENCE = SubmitException("no answer")


class Line:
    """An entrance at which no time passes but by looking, and room that a test makes."""

    def __init__(self, events: dict[int, Callable[[], object]] | None = None) -> None:
        self.clock = FakeClock(0)
        self.entrance = SubmitQueue(self.clock, self._wait)
        self.looks = 0
        self.room_after = 3
        self.events = events or {}

    def _wait(self, _: threading.Condition, seconds: float) -> None:
        self.clock.advance(seconds)
        self.events.get(self.looks, lambda: None)()

    def look(self) -> str | QuotaReached:
        self.looks += 1
        return "room" if self.looks > self.room_after else FULL


def test_one_looks_until_there_is_room() -> None:
    line = Line()

    assert line.entrance.enter(["a"], line.look) == "room"
    assert (line.looks, line.clock()) == (4, 6.0)


def test_who_is_given_up_waits_no_more() -> None:
    line = Line()
    line.events = {2: lambda: line.entrance.give_up(["b", "x"])}

    with pytest.raises(SubmissionCancelled) as caught:
        line.entrance.enter(["a", "b"], line.look)

    assert caught.value.job_ids == {"b"}
    assert line.looks == 2


def test_what_is_given_up_now_may_wait_later() -> None:
    line = Line()
    line.entrance.give_up(["a"])

    assert line.entrance.enter(["a"], line.look) == "room"


def test_nobody_waits_at_a_closed_entrance() -> None:
    line = Line()
    line.events = {2: lambda: line.entrance.give_up(None)}

    for _ in range(2):
        with pytest.raises(SubmissionCancelled) as caught:
            line.entrance.enter(["a", "b"], line.look)
        assert caught.value.job_ids == {"a", "b"}

    assert line.looks == 3


def test_who_finds_room_at_once_enters_at_a_closed_entrance() -> None:
    line = Line()
    line.room_after = 0
    line.entrance.give_up(None)

    assert line.entrance.enter(["a"], line.look) == "room"


def test_who_cannot_look_is_told_so() -> None:
    def fail() -> QuotaReached:
        raise SILENCE

    with pytest.raises(SubmitException, match="no answer"):
        Line().entrance.enter(["a"], fail)


PASSING = SubmitException("the list changed", transient=True)


@pytest.mark.parametrize("failures", [1, 3])
def test_a_check_that_fails_for_a_reason_that_may_pass_is_made_again(failures: int) -> None:
    line = Line()
    line.room_after = 0
    left = [PASSING] * failures

    def look() -> str | QuotaReached:
        if left:
            raise left.pop()
        return line.look()

    assert line.entrance.enter(["a"], look) == "room"
    assert line.clock() == failures


def test_a_check_that_keeps_failing_is_an_error_after_a_while() -> None:
    line = Line()

    def look() -> str | QuotaReached:
        line.looks += 1
        raise PASSING

    with pytest.raises(SubmitException, match="the list changed"):
        line.entrance.enter(["a"], look)
    assert (line.looks, line.clock()) == (4, 3.0)


def test_who_waits_goes_on_though_it_cannot_be_looked_for_a_while() -> None:
    line = Line()

    def look() -> str | QuotaReached:
        found = line.look()
        if line.looks == 2:
            raise SILENCE
        return found

    assert line.entrance.enter(["a"], look) == "room"
    assert line.clock() == 2.0 + 30.0 + 2.0


def test_an_interrupt_leaves_nobody_in_the_line() -> None:
    line = Line()

    def interrupt() -> None:
        raise KeyboardInterrupt

    line.events = {1: interrupt}
    with pytest.raises(KeyboardInterrupt):
        line.entrance.enter(["a"], line.look)

    assert line.entrance.enter(["b"], line.look) == "room"


def test_who_comes_first_enters_first() -> None:
    entrance = SubmitQueue(FakeClock(0))
    entered: list[str] = []
    is_standing, has_room = threading.Event(), threading.Event()

    def first() -> str | QuotaReached:
        is_standing.set()
        return "room" if has_room.is_set() else QuotaReached(PATIENCE, "it is full")

    def work(name: str, look: Callable[[], str | QuotaReached]) -> threading.Thread:
        thread = threading.Thread(target=lambda: entered.append(name) if entrance.enter([name], look) else 0)
        thread.start()
        return thread

    threads = [work("a", first)]
    assert is_standing.wait(PATIENCE)
    threads.append(work("b", lambda: "room"))
    while len(entrance._line) < 2:
        threads[1].join(0.001)
    assert entered == []
    has_room.set()
    entrance.look_again()
    for thread in threads:
        thread.join(PATIENCE)

    assert entered == ["a", "b"]


def test_room_that_came_while_one_looked_is_not_waited_for() -> None:
    line = Line()

    def look() -> str | QuotaReached:
        line.entrance.look_again()
        return line.look()

    assert line.entrance.enter(["a"], look) == "room"
    assert line.clock() == 0


def test_nobody_stands_before_a_child_in_the_line() -> None:
    entrance, ready, go_on = SubmitQueue(FakeClock(0)), threading.Event(), threading.Event()

    def first() -> str | QuotaReached:
        ready.set()
        return "room" if go_on.is_set() else QuotaReached(PATIENCE, "it is full")

    thread = threading.Thread(target=entrance.enter, args=[["a"], first])
    thread.start()
    assert ready.wait(PATIENCE)

    pid = os.fork()
    if pid == 0:
        os._exit(0 if entrance.enter(["b"], lambda: "room") == "room" else 1)
    go_on.set()
    entrance.look_again()
    thread.join(PATIENCE)

    assert os.waitpid(pid, 0)[1] == 0


def test_who_waits_is_told_why_quietly_at_first_and_then_aloud_but_rarely(
    caplog: pytest.LogCaptureFixture,
) -> None:
    line = Line()
    caplog.set_level(logging.INFO)

    for _ in range(20):
        line.room_after = line.looks + 20
        line.entrance.enter(["a"], line.look)

    told = [(it.levelname, it.getMessage()) for it in caplog.records]
    quiet, aloud = (
        "jobs wait to be submitted: it is full",
        "jobs have waited 30 s to be submitted: it is full",
    )
    assert told[:2] == [("INFO", quiet), ("WARNING", aloud)]
    assert [told.count(it) for it in told[:2]] == [20, 2]
