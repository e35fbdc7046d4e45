"""Calls a function for many items, several at a time, in threads that receive no interrupt.

The threads are kept for the next call for a while, as to start one takes longer than to start a job.

Both engines start the jobs of `submit_many` with it. Ctrl-C must not stop a submission halfway: no further
one begins, and those under way are completed. A forked process has none of the threads, so that objects
that have some are reset in it.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import queue
import sys
import threading
import weakref
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

log = logging.getLogger(__name__)

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
    working: list[object] = []
    crew = _Crew()

    def work(member: object) -> None:
        with gate:
            if failures:
                return
            working.append(member)
        with contextlib.suppress(IndexError):
            while not failures:
                thing = left.pop()
                try:
                    do(thing)
                except BaseException as e:  # noqa: BLE001  raised again by the caller's thread
                    failures.append(e)
                    hasten()

    started: list[object] = []
    caller = object()
    try:
        _start(work, crew.end, max(1, min(at_most, len(left))) if left else 0, started)
        if not started:
            work(caller)
    except BaseException as e:  # noqa: BLE001  raised again below
        failures.append(e)

    def members() -> set[object]:
        with gate:
            # one that was being started when an interrupt came is in `working` by now, or does nothing
            return {*started, *working} - {caller}

    crew.await_end(members, failures, hasten)
    if failures:
        raise failures[0]


class _Crew:
    """Members that work side by side, each on a thread, and report their end.

    Before Python 3.13, `Thread.join` considers a thread ended once the caller was interrupted.
    """

    def __init__(self) -> None:
        self._ended: set[object] = set()
        self._ends: queue.SimpleQueue[None] = queue.SimpleQueue()

    def end(self, member: object) -> None:
        """Register the end of a member."""
        self._ended.add(member)
        self._ends.put(None)

    def await_end(
        self, members: Callable[[], set[object]], failures: list[BaseException], hasten: Callable[[], None]
    ) -> None:
        """Wait for members in spite of interrupts: they end after the work under way."""
        while True:
            try:
                if members() <= self._ended:
                    return
                if failures:
                    hasten()
                with contextlib.suppress(queue.Empty):
                    self._ends.get(timeout=_HASTEN_SECONDS)
            except BaseException as e:  # noqa: BLE001  raised again by the caller
                failures.append(e)


def _start(work: _Call, end: _Call, count: int, started: list[object]) -> None:
    """Have as many threads as the system allows, at most `count`, call `work` and then `end`."""
    with contextlib.suppress(RuntimeError):
        for _ in range(count):
            member = object()
            _give(functools.partial(work, member), functools.partial(end, member))
            started.append(member)


def _give(work: Callable[[], None], end: Callable[[], None]) -> None:
    """Have an idle thread, or a new one, call a function and, whatever happens, another one.

    Raises:
        RuntimeError: the system has no thread left.
    """
    idle = _idle.setdefault(_inherited(), [])
    try:
        idle.pop().put((work, end))
    except IndexError:
        calls: _Calls = queue.SimpleQueue()
        calls.put((work, end))
        threading.Thread(target=_serve, args=(calls, idle), name="jpsi-concurrent", daemon=True).start()


def _inherited() -> object:
    """Return what a new thread, and each process that it starts, would inherit from this one alone."""
    if sys.platform != "linux":
        return None
    return os.getpriority(os.PRIO_PROCESS, 0), frozenset(os.sched_getaffinity(0))


def _serve(calls: _Calls, idle: list[_Calls]) -> None:
    """Make the calls that this thread is given, until none comes for a while."""
    while True:
        try:
            work, end = calls.get(timeout=_IDLE_SECONDS)
        except queue.Empty:
            with contextlib.suppress(ValueError):
                idle.remove(calls)
                return
            # it is given work at this moment
            work, end = calls.get()
        try:
            work()
            # before the end: the caller that waits for it finds this thread idle
            idle.append(calls)
        finally:
            end()
        del work, end


_Call = Callable[[object], None]
_Calls = queue.SimpleQueue[tuple[Callable[[], None], Callable[[], None]]]
_IDLE_SECONDS = 30.0
# by what they inherited
_idle: dict[object, list[_Calls]] = {}
# the threads stayed with the parent
os.register_at_fork(after_in_child=_idle.clear)


def reset_after_fork(owner: T, reset: Callable[[T], None]) -> None:
    """Have `reset` called for an object, while it exists, in each process that is forked from this one.

    Its threads, and those that hold its locks, stay with the parent.
    """
    _resets[owner] = reset


_resets: weakref.WeakKeyDictionary[Any, Callable[[Any], None]] = weakref.WeakKeyDictionary()


def _reset_all() -> None:
    for owner, reset in list(_resets.items()):
        try:
            reset(owner)
        except Exception:
            # the others would wait for ever for locks of the parent
            log.exception("%r could not be reset after a fork", owner)


os.register_at_fork(after_in_child=_reset_all)
