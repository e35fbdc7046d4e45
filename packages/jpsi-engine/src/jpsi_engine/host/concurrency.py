"""Calls a function for many items, several at a time, in threads that receive no interrupt.

Both engines start the jobs of `submit_many` with it. Ctrl-C must not stop a submission halfway: no further
one begins, and those under way are completed.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

# The time between calls of `hasten`: work under way may only then begin to wait.
_HASTEN_SECONDS = 0.5


def concurrently(
    things: Iterable[T], do: Callable[[T], object], at_most: int, hasten: Callable[[], None] = lambda: None
) -> None:
    """Call `do` for each item, at most `at_most` at a time; returns when all calls have returned.

    Once a call fails, or the caller is interrupted, no other call begins. Calls under way are completed,
    however often the caller is interrupted; then the first exception is raised. The caller's thread only
    waits, if other threads can be started, since it is the one that signals interrupt. Once no other call
    begins, `hasten` is called, perhaps often, so that calls under way stop waiting.
    """
    left = list(things)[::-1]
    failures: list[BaseException] = []
    gate = threading.Lock()
    working: list[threading.Thread] = []
    crew = _Crew()

    def work() -> None:
        with crew.member():
            with gate:
                if failures:
                    return
                working.append(threading.current_thread())
            with contextlib.suppress(IndexError):
                while not failures:
                    thing = left.pop()
                    try:
                        do(thing)
                    except BaseException as e:  # noqa: BLE001  raised again by the caller's thread
                        failures.append(e)
                        hasten()

    started: list[threading.Thread] = []
    try:
        _start(work, max(1, min(at_most, len(left))) if left else 0, started)
        if not started:
            work()
    except BaseException as e:  # noqa: BLE001  raised again below
        failures.append(e)

    def threads() -> set[threading.Thread]:
        with gate:
            # a thread that was being started when an interrupt came is in `working` by now, or does nothing
            return {*started, *working} - {threading.current_thread()}

    crew.await_end(threads, failures, hasten)
    if failures:
        raise failures[0]


class _Crew:
    """Threads that report their end.

    Before Python 3.13, `Thread.join` considers a thread ended once the caller was interrupted.
    """

    def __init__(self) -> None:
        self._ended: set[threading.Thread] = set()
        self._ends: queue.SimpleQueue[None] = queue.SimpleQueue()

    @contextlib.contextmanager
    def member(self) -> Iterator[None]:
        """Register the end of this thread at the end of the block."""
        try:
            yield
        finally:
            self._ended.add(threading.current_thread())
            self._ends.put(None)

    def await_end(
        self,
        threads: Callable[[], set[threading.Thread]],
        failures: list[BaseException],
        hasten: Callable[[], None],
    ) -> None:
        """Wait for threads in spite of interrupts: they end after the work under way."""
        while True:
            try:
                if threads() <= self._ended:
                    return
                if failures:
                    hasten()
                with contextlib.suppress(queue.Empty):
                    self._ends.get(timeout=_HASTEN_SECONDS)
            except BaseException as e:  # noqa: BLE001  raised again by the caller
                failures.append(e)


def _start(work: Callable[[], None], count: int, started: list[threading.Thread]) -> None:
    """Start as many threads as the system allows, at most `count`."""
    with contextlib.suppress(RuntimeError):
        for _ in range(count):
            thread = threading.Thread(target=work, name="jpsi-concurrent")
            thread.start()
            started.append(thread)
