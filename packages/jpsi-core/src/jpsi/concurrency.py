"""Does something with each of many things, several at a time, in threads that no interrupt reaches."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

# How often what is under way is hastened: it may have been about to wait only.
_HASTEN_SECONDS = 0.5


def _nothing() -> None:
    """What is under way takes no time to speak of."""


def concurrently(
    things: Iterable[T], do: Callable[[T], object], at_most: int, hasten: Callable[[], None] = _nothing
) -> None:
    """Do something with each thing, with so many at a time; returns when all of it is done.

    Once that fails with one of them, or the caller is interrupted, no other is begun: what is under way is
    done, however often the caller is interrupted, and the first exception raised. The caller's thread only
    waits, if there can be others, as it is the one that signals interrupt.

    Args:
        things: what it is done with.
        do: does it.
        at_most: how many at a time.
        hasten: called when no other is begun any more, perhaps often, so that what is under way does not wait
            for long.
    """
    left = list(things)
    left.reverse()
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
    with gate:
        # a thread that was started when an interrupt came works by now, or never will
        threads = {*started, *working} - {threading.current_thread()}
    crew.await_end(threads, failures, hasten)
    if failures:
        raise failures[0]


class _Crew:
    """Threads that say when they have ended.

    Before Python 3.13, `Thread.join` takes a thread for ended once the caller was interrupted.
    """

    def __init__(self) -> None:
        self._ended: set[threading.Thread] = set()
        self._news: queue.SimpleQueue[None] = queue.SimpleQueue()

    @contextlib.contextmanager
    def member(self) -> Iterator[None]:
        """Within the block, this thread works."""
        try:
            yield
        finally:
            self._ended.add(threading.current_thread())
            self._news.put(None)

    def await_end(
        self, threads: set[threading.Thread], failures: list[BaseException], hasten: Callable[[], None]
    ) -> None:
        """Wait for threads, whatever interrupts that: they end after what is under way."""
        while not threads <= self._ended:
            try:
                if failures:
                    hasten()
                with contextlib.suppress(queue.Empty):
                    self._news.get(timeout=_HASTEN_SECONDS)
            except BaseException as e:  # noqa: BLE001  raised again by the caller
                failures.append(e)


def _start(work: Callable[[], None], count: int, started: list[threading.Thread]) -> None:
    """Start as many threads as can be had now."""
    with contextlib.suppress(RuntimeError):
        for _ in range(count):
            thread = threading.Thread(target=work, name="jpsi-many")
            thread.start()
            started.append(thread)
