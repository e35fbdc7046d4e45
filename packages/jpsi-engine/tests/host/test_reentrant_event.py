"""An event that a finalizer may set at any point of any thread."""

from __future__ import annotations

import sys
import threading
import time
from queue import SimpleQueue
from types import FrameType

import pytest

from jpsi_engine.host.reentrant_event import ReentrantEvent

PATIENCE = 30.0


def test_it_is_set_until_it_is_cleared() -> None:
    event = ReentrantEvent()
    assert not event.is_set()

    event.set()
    event.set()

    assert event.is_set()
    assert [event.wait(PATIENCE), event.wait(PATIENCE)] == [True, True]

    event.clear()

    assert not event.is_set()
    assert not event.wait(0.0)


def test_a_wait_takes_its_time_unless_the_event_is_set() -> None:
    """There is no telling but by the clock whether `wait` waits."""
    event = ReentrantEvent()
    event.set()
    event.clear()
    began = time.monotonic()

    assert not event.wait(0.2)

    assert time.monotonic() - began >= 0.2


def test_every_waiting_thread_is_woken() -> None:
    event, about_to_wait, woken = ReentrantEvent(), threading.Barrier(4), SimpleQueue[bool]()

    def wait() -> None:
        about_to_wait.wait(PATIENCE)
        woken.put(event.wait(10 * PATIENCE))

    for _ in range(3):
        threading.Thread(target=wait, daemon=True).start()
    about_to_wait.wait(PATIENCE)
    # so that they wait by now; if one does not, it finds the event set
    time.sleep(0.05)
    event.set()

    assert [woken.get(timeout=PATIENCE) for _ in range(3)] == [True, True, True]


def test_one_that_was_cleared_as_a_thread_woke_wakes_nobody_for_good() -> None:
    """The thread must not put back what woke it."""
    event = ReentrantEvent()
    event._wakes.put(None)  # as `clear` leaves it if it comes between the two steps of `set`
    event.wait(PATIENCE)
    began = time.monotonic()

    event.wait(0.2)

    assert time.monotonic() - began >= 0.2


@pytest.mark.parametrize("name", ["set", "clear", "wait", "is_set"])
def test_it_can_be_set_at_any_point_of_its_methods(name: str) -> None:
    """A `threading.Event` waits for itself then: in `set`, and in `wait` until it sleeps."""
    points = 0
    while _has_point(name, points):
        points += 1

    assert points > 3


def _has_point(name: str, number: int) -> bool:
    """Set an event while one of its methods is at its point of that number; return False if it has none.

    It is set then, except that `clear` may come later.
    """
    event = ReentrantEvent()
    passed = 0

    def at_each_point(frame: FrameType, what: str, _: object) -> object:
        nonlocal passed
        if frame.f_code.co_name != name:
            return None
        frame.f_trace_opcodes = True
        if passed == number:
            sys.settrace(None)
            event.set()
            sys.settrace(at_each_point)
        passed += 1
        return at_each_point

    def call() -> None:
        sys.settrace(at_each_point)
        getattr(event, name)(*([0.01] if name == "wait" else []))

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert event.is_set() or name == "clear" or passed <= number
    assert event.wait(0.0) == event.is_set()
    return passed > number
