"""The threads of a batch executor: there while there are jobs, awake when something happens, gone with it."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Collection
from pathlib import Path
from typing import cast

import pytest

from jpsi_engine.monitor.job_monitor import JobMonitor
from jpsi_engine.monitor.poll_loop import PollLoop, _scan, next_pause

PATIENCE = 20.0


class Seen:
    """Stands for the job monitor: counts its rounds."""

    def __init__(self) -> None:
        self.jobs: list[str] = ["a1"]
        self.due: float | None = None
        self.is_expecting = False
        self.looks = threading.Semaphore(0)
        self.questions = threading.Semaphore(0)
        self.busy: list[float] = []

    def all(self) -> list[str]:
        return list(self.jobs)

    def collect_markers(self, now: float, appeared: Collection[str]) -> None:
        self.looks.release()

    def expects_markers(self, now: float) -> bool:
        return self.is_expecting

    def next_poll_time(self) -> float | None:
        return self.due

    def probe_site(self, now: Callable[[], float]) -> None:
        """Nothing is to be found out."""

    def poll(self, now: Callable[[], float]) -> None:
        self.due = now() + 3600

    def note_poll_cost(self, seconds: float) -> None:
        self.busy.append(seconds)
        self.questions.release()


def poll_loop_of(seen: Seen, events: Path) -> PollLoop:
    return PollLoop(cast("JobMonitor", seen), str(events), is_announced=True)


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("jpsi-batch")]


def end(seen: Seen, poll_loop: PollLoop) -> None:
    """Have the threads end, as they do when no job is left."""
    seen.jobs.clear()
    poll_loop._changed.set()
    poll_loop._wake_pipe.wake()
    for thread in threads():
        thread.join(PATIENCE)
    assert not threads()


def test_marker_is_seen_when_it_appears(tmp_path: Path) -> None:
    seen = Seen()
    poll_loop = poll_loop_of(seen, tmp_path)
    poll_loop.start()
    assert seen.looks.acquire(timeout=PATIENCE)
    while seen.looks.acquire(timeout=0.05):
        pass

    (tmp_path / "a1.1.active").touch()

    assert seen.looks.acquire(timeout=PATIENCE)
    end(seen, poll_loop)


def test_what_came_before_the_job_was_followed_is_looked_for(tmp_path: Path) -> None:
    seen = Seen()
    poll_loop = poll_loop_of(seen, tmp_path)
    poll_loop.start()
    assert seen.looks.acquire(timeout=PATIENCE)
    while seen.looks.acquire(timeout=0.05):
        pass

    poll_loop.start()

    assert seen.looks.acquire(timeout=PATIENCE)
    end(seen, poll_loop)


def test_question_that_is_due_is_asked_once(tmp_path: Path) -> None:
    seen = Seen()
    seen.due = 0.0
    poll_loop = poll_loop_of(seen, tmp_path)

    poll_loop.start()

    assert seen.questions.acquire(timeout=PATIENCE)
    assert not seen.questions.acquire(timeout=0.05)
    end(seen, poll_loop)


def test_question_that_fails_is_not_asked_again_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    seen = Seen()
    seen.due = 0.0
    monkeypatch.setattr(seen, "poll", lambda: None)  # takes no clock
    poll_loop = poll_loop_of(seen, tmp_path)

    wait = poll_loop.poll()

    assert wait is not None
    assert wait > 1
    assert "TypeError" in caplog.text


@pytest.mark.clause("python-final-removed")
def test_threads_end_with_the_last_job_and_come_again_with_the_next(tmp_path: Path) -> None:
    seen = Seen()
    poll_loop = poll_loop_of(seen, tmp_path)
    poll_loop.start()
    end(seen, poll_loop)

    seen.jobs.append("a2")
    poll_loop.start()

    assert len(threads()) == 2
    end(seen, poll_loop)


def test_directory_is_scanned_each_second_while_more_is_expected() -> None:
    assert [next_pause(pause, is_expecting=True) for pause in (1.0, 2.0, 5.0)] == [1.0, 1.0, 1.0]


def test_scans_grow_rare_while_nothing_is_expected() -> None:
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
def test_thread_waits_as_long_as_there_is_nothing_to_see(
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
                seen.jobs.clear()
            return False

    seen = Seen()
    seen.is_expecting = is_expecting
    monkeypatch.setattr("jpsi_engine.monitor.poll_loop.select.poll", Poll)
    poll_loop = PollLoop(cast("JobMonitor", seen), str(tmp_path), is_announced=is_announced)

    _scan(weakref.ref(poll_loop), poll_loop._wake_pipe, str(tmp_path), is_announced)

    assert waits == expected


def test_abandoned_executor_goes_away_with_its_threads(tmp_path: Path) -> None:
    seen = Seen()
    poll_loop = poll_loop_of(seen, tmp_path)
    poll_loop.start()
    assert seen.looks.acquire(timeout=PATIENCE)
    changed, running, gone = poll_loop._changed, threads(), weakref.ref(poll_loop)

    del poll_loop
    gc.collect()
    changed.set()

    for thread in running:
        thread.join(PATIENCE)
    assert gone() is None
    assert not threads()


@pytest.mark.parametrize("error", [OSError(5, "disk"), RuntimeError("bug")], ids=["disk", "bug"])
def test_failing_round_does_not_end_the_thread(
    tmp_path: Path, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = Seen()
    failed = threading.Event()

    def fail(now: float, appeared: Collection[str]) -> None:
        monkeypatch.setattr(seen, "collect_markers", Seen.collect_markers.__get__(seen))
        failed.set()
        raise error

    monkeypatch.setattr(seen, "collect_markers", fail)
    monkeypatch.setattr("jpsi_engine.monitor.poll_loop.log.exception", lambda *_: None)
    poll_loop = poll_loop_of(seen, tmp_path)
    poll_loop.start()
    assert failed.wait(PATIENCE)

    (tmp_path / "a1.1.active").touch()

    assert seen.looks.acquire(timeout=PATIENCE)
    end(seen, poll_loop)
