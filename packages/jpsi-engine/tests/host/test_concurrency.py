"""Many things at a time: each once, not too many, and what is under way is done."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator

import pytest

from jpsi_engine.host import concurrency
from jpsi_engine.host.concurrency import concurrently
from jpsi_testing.threads import in_this_thread


@pytest.mark.parametrize("at_most", [1, 3, 100])
def test_each_thing_is_done_once(at_most: int) -> None:
    done: list[int] = []

    concurrently(range(50), done.append, at_most)

    assert sorted(done) == list(range(50))


def test_at_most_the_given_number_of_calls_run_at_a_time() -> None:
    together, lock = threading.Barrier(3), threading.Lock()
    now, most = [0], [0]

    def do(_: int) -> None:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        together.wait(60)
        with lock:
            now[0] -= 1

    concurrently(range(9), do, 3)

    assert most == [3]


def test_no_call_starts_after_a_failure() -> None:
    both, done = threading.Barrier(2), list[int]()

    def do(thing: int) -> None:
        if thing < 2:
            both.wait(60)
            raise ValueError(thing)
        done.append(thing)

    with pytest.raises(ValueError, match=r"0|1"):
        concurrently(range(1000), do, 2)

    assert done == []


def test_without_threads_it_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        msg = "can't start new thread"
        raise RuntimeError(msg)

    monkeypatch.setattr(threading.Thread, "start", in_this_thread(refuse, threading.Thread.start))
    monkeypatch.setattr(concurrency, "_idle", {})
    done: list[int] = []

    concurrently(range(5), done.append, 2)

    assert done == list(range(5))


@pytest.fixture
def ctrl_c() -> Iterator[Callable[[], None]]:
    """Interrupt the thread of the test, as Ctrl-C does."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield lambda: signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("count", [1, 3])
def test_an_interrupted_caller_waits_for_running_calls(ctrl_c: Callable[[], None], count: int) -> None:
    done, hastened = list[int](), threading.Semaphore(0)

    def do(thing: int) -> None:
        for _ in range(count):
            ctrl_c()
            assert hastened.acquire(timeout=60)
        done.append(thing)

    with pytest.raises(KeyboardInterrupt):
        concurrently(range(1000), do, 1, hastened.release)

    assert done == [0]


@pytest.mark.parametrize("count", [1, 2])
def test_the_interrupted_thread_runs_no_calls(count: int) -> None:
    threads: set[threading.Thread] = set()

    concurrently(range(count), lambda _: threads.add(threading.current_thread()), 1)

    assert threads
    assert threading.current_thread() not in threads


def test_an_interrupt_while_threads_are_started_leaves_none_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    done, threads, start = list[int](), list[threading.Thread](), threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        threads.append(thread)
        start(thread)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", in_this_thread(interrupted, threading.Thread.start))
        patch.setattr(concurrency, "_idle", {})
        patch.setattr(concurrency, "_IDLE_SECONDS", 0.0)
        with pytest.raises(KeyboardInterrupt):
            concurrently(range(1000), done.append, 2)

    before = len(done)
    threads[0].join(60)
    assert len(done) == before


def test_a_thread_serves_many_callers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concurrency, "_idle", {})
    threads: list[threading.Thread] = []

    for _ in range(3):
        concurrently(range(1), lambda _: threads.append(threading.current_thread()), 1)

    assert len(set(threads)) == 1


def test_a_thread_serves_no_caller_of_another_priority(monkeypatch: pytest.MonkeyPatch) -> None:
    """On Linux threads have priorities of their own, and the processes that they start inherit them."""
    monkeypatch.setattr(concurrency, "_idle", {})
    threads: list[threading.Thread] = []

    for priority in (0, 5):
        monkeypatch.setattr("os.getpriority", lambda *_, it=priority: it)
        concurrently(range(1), lambda _: threads.append(threading.current_thread()), 1)

    assert len(set(threads)) == 2


def test_the_thread_that_has_ended_its_work_first_is_not_taken_for_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A thread may end one part of the work before the next part is given to it."""
    monkeypatch.setattr(concurrency, "_idle", {})
    done: list[int] = []
    give = concurrency._give

    def given(work: Callable[[], None], end: Callable[[], None]) -> None:
        ended = threading.Event()
        give(work, lambda: (end(), ended.set()))  # type: ignore[func-returns-value]
        assert ended.wait(60)

    monkeypatch.setattr(concurrency, "_give", given)

    concurrently(range(3), done.append, 3)

    assert sorted(done) == [0, 1, 2]


def test_a_forked_child_starts_threads_of_its_own() -> None:
    concurrently(range(1), lambda _: None, 1)
    pid = os.fork()
    if pid == 0:
        concurrently(range(1), lambda _: None, 1)
        os._exit(7)

    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
