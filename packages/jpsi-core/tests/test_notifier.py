"""Callbacks: in order within a lane, lanes side by side, whatever a callback does."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jpsi import notifier as module
from jpsi.notifier import Lane, Notifier, is_delivering, shared
from jpsi_testing.waiting import eventually

PATIENCE = 30


@pytest.fixture
def notifier() -> Notifier:
    return Notifier()


def post_all(notifier: Notifier, lane: Lane, calls: list[Callable[[], None]]) -> None:
    """Post calls, and wait until all of them were made."""
    done = threading.Event()
    for call in [*calls, done.set]:
        notifier.post(lane, call)
    assert done.wait(PATIENCE)


@pytest.mark.clause("callbacks-in-order")
def test_calls_of_a_lane_are_made_in_order(notifier: Notifier) -> None:
    made: list[int] = []

    post_all(notifier, Lane(), [lambda n=n: made.append(n) for n in range(1000)])  # type: ignore[misc]

    assert made == list(range(1000))


def test_calls_of_a_lane_are_made_one_at_a_time(notifier: Notifier) -> None:
    inside, most = [0], [0]
    lock = threading.Lock()

    def call() -> None:
        with lock:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
        os.sched_yield()
        with lock:
            inside[0] -= 1

    post_all(notifier, Lane(), [call] * 500)

    assert most == [1]


@settings(deadline=None, max_examples=20)
@given(st.lists(st.integers(0, 5), max_size=200))
def test_every_lane_keeps_its_order_whatever_the_others_do(which: list[int]) -> None:
    """Return one notifier for all examples, as a process has it."""
    lanes = [Lane() for _ in range(6)]
    made: dict[int, list[int]] = {n: [] for n in range(6)}
    left = threading.Semaphore(0)

    def call(lane: int, number: int) -> None:
        made[lane].append(number)
        left.release()

    for number, lane in enumerate(which):
        shared().post(lanes[lane], lambda lane=lane, number=number: call(lane, number))  # type: ignore[misc]
    for _ in which:
        assert left.acquire(timeout=PATIENCE)

    assert made == {n: [number for number, lane in enumerate(which) if lane == n] for n in range(6)}


def test_calls_posted_by_many_threads_are_all_made_once(notifier: Notifier) -> None:
    lane, done = Lane(), threading.Event()
    made: list[tuple[int, int]] = []

    def post(thread: int) -> None:
        for number in range(200):
            notifier.post(lane, lambda item=(thread, number): made.append(item))  # type: ignore[misc]

    threads = [threading.Thread(target=post, args=(n,)) for n in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    notifier.post(lane, done.set)

    assert done.wait(PATIENCE)
    for thread in range(5):
        assert [number for of, number in made if of == thread] == list(range(200))


def test_posting_returns_before_the_call_is_made(notifier: Notifier) -> None:
    allowed, made = threading.Event(), threading.Event()

    notifier.post(Lane(), lambda: allowed.wait(PATIENCE) and made.set())  # type: ignore[func-returns-value]

    assert not made.is_set()
    allowed.set()
    assert made.wait(PATIENCE)


def test_an_idle_thread_keeps_no_call(notifier: Notifier) -> None:
    def call() -> None:
        pass

    gone = weakref.ref(call)

    notifier.post(Lane(), call)
    del call

    assert eventually(lambda: notifier._idle == 1)
    assert gone() is None


def test_call_is_made_on_a_thread_of_the_notifier(notifier: Notifier) -> None:
    on: list[threading.Thread] = []

    post_all(notifier, Lane(), [lambda: on.append(threading.current_thread())])

    assert on[0] is not threading.current_thread()
    assert on[0].daemon


@pytest.mark.clause("callback-quick")
def test_lane_that_blocks_holds_up_no_other(notifier: Notifier) -> None:
    release = threading.Event()
    blocked = Lane()
    notifier.post(blocked, lambda: release.wait(PATIENCE))  # type: ignore[arg-type, return-value]
    after_block = threading.Event()
    notifier.post(blocked, after_block.set)

    for _ in range(50):
        post_all(notifier, Lane(), [lambda: None])

    assert not after_block.is_set()
    release.set()
    assert after_block.wait(PATIENCE)


def test_pool_grows_while_threads_are_blocked(notifier: Notifier) -> None:
    """Every call waits for all the others to be made."""
    count = 40
    together = threading.Barrier(count)
    done = threading.Semaphore(0)

    def call() -> None:
        together.wait(PATIENCE)
        done.release()

    for _ in range(count):
        notifier.post(Lane(), call)

    for _ in range(count):
        assert done.acquire(timeout=PATIENCE)


def test_the_pool_grows_again_after_it_was_idle(notifier: Notifier) -> None:
    for count in (10, 25):
        together = threading.Barrier(count)
        done = threading.Semaphore(0)

        def call(together: threading.Barrier = together, done: threading.Semaphore = done) -> None:
            together.wait(PATIENCE)
            done.release()

        for _ in range(count):
            notifier.post(Lane(), call)
        for _ in range(count):
            assert done.acquire(timeout=PATIENCE)


def test_quick_calls_need_few_threads(notifier: Notifier) -> None:
    on: set[threading.Thread] = set()
    lanes = [Lane() for _ in range(200)]
    done = threading.Semaphore(0)

    def call() -> None:
        on.add(threading.current_thread())
        done.release()

    for lane in lanes * 5:
        notifier.post(lane, call)
    for _ in lanes * 5:
        assert done.acquire(timeout=PATIENCE)

    assert len(on) <= 20


def test_call_may_post_to_its_own_lane_and_to_others(notifier: Notifier) -> None:
    lane, done = Lane(), threading.Event()
    made: list[str] = []

    def first() -> None:
        notifier.post(lane, lambda: made.append("second"))
        notifier.post(Lane(), lambda: notifier.post(lane, done.set))
        made.append("first")

    notifier.post(lane, first)

    assert done.wait(PATIENCE)
    assert made == ["first", "second"]


def test_a_call_may_wait_for_calls_that_it_posts_to_other_lanes(notifier: Notifier) -> None:
    """A callback that submits a job and waits for it does so, ten deep."""
    done = threading.Event()

    def call(depth: int) -> None:
        if depth == 0:
            done.set()
            return
        inner = threading.Event()
        notifier.post(Lane(), lambda: (call(depth - 1), inner.set())[1])  # type: ignore[func-returns-value]
        assert inner.wait(PATIENCE)

    notifier.post(Lane(), lambda: call(10))

    assert done.wait(PATIENCE)


@pytest.mark.parametrize("failures", [1, 8])
def test_thread_that_cannot_be_started_costs_no_call(
    notifier: Notifier, monkeypatch: pytest.MonkeyPatch, failures: int
) -> None:
    """Without threads, callers that post statuses continue, and the statuses are delivered later."""
    made = threading.Semaphore(0)
    left = [failures]

    class Thread(threading.Thread):
        def start(self) -> None:
            if left[0] > 0:
                left[0] -= 1
                msg = "can't start new thread"
                raise RuntimeError(msg)
            super().start()

    monkeypatch.setattr(module, "threading", SimpleNamespace(**{**vars(threading), "Thread": Thread}))
    for _ in range(failures + 1):
        notifier.post(Lane(), made.release)

    for _ in range(failures + 1):
        assert made.acquire(timeout=PATIENCE)


class Unexpected(BaseException):
    pass


@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt, GeneratorExit, Unexpected])
def test_a_call_that_raises_does_not_affect_others(
    notifier: Notifier, error: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    lane, made = Lane(), [0]

    def fail() -> None:
        raise error

    def count() -> None:
        made[0] += 1

    post_all(notifier, lane, [fail, count] * 20)
    post_all(notifier, Lane(), [count])

    assert made == [21]
    records = [record for record in caplog.records if record.name == "jpsi.notifier"]
    assert len(records) == 20
    assert records[0].levelno == logging.ERROR
    assert records[0].exc_info is not None


def test_delivering_threads_have_a_name(notifier: Notifier) -> None:
    found: list[bool] = []

    post_all(notifier, Lane(), [lambda: found.append(is_delivering())])

    assert found == [True]
    assert not is_delivering()


def test_thread_that_a_call_starts_does_not_deliver(notifier: Notifier) -> None:
    found: list[bool] = []

    def call() -> None:
        thread = threading.Thread(target=lambda: found.append(is_delivering()))
        thread.start()
        thread.join(PATIENCE)

    post_all(notifier, Lane(), [call])

    assert found == [False]


def test_process_has_one_notifier() -> None:
    assert shared() is shared()


FORKED = """
import os, sys, threading
from jpsi import notifier as module
from jpsi.notifier import Lane, shared

