"""Does something with each of many things, several at a time."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def concurrently(things: Iterable[T], do: Callable[[T], object], at_most: int) -> None:
    """Do something with each thing, with so many at a time; returns when all of it is done.

    Once that fails with one of them, or the caller is interrupted, no other is begun: what is under way is
    done, and the first exception raised.
    """
    left = list(things)
    if len(left) <= 1 or at_most <= 1:
        for thing in left:
            do(thing)
        return
    left.reverse()
    failures: list[BaseException] = []

    def work() -> None:
        with contextlib.suppress(IndexError):
            while not failures:
                thing = left.pop()
                try:
                    do(thing)
                except BaseException as e:  # noqa: BLE001  raised again by the caller's thread
                    failures.append(e)

    started = _start(work, min(at_most, len(left)))
    try:
        if not started:
            work()
        _join(started)
    except BaseException as e:  # noqa: BLE001  raised again below
        failures.append(e)
        _join(started)
    if failures:
        raise failures[0]


def _start(work: Callable[[], None], count: int) -> list[threading.Thread]:
    """Start as many threads as can be had now."""
    started = []
    with contextlib.suppress(RuntimeError):
        for _ in range(count):
            thread = threading.Thread(target=work, name="jpsi-many")
            thread.start()
            started.append(thread)
    return started


def _join(threads: Iterable[threading.Thread]) -> None:
    for thread in threads:
        thread.join()
