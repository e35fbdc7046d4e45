"""Who is told of statuses, and that nobody waits for anybody."""

from __future__ import annotations

import threading
from typing import Any

from jpsi import JobSpec, JobState, JobStatus
from jpsi.api.submission import Observers

PATIENCE = 30
STATUSES = [JobStatus(state) for state in (JobState.QUEUED, JobState.ACTIVE, JobState.COMPLETED)]


class Watching:
    """An observer that may be blocked in its first call."""

    def __init__(self, *, is_blocked: bool = False) -> None:
        self.may_go_on = threading.Event()
        self.has_all = threading.Event()
        self.calls: list[dict[str, Any]] = []
        if not is_blocked:
            self.may_go_on.set()

    def status_changed(self, **call: Any) -> None:
        assert self.may_go_on.wait(PATIENCE)
        self.calls.append(call)
        if len(self.calls) == len(STATUSES):
            self.has_all.set()


def told(*observers: Watching) -> JobSpec:
    spec = JobSpec("/bin/true", ["x"])
    observing = Observers("toy", observers)
    observing.add_job("1", spec)
    for status in STATUSES:
        observing.notify("1", "native", status)
    assert observing._specs == {}
    return spec


def test_observer_is_told_in_order_and_delays_no_other() -> None:
    slow, quick = Watching(is_blocked=True), Watching()

    told(slow, quick)

    assert quick.has_all.wait(PATIENCE)
    assert slow.calls == []
    slow.may_go_on.set()
    assert slow.has_all.wait(PATIENCE)
    for observer in (slow, quick):
        assert [call["status"] for call in observer.calls] == STATUSES


def test_observer_gets_a_copy_of_the_spec() -> None:
    observer = Watching()

    spec = told(observer)

    assert observer.has_all.wait(PATIENCE)
    assert {call["executor"] for call in observer.calls} == {"toy"}
    assert all(call["spec"] == spec and call["spec"] is not spec for call in observer.calls)
    assert all(call["spec"].arguments is not spec.arguments for call in observer.calls)


def test_nobody_to_tell_costs_nothing() -> None:
    observing = Observers("toy", ())
    observing.add_job("1", JobSpec("/bin/true"))
    observing.notify("1", None, STATUSES[0])
    observing.forget_job("1")

    assert observing._specs == {}