lane, busy, release, delivered = Lane(), threading.Event(), threading.Event(), threading.Event()
shared().post(lane, lambda: (busy.set(), release.wait(30)))
busy.wait(30)
parent = os.getpid()
shared().post(lane, lambda: os.getpid() == parent or os._exit(3))
pid = os.fork()
if pid == 0:
    shared().post(lane if sys.argv[1] == "same" else Lane(), delivered.set)
    os._exit(0 if delivered.wait(float(sys.argv[2])) else 1)
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
release.set()
sys.exit(code)
"""


@pytest.mark.parametrize(("lane", "timeout_seconds"), [("another", PATIENCE), ("same", 3)])
def test_forked_child_delivers_its_own(lane: str, timeout_seconds: int) -> None:
    """On a lane as well that a thread of its parent is at work on: that one makes the calls posted before."""
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKED, lane, str(timeout_seconds)], check=False
    )

    assert result.returncode == 0


def test_draining_waits_for_posted_calls(notifier: Notifier) -> None:
    begun, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def call() -> None:
        begun.set()
        may_end.wait(PATIENCE)
        ended.set()

    notifier.post(Lane(), call)
    assert begun.wait(PATIENCE)

    assert not notifier.drain(0.01)
    may_end.set()
    assert notifier.drain(PATIENCE)
    assert ended.is_set()


def test_program_that_ends_at_once_still_delivers() -> None:
    program = """
import time
from jpsi import notifier
notifier.shared().post(notifier.Lane(), lambda: (time.sleep(0.2), print("posted", flush=True)))
"""

    result = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)

    assert result.stdout == b"posted\n"
