"""The threads of a batch executor: they run while it has jobs, wake up on events, and end with it."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Callable, Collection
from pathlib import Path
from typing import cast

import pytest

from jpsi_engine.monitor.job_monitor import JobMonitor
from jpsi_engine.monitor.poll_loop import PollLoop, _scan, next_pause

PATIENCE = 20.0


class FakeMonitor:
    """A fake of the job monitor that counts its rounds."""

    def __init__(self) -> None:
        self.jobs: list[str] = ["a1"]
        self.due: float | None = None
        self.settle_time: float | None = None
        self.settled: list[float] = []
        self.is_expecting = False
        self.collections = threading.Semaphore(0)
        self.polls = threading.Semaphore(0)
        self.busy: list[float] = []

    def all(self) -> list[str]:
        return list(self.jobs)

    def collect_markers(self, now: float, appeared: Collection[str]) -> None:
        self.collections.release()

    def expects_markers(self, now: float) -> bool:
        return self.is_expecting

    def next_poll_time(self) -> float | None:
        return self.due

    def next_settle_time(self) -> float | None:
        return self.settle_time

    def settle(self, now: float) -> None:
        self.settle_time = None
        self.settled.append(now)

    def probe_site(self, now: Callable[[], float]) -> None:
        """Do nothing."""

    def poll(self, now: Callable[[], float]) -> None:
        self.due = now() + 3600

    def note_poll_cost(self, seconds: float) -> None:
        self.busy.append(seconds)
        self.polls.release()


def poll_loop_of(monitor: FakeMonitor, events: Path) -> PollLoop:
    return PollLoop(cast("JobMonitor", monitor), str(events), is_announced=True)


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("jpsi-batch")]


def end(monitor: FakeMonitor, poll_loop: PollLoop) -> None:
    """Have the threads end, as they do when no job is left."""
    monitor.jobs.clear()
    poll_loop._changed.set()
    poll_loop._wake_pipe.wake()
    for thread in threads():
        thread.join(PATIENCE)
    assert not threads()


def test_a_marker_is_collected_when_it_appears(tmp_path: Path) -> None:
    monitor = FakeMonitor()
    poll_loop = poll_loop_of(monitor, tmp_path)
    poll_loop.start()
    assert monitor.collections.acquire(timeout=PATIENCE)
    while monitor.collections.acquire(timeout=0.05):
        pass

    (tmp_path / "a1.1.active").touch()

    assert monitor.collections.acquire(timeout=PATIENCE)
    end(monitor, poll_loop)


def test_markers_from_before_the_job_was_followed_are_collected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{PollLoop.__module__}._ANNOUNCED_SECONDS", 0.3)
    monitor = FakeMonitor()
    poll_loop = poll_loop_of(monitor, tmp_path)
    poll_loop.start()
    assert monitor.collections.acquire(timeout=PATIENCE)
    while monitor.collections.acquire(timeout=0.05):
        pass

    poll_loop.start()

    assert monitor.collections.acquire(timeout=PATIENCE)
    end(monitor, poll_loop)


def test_the_rest_after_a_marker_counts_one_look_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monitor, clock, rests = FakeMonitor(), [0.0], list[float]()
    poll_loop = poll_loop_of(monitor, tmp_path)

    def collect(now: float, appeared: Collection[str]) -> None:
        clock[0] += 0.001

    def rest(seconds: float) -> None:
        rests.append(seconds)
        monitor.jobs.clear()

    class Poll:
        answers = iter([[], [], [], [1]])

        def register(self, *_: object) -> None:
            pass

        def poll(self, _milliseconds: float) -> list[int]:
            return next(self.answers)

    monkeypatch.setattr(monitor, "collect_markers", collect)
    module = PollLoop.__module__
    monkeypatch.setattr(f"{module}.time.thread_time", lambda: clock[0])
    monkeypatch.setattr(f"{module}.time.sleep", rest)
    monkeypatch.setattr(f"{module}.select.poll", Poll)

    _scan(weakref.ref(poll_loop), poll_loop._wake_pipe, str(tmp_path), False)

    assert rests == [pytest.approx(0.003)]


def test_a_due_poll_runs_once(tmp_path: Path) -> None:
    monitor = FakeMonitor()
    monitor.due = 0.0
    poll_loop = poll_loop_of(monitor, tmp_path)

    poll_loop.start()

    assert monitor.polls.acquire(timeout=PATIENCE)
    assert not monitor.polls.acquire(timeout=0.05)
    end(monitor, poll_loop)


def test_jobs_that_have_ended_are_judged_between_two_polls(tmp_path: Path) -> None:
    monitor = FakeMonitor()
    poll_loop = poll_loop_of(monitor, tmp_path)
    monitor.due, monitor.settle_time = time.monotonic() + 3600, time.monotonic() + 1.0
    wait = poll_loop.poll()
    assert wait is not None
    assert 0.0 < wait <= 1.0

    monitor.settle_time = time.monotonic()
    poll_loop.poll()

    assert len(monitor.settled) == 1
    assert not monitor.busy


def test_a_failed_poll_is_not_repeated_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monitor = FakeMonitor()
    monitor.due = 0.0
    monkeypatch.setattr(monitor, "poll", lambda: None)  # takes no clock
    poll_loop = poll_loop_of(monitor, tmp_path)

    wait = poll_loop.poll()

    assert wait is not None
    assert wait > 1
    assert "TypeError" in caplog.text


@pytest.mark.clause("python-final-removed")
def test_threads_end_with_the_last_job_and_start_again_with_the_next(tmp_path: Path) -> None:
    monitor = FakeMonitor()
    poll_loop = poll_loop_of(monitor, tmp_path)
    poll_loop.start()
    end(monitor, poll_loop)

    monitor.jobs.append("a2")
    poll_loop.start()

    assert len(threads()) == 2
    end(monitor, poll_loop)


def test_directory_is_scanned_each_second_while_more_is_expected() -> None:
    assert [next_pause(pause, is_expecting=True) for pause in (1.0, 2.0, 5.0)] == [1.0, 1.0, 1.0]


def test_scans_become_rare_while_nothing_is_expected() -> None:
    pauses = [1.0]
    while pauses[-1] < 5.0:
        pauses.append(next_pause(pauses[-1], is_expecting=False))

    assert 5 < len(pauses) < 12
    assert next_pause(5.0, is_expecting=False) == 5.0


@pytest.mark.parametrize(
    ("is_announced", "is_expecting", "expected"),
    [(True, True, [10.0, 10.0]), (False, True, [1.0, 1.0]), (False, False, [1.25, 1.5625])],
    ids=["announced", "running", "waiting"],
)
def test_a_thread_sleeps_while_there_are_no_events(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_announced: bool,
    is_expecting: bool,
    expected: list[float],
) -> None:
    waits: list[float] = []

    class Poll:
        def register(self, descriptor: object, mask: int) -> None:
            pass

        def poll(self, milliseconds: float) -> bool:
            waits.append(milliseconds / 1000)
            if len(waits) == 2:
                monitor.jobs.clear()
            return False

    monitor = FakeMonitor()
    monitor.is_expecting = is_expecting
    monkeypatch.setattr("jpsi_engine.monitor.poll_loop.select.poll", Poll)
    poll_loop = PollLoop(cast("JobMonitor", monitor), str(tmp_path), is_announced=is_announced)

    _scan(weakref.ref(poll_loop), poll_loop._wake_pipe, str(tmp_path), is_announced)

    assert waits == expected


def test_an_abandoned_executor_is_collected_with_its_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # they end at once, and not when they would wake by themselves
    monkeypatch.setattr("jpsi_engine.monitor.poll_loop._IDLE_SECONDS", 3600.0)
    monitor = FakeMonitor()
    poll_loop = poll_loop_of(monitor, tmp_path)
    poll_loop.start()
    assert monitor.collections.acquire(timeout=PATIENCE)
    running, gone = threads(), weakref.ref(poll_loop)

    del poll_loop
    gc.collect()

    for thread in running:
        thread.join(PATIENCE)
    assert gone() is None
    assert not threads()


@pytest.mark.parametrize("error", [OSError(5, "disk"), RuntimeError("bug")], ids=["disk", "bug"])
def test_failing_round_does_not_end_the_thread(
    tmp_path: Path, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monitor = FakeMonitor()
    failed = threading.Event()

    def fail(now: float, appeared: Collection[str]) -> None:
        monkeypatch.setattr(monitor, "collect_markers", FakeMonitor.collect_markers.__get__(monitor))
        failed.set()
        raise error

    monkeypatch.setattr(monitor, "collect_markers", fail)
    monkeypatch.setattr("jpsi_engine.monitor.poll_loop.log.exception", lambda *_: None)
    poll_loop = poll_loop_of(monitor, tmp_path)
    poll_loop.start()
    assert failed.wait(PATIENCE)

    (tmp_path / "a1.1.active").touch()

    assert monitor.collections.acquire(timeout=PATIENCE)
    end(monitor, poll_loop)
