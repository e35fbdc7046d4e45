"""Tests of the submit queue: first come, first served, no endless wait, and submissions can be cancelled."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable

import pytest

from jpsi.model.errors import SubmitException
from jpsi_engine.scheduler.submit_queue import QuotaReached, SubmissionCancelled, SubmitQueue
from jpsi_testing.fake import FakeClock
from manual_executor import PATIENCE

FULL = QuotaReached(2.0, "it is full")
NO_ANSWER = SubmitException("no answer")


class BenchQueue:
    """A queue whose clock advances only by its waits, with a quota that `room_after` checks find reached."""

    def __init__(self, events: dict[int, Callable[[], object]] | None = None) -> None:
        self.clock = FakeClock(0)
        self.queue = SubmitQueue(self.clock, self._wait)
        self.checks = 0
        self.room_after = 3
        self.events = events or {}

    def _wait(self, _: threading.Condition, seconds: float) -> None:
        self.clock.advance(seconds)
        self.events.get(self.checks, lambda: None)()

    def check(self) -> str | QuotaReached:
        self.checks += 1
        return "room" if self.checks > self.room_after else FULL


def test_checks_are_repeated_until_the_quota_admits() -> None:
    bench = BenchQueue()

    assert bench.queue.acquire(["a"], bench.check) == "room"
    assert (bench.checks, bench.clock()) == (4, 6.0)


def test_a_cancelled_submission_stops_waiting() -> None:
    bench = BenchQueue()
    bench.events = {2: lambda: bench.queue.give_up(["b", "x"])}

    with pytest.raises(SubmissionCancelled) as caught:
        bench.queue.acquire(["a", "b"], bench.check)

    assert caught.value.job_ids == {"b"}
    assert bench.checks == 2


def test_a_job_may_wait_again_after_a_cancel() -> None:
    bench = BenchQueue()
    bench.queue.give_up(["a"])

    assert bench.queue.acquire(["a"], bench.check) == "room"


def test_a_closed_queue_cancels_every_submission_that_would_wait() -> None:
    bench = BenchQueue()
    bench.events = {2: lambda: bench.queue.give_up(None)}

    for _ in range(2):
        with pytest.raises(SubmissionCancelled) as caught:
            bench.queue.acquire(["a", "b"], bench.check)
        assert caught.value.job_ids == {"a", "b"}

    assert bench.checks == 3


def test_a_closed_queue_admits_a_submission_whose_first_check_succeeds() -> None:
    bench = BenchQueue()
    bench.room_after = 0
    bench.queue.give_up(None)

    assert bench.queue.acquire(["a"], bench.check) == "room"


def test_an_error_of_the_first_check_is_raised() -> None:
    def fail() -> QuotaReached:
        raise NO_ANSWER

    with pytest.raises(SubmitException, match="no answer"):
        BenchQueue().queue.acquire(["a"], fail)


TRANSIENT = SubmitException("the list changed", transient=True)


@pytest.mark.parametrize("failures", [1, 3])
def test_a_first_check_that_fails_transiently_is_retried(failures: int) -> None:
    bench = BenchQueue()
    bench.room_after = 0
    errors = [TRANSIENT] * failures

    def check() -> str | QuotaReached:
        if errors:
            raise errors.pop()
        return bench.check()

    assert bench.queue.acquire(["a"], check) == "room"
    assert bench.clock() == failures


def test_a_check_that_fails_four_times_raises_its_error() -> None:
    bench = BenchQueue()

    def check() -> str | QuotaReached:
        bench.checks += 1
        raise TRANSIENT

    with pytest.raises(SubmitException, match="the list changed"):
        bench.queue.acquire(["a"], check)
    assert (bench.checks, bench.clock()) == (4, 3.0)


def test_a_waiting_submission_survives_a_failed_check() -> None:
    bench = BenchQueue()

    def check() -> str | QuotaReached:
        found = bench.check()
        if bench.checks == 2:
            raise NO_ANSWER
        return found

    assert bench.queue.acquire(["a"], check) == "room"
    assert bench.clock() == 2.0 + 30.0 + 2.0


def test_an_interrupt_removes_the_submission_from_the_queue() -> None:
    bench = BenchQueue()

    def interrupt() -> None:
        raise KeyboardInterrupt

    bench.events = {1: interrupt}
    with pytest.raises(KeyboardInterrupt):
        bench.queue.acquire(["a"], bench.check)

    assert bench.queue.acquire(["b"], bench.check) == "room"


def test_submissions_are_admitted_in_their_order() -> None:
    queue = SubmitQueue(FakeClock(0))
    admitted: list[str] = []
    is_first_checked, has_room = threading.Event(), threading.Event()

    def first() -> str | QuotaReached:
        is_first_checked.set()
        return "room" if has_room.is_set() else QuotaReached(PATIENCE, "it is full")

    def work(name: str, check: Callable[[], str | QuotaReached]) -> threading.Thread:
        thread = threading.Thread(target=lambda: admitted.append(name) if queue.acquire([name], check) else 0)
        thread.start()
        return thread

    threads = [work("a", first)]
    assert is_first_checked.wait(PATIENCE)
    threads.append(work("b", lambda: "room"))
    while len(queue._entries) < 2:
        threads[1].join(0.001)
    assert admitted == []
    has_room.set()
    queue.recheck()
    for thread in threads:
        thread.join(PATIENCE)

    assert admitted == ["a", "b"]


def test_a_recheck_during_a_check_is_not_lost() -> None:
    bench = BenchQueue()

    def check() -> str | QuotaReached:
        bench.queue.recheck()
        return bench.check()

    assert bench.queue.acquire(["a"], check) == "room"
    assert bench.clock() == 0


def test_a_forked_child_starts_with_an_empty_queue() -> None:
    queue, ready, go_on = SubmitQueue(FakeClock(0)), threading.Event(), threading.Event()

    def first() -> str | QuotaReached:
        ready.set()
        return "room" if go_on.is_set() else QuotaReached(PATIENCE, "it is full")

    thread = threading.Thread(target=queue.acquire, args=[["a"], first])
    thread.start()
    assert ready.wait(PATIENCE)

    pid = os.fork()
    if pid == 0:
        os._exit(0 if queue.acquire(["b"], lambda: "room") == "room" else 1)
    go_on.set()
    queue.recheck()
    thread.join(PATIENCE)

    assert os.waitpid(pid, 0)[1] == 0


def test_the_reason_of_a_wait_is_logged_as_info_and_rarely_as_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = BenchQueue()
    caplog.set_level(logging.INFO)

    for _ in range(20):
        bench.room_after = bench.checks + 20
        bench.queue.acquire(["a"], bench.check)

    logged = [(it.levelname, it.getMessage()) for it in caplog.records]
    info, warning = (
        "jobs wait to be submitted: it is full",
        "jobs have waited 30 s to be submitted: it is full",
    )
    assert logged[:2] == [("INFO", info), ("WARNING", warning)]
    assert [logged.count(it) for it in logged[:2]] == [20, 2]
