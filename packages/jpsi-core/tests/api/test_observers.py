"""Observers of statuses: each gets all of them in order, and none waits for another."""

from __future__ import annotations

import threading
from typing import Any

from jpsi import JobSpec, JobState, JobStatus
from jpsi.api.submission import Observers

PATIENCE = 30
STATUSES = [JobStatus(state) for state in (JobState.QUEUED, JobState.ACTIVE, JobState.COMPLETED)]


class RecordingObserver:
    """An observer that may be blocked in its first call."""

    def __init__(self, *, is_blocked: bool = False) -> None:
        self.is_released = threading.Event()
        self.has_all = threading.Event()
        self.calls: list[dict[str, Any]] = []
        if not is_blocked:
            self.is_released.set()

    def status_changed(self, **call: Any) -> None:
        assert self.is_released.wait(PATIENCE)
        self.calls.append(call)
        if len(self.calls) == len(STATUSES):
            self.has_all.set()


def notify(*observers: RecordingObserver) -> JobSpec:
    spec = JobSpec("/bin/true", ["x"])
    observing = Observers("toy", observers)
    observing.add_job("1", spec)
    for status in STATUSES:
        observing.notify("1", "native", status)
    assert observing._specs == {}
    return spec


def test_an_observer_is_called_in_order_and_delays_no_other() -> None:
    slow, quick = RecordingObserver(is_blocked=True), RecordingObserver()

    notify(slow, quick)

    assert quick.has_all.wait(PATIENCE)
    assert slow.calls == []
    slow.is_released.set()
    assert slow.has_all.wait(PATIENCE)
    for observer in (slow, quick):
        assert [call["status"] for call in observer.calls] == STATUSES


def test_observer_gets_a_copy_of_the_spec() -> None:
    observer = RecordingObserver()

    spec = notify(observer)

    assert observer.has_all.wait(PATIENCE)
    assert {call["executor"] for call in observer.calls} == {"toy"}
    assert all(call["spec"] == spec and call["spec"] is not spec for call in observer.calls)
    assert all(call["spec"].arguments is not spec.arguments for call in observer.calls)


def test_no_observers_cost_nothing() -> None:
    observing = Observers("toy", ())
    observing.add_job("1", JobSpec("/bin/true"))
    observing.notify("1", None, STATUSES[0])
    observing.forget_job("1")

    assert observing._specs == {}
