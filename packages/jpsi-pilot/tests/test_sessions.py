"""Marked processes, which alone are ended; all of them are fake."""

from __future__ import annotations

import errno
import functools
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from fake_processes import FakeProcesses
from jpsi_pilot.node import sessions

MARK = {"JPSI_PILOT_JOB": "played-1", "SLURM_JOB_ID": "played"}


class Clock:
    """A clock that advances only during a sleep."""

    def __init__(self) -> None:
        self.time = 0.0

    def sleep(self, seconds: float) -> None:
        self.time += seconds

    def now(self) -> float:
        return self.time


@pytest.fixture(params=["pidfd", "pid"])
def means(request: pytest.FixtureRequest) -> str:
    """Return the call that kills a process, which needs its pid without pidfds."""
    return str(request.param)


@pytest.fixture
def processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, means: str) -> FakeProcesses:
    return FakeProcesses(tmp_path, monkeypatch, pidfds=means == "pidfd")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def end_marked(processes: FakeProcesses, clock: Clock) -> Callable[[], None]:
    return functools.partial(sessions.end_marked, MARK, proc=processes.proc, sleep=clock.sleep, now=clock.now)


def test_processes_with_all_marks_are_killed_and_no_others(
    processes: FakeProcesses, means: str, end_marked: Callable[[], None], caplog: pytest.LogCaptureFixture
) -> None:
    """Also on Linux < 5.3, where pidfd_open(2) is not implemented."""
    marked = processes.start({"HOME": "/", **MARK})
    others = [
        processes.start({**MARK, "JPSI_PILOT_JOB": "played-10"}),
        processes.start({"JPSI_PILOT_JOB": "played-1"}),
        processes.start({}),
    ]

    end_marked()

    assert processes.killed == [(marked, means)]
    assert all(map(processes.is_alive, others))
    assert not caplog.records


def test_a_process_with_a_reused_pid_is_not_killed(
    processes: FakeProcesses, end_marked: Callable[[], None]
) -> None:
    pid = processes.start(MARK)
    processes.before_kill = lambda it: void(processes.start({}, pid=it, start=2))

    end_marked()

    assert processes.is_alive(pid)
    assert not processes.killed


def test_a_process_that_ends_by_itself_before_it_is_killed_is_no_error(
    processes: FakeProcesses, end_marked: Callable[[], None], caplog: pytest.LogCaptureFixture
) -> None:
    processes.start(MARK)
    processes.before_kill = processes.end

    end_marked()

    assert not processes.killed
    assert not caplog.records


def test_children_of_a_killed_process_are_killed_as_well(
    processes: FakeProcesses, end_marked: Callable[[], None]
) -> None:
    parent = processes.start(MARK)
    children: list[int] = []

    def die() -> None:
        children.append(processes.start(MARK))
        processes.end(parent)

    processes.deaths[parent] = die

    end_marked()

    assert [pid for pid, _ in processes.killed] == [parent, *children]
    assert not any(map(processes.is_alive, children))


def test_a_process_that_does_not_end_is_killed_once_and_left_with_a_warning_after_a_timeout(
    processes: FakeProcesses,
    means: str,
    end_marked: Callable[[], None],
    clock: Clock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Such as one that waits for a file server, which no signal interrupts."""
    stuck = processes.start(MARK)
    processes.deaths[stuck] = lambda: None
    other = processes.start(MARK)

    end_marked()

    assert sorted(processes.killed) == [(stuck, means), (other, means)]
    assert 0 < clock.time < 2
    (record,) = caplog.records
    assert record.getMessage().endswith(f"and are left running: {stuck}")
    assert "JPSI_PILOT_JOB=played-1" in record.getMessage()


def test_a_process_that_may_not_be_killed_is_not_waited_for_and_others_are_killed(
    processes: FakeProcesses,
    end_marked: Callable[[], None],
    clock: Clock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    foreign, own = processes.start(MARK), processes.start(MARK)
    processes.deaths[foreign] = refuse

    end_marked()

    assert sorted(pid for pid, _ in processes.killed) == [foreign, own]
    assert not processes.is_alive(own)
    assert clock.time < 0.1
    (record,) = caplog.records
    assert record.getMessage().endswith(f"and are left running: {foreign}")


def test_killing_stops_at_the_timeout_if_processes_keep_starting_others(
    processes: FakeProcesses, end_marked: Callable[[], None], clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    def start() -> None:
        pid = processes.start(MARK)

        def die() -> None:
            start()
            processes.end(pid)

        processes.deaths[pid] = die

    start()

    end_marked()

    assert clock.time < 2
    assert len(caplog.records) == 1


def test_nothing_is_killed_without_proc(end_marked: Callable[[], None], processes: FakeProcesses) -> None:
    processes.proc.rmdir()

    end_marked()

    assert not processes.killed


def test_an_empty_set_of_marks_is_refused(processes: FakeProcesses) -> None:
    pid = processes.start({})

    with pytest.raises(ValueError, match="needs a variable"):
        sessions.end_marked({}, proc=processes.proc)

    assert processes.is_alive(pid)


def refuse() -> None:
    raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))


def void(_: object) -> None:
    """Do nothing."""
