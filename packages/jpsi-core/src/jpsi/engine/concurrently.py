"""Does something with each of many things, several at a time, in threads that no interrupt reaches."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable
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

    def work() -> None:
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
    _join(threads, failures, hasten)
    if failures:
        raise failures[0]


def _start(work: Callable[[], None], count: int, started: list[threading.Thread]) -> None:
    """Start as many threads as can be had now."""
    with contextlib.suppress(RuntimeError):
        for _ in range(count):
            thread = threading.Thread(target=work, name="jpsi-many")
            thread.start()
            started.append(thread)


def _join(
    threads: Iterable[threading.Thread], failures: list[BaseException], hasten: Callable[[], None]
) -> None:
    """Wait for threads, whatever interrupts that: they end after what is under way."""
    left = list(threads)
    while left:
        try:
            if failures:
                hasten()
            left[-1].join(_HASTEN_SECONDS)
            if not left[-1].is_alive():
                left.pop()
        except BaseException as e:  # noqa: BLE001  raised again by the caller
            failures.append(e)
