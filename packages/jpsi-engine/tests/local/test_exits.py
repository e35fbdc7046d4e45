"""The exit watch: it reports every exit once, even if descriptors or threads run short."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from jpsi_engine.host.procfs import ProcessId, identify
from jpsi_engine.local import exits
from jpsi_engine.local.exits import Exit, ExitWatch

PATIENCE = 30
#: Seconds for events that happen within a tenth of it.
SHORT = 3

#: Limits of pidfds: enough for all, for one at a time, and for none.
LIMITS = pytest.mark.parametrize("limit", [1000, 1, 0], ids="limit {}".format)


@attrs.define
class Child:
    """A process that waits until a test ends it, and then exits with a code."""

    pid: int
    input: int

    @property
    def process(self) -> ProcessId:
        found = identify(self.pid)
        assert found is not None
        return found

    def end(self) -> None:
        os.close(self.input)
        self.input = -1


class Children:
    """The processes of one test."""

    def __init__(self) -> None:
        self.all: list[Child] = []

    def start(self, code: int = 0) -> Child:
        reader, writer = os.pipe()
        pid = os.posix_spawn(
            "/bin/sh",
            ["sh", "-c", f"read x; exit {code}"],
            {},
            file_actions=[(os.POSIX_SPAWN_DUP2, reader, 0)],
            setsigdef=[signal.SIGCHLD],
        )
        os.close(reader)
        self.all.append(Child(pid, writer))
        return self.all[-1]

    def clean_up(self) -> None:
        for child in self.all:
            if child.input >= 0:
                child.end()
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child.pid, 0)


@pytest.fixture
def children() -> Iterator[Children]:
    made = Children()
    yield made
    made.clean_up()


@attrs.define(eq=False)
class Sink:
    """A sink that records its calls."""

    events: str
    #: Called for each report, before it is recorded.
    on_ended: Callable[[list[Exit]], None] = lambda _: None
    on_marked: Callable[[list[Any]], None] = lambda _: None
    #: True if an exit does not suffice.
    wants_more: Callable[[Exit], bool] = lambda _: False
    exits: list[Exit] = attrs.field(factory=list)
    markings: list[list[Any]] = attrs.field(factory=list)
    changed: threading.Condition = attrs.field(factory=threading.Condition)

    def on_exits(self, exits: list[Exit]) -> list[Any]:
        self.on_ended(exits)
        with self.changed:
            self.exits += exits
            self.changed.notify_all()
        return [exit_.token for exit_ in exits if self.wants_more(exit_)]

    def on_markers(self, tokens: list[Any]) -> None:
        self.on_marked(tokens)
        with self.changed:
            self.markings.append(tokens)
            self.changed.notify_all()

    def wait_for(self, *tokens: object, timeout_seconds: float = PATIENCE) -> list[Exit]:
        """Wait until exits of these tokens were reported, and return all reports."""
        with self.changed:
            is_complete = self.changed.wait_for(
                lambda: set(tokens) <= {exit_.token for exit_ in self.exits}, timeout_seconds
            )
            missing = set(tokens) - {exit_.token for exit_ in self.exits}
            assert is_complete, f"no report of {missing}"
            return list(self.exits)


@pytest.fixture
def sink(tmp_path: Path) -> Sink:
    (tmp_path / "events").mkdir()
    return Sink(str(tmp_path / "events"))


@pytest.fixture(autouse=True)
def short_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the watch scan often, so that no test waits for it."""
    monkeypatch.setattr(exits, "_SCAN_SECONDS", 0.02)
    monkeypatch.setattr(exits, "_ANNOUNCED_SECONDS", 0.02)
    monkeypatch.setattr(exits, "_STATUS_RETRY_SECONDS", 0.002)
    monkeypatch.setattr(exits, "_FAILED_SECONDS", 0.02)


def settle(watch: ExitWatch) -> None:
    """Let the watch complete one more round, in which it would report an exit twice."""
    for _ in range(2):
        gone_round = threading.Event()
        watch.call_later(0.03, gone_round.set)
        assert gone_round.wait(PATIENCE)


def statuses(exits: list[Exit]) -> dict[Any, int | None]:
    assert [token for token, count in Counter(exit_.token for exit_ in exits).items() if count > 1] == []
    return {exit_.token: exit_.wait_status for exit_ in exits}


# ------------------------------------------------------------------------------------ every exit, once


@LIMITS
def test_every_exit_is_reported_once_with_its_code(children: Children, sink: Sink, limit: int) -> None:
    watch = ExitWatch(limit)
    started = [children.start(code) for code in range(40)]
    for token, child in enumerate(started):
        watch.watch(child.process, sink, token, is_child=True)

    for child in reversed(started):
        child.end()

    sink.wait_for(*range(40))
    settle(watch)
    assert statuses(sink.exits) == {code: code << 8 for code in range(40)}


def test_exits_are_reported_on_a_system_without_pidfds(
    children: Children, sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    watch = ExitWatch()
    started = [children.start(code) for code in range(10)]

    for token, child in enumerate(started):
        watch.watch(child.process, sink, token, is_child=True)
        child.end()

    sink.wait_for(*range(10))
    settle(watch)
    assert statuses(sink.exits) == {code: code << 8 for code in range(10)}


@pytest.mark.parametrize("room", [0, 1, 5])
def test_a_lack_of_descriptors_loses_no_exit(
    children: Children, sink: Sink, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    """Other users of descriptors leave fewer than the limit allows."""
    taken, pidfd_open = [0], os.pidfd_open

    def sparse(pid: int) -> int:
        taken[0] += 1
        if taken[0] > room:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return pidfd_open(pid)

    monkeypatch.setattr(os, "pidfd_open", sparse)
    watch = ExitWatch(1000)
    started = [children.start(code) for code in range(12)]
    for token, child in enumerate(started):
        watch.watch(child.process, sink, token, is_child=True)

    for child in started:
        child.end()

    sink.wait_for(*range(12))
    settle(watch)
    assert statuses(sink.exits) == {code: code << 8 for code in range(12)}


@LIMITS
def test_exits_of_processes_added_by_many_threads_are_all_reported(
    children: Children, sink: Sink, limit: int
) -> None:
    watch = ExitWatch(limit)
    started = [children.start() for _ in range(24)]

    def work(which: int) -> None:
        for token in range(which, 24, 4):
            watch.watch(started[token].process, sink, token, is_child=True)
            started[token].end()

    threads = [threading.Thread(target=work, args=(which,)) for which in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    sink.wait_for(*range(24))
    settle(watch)
    assert statuses(sink.exits) == dict.fromkeys(range(24), 0)


@LIMITS
def test_a_process_killed_by_a_signal_is_reported_with_that_signal(
    children: Children, sink: Sink, limit: int
) -> None:
    watch, child = ExitWatch(limit), children.start()
    watch.watch(child.process, sink, 1, is_child=True)

    os.kill(child.pid, signal.SIGKILL)

    (found,) = sink.wait_for(1)
    assert found.wait_status is not None
    assert os.waitstatus_to_exitcode(found.wait_status) == -signal.SIGKILL


@LIMITS
def test_a_zombie_is_reported_at_once_with_its_code(children: Children, sink: Sink, limit: int) -> None:
    child = children.start(7)
    process = child.process
    child.end()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

    ExitWatch(limit).watch(process, sink, 1, is_child=True)

    assert statuses(sink.wait_for(1)) == {1: 7 << 8}


@LIMITS
@pytest.mark.parametrize("is_child", [True, False], ids=["child", "stranger"])
def test_a_process_that_is_gone_is_reported_at_once(
    children: Children, sink: Sink, limit: int, is_child: bool
) -> None:
    child = children.start(7)
    process = child.process
    child.end()
    os.waitpid(child.pid, 0)

    ExitWatch(limit).watch(process, sink, 1, is_child=is_child)

    (found,) = sink.wait_for(1)
    assert found == Exit(1, None, is_last=True)


@LIMITS
def test_a_process_with_a_reused_pid_is_not_waited_for(children: Children, sink: Sink, limit: int) -> None:
    """The watched process ended long ago; the other one keeps running."""
    other = children.start().process

    ExitWatch(limit).watch(attrs.evolve(other, start=other.start - 1), sink, 1, is_child=False)

    (found,) = sink.wait_for(1, timeout_seconds=SHORT)
    assert found == Exit(1, None, is_last=True)


@LIMITS
def test_a_process_of_another_parent_is_reported(sink: Sink, limit: int) -> None:
    parent = subprocess.Popen(
        ["sh", "-c", "exec 3<&0; { read x <&3; exit 7; } & echo $!; wait"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    process = identify(int(parent.stdout.readline()))
    assert process is not None

    ExitWatch(limit).watch(process, sink, 1, is_child=False)
    parent.communicate("\n")

    (found,) = sink.wait_for(1)
    # Linux reports its code since 6.15, and only through a pidfd
    assert found.wait_status in (None, 7 << 8)


def test_an_exit_that_does_not_suffice_is_reported_again_until_it_is_the_last(
    children: Children, sink: Sink
) -> None:
    sink.wants_more = lambda exit_: not exit_.is_last
    watch, child = ExitWatch(1), children.start()
    watch.watch(child.process, sink, 1, is_child=True)

    child.end()

    with sink.changed:
        assert sink.changed.wait_for(lambda: sink.exits and sink.exits[-1].is_last, PATIENCE)
    settle(watch)
    assert [exit_.is_last for exit_ in sink.exits] == [False] * (len(sink.exits) - 1) + [True]
    assert len(sink.exits) > 1


@pytest.mark.parametrize("limit", [1000, 1])
def test_application_that_collects_every_child_steals_no_exit(
    children: Children, sink: Sink, limit: int
) -> None:
    watch = ExitWatch(limit)
    started = [children.start(code) for code in range(20)]
    for token, child in enumerate(started):
        watch.watch(child.process, sink, token, is_child=True)

    for child in started:
        child.end()
    deadline = time.monotonic() + PATIENCE
    while len(sink.exits) < 20 and time.monotonic() < deadline:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)

    sink.wait_for(*range(20))
    settle(watch)
    # the code may be lost, or the kernel reports it; it is never wrong
    assert all(status in (None, code << 8) for code, status in statuses(sink.exits).items())


@LIMITS
def test_every_exit_is_reported_to_an_application_that_ignores_its_children(
    children: Children, sink: Sink, limit: int
) -> None:
    watch = ExitWatch(limit)
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        for token in range(10):
            child = children.start(token)
            process = child.process
            if token % 2:
                child.end()
            watch.watch(process, sink, token, is_child=True)
            if not token % 2:
                child.end()

        sink.wait_for(*range(10))
    finally:
        signal.signal(signal.SIGCHLD, before)
    settle(watch)
    assert all(status in (None, code << 8) for code, status in statuses(sink.exits).items())


# ----------------------------------------------------------------------------- without descriptors


def test_markers_are_watched_for_processes_without_pidfd(
    children: Children, sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exits, "_ANNOUNCED_SECONDS", 1000)
    watch = ExitWatch(1)
    for token in ("first", "second", "third"):
        watch.watch(children.start().process, sink, token, is_child=True)
    with sink.changed:  # the watch on the directory starts before the scan
        assert sink.changed.wait_for(lambda: sink.markings, PATIENCE)
        sink.markings.clear()

    Path(sink.events, "second.1.exit.run.0").touch()

    with sink.changed:
        assert sink.changed.wait_for(lambda: sink.markings, PATIENCE)
    assert sink.markings[-1] == ["second", "third"]
    assert sink.exits == []


def test_directories_without_notification_are_scanned_for_markers(children: Children, tmp_path: Path) -> None:
    sink = Sink(str(tmp_path / "missing"))
    watch = ExitWatch(1)
    for token in ("first", "second"):
        watch.watch(children.start().process, sink, token, is_child=True)

    with sink.changed:
        assert sink.changed.wait_for(lambda: len(sink.markings) >= 3, PATIENCE)
    assert sink.markings[-1] == ["second"]


def test_a_process_without_pidfd_that_ends_without_marker_is_reported(children: Children, sink: Sink) -> None:
    """A job that was cancelled or killed must not wait for the end of one that runs for days."""
    watch = ExitWatch(1)
    _, postponed = (children.start(), children.start(7))
    for token, child in enumerate(children.all):
        watch.watch(child.process, sink, token, is_child=True)

    postponed.end()

    assert statuses(sink.wait_for(1, timeout_seconds=SHORT)) == {1: 7 << 8}


def test_the_pidfd_of_an_ended_process_goes_to_the_next(
    children: Children, sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The watch then gets a notification of its exit, and does not wait for the next scan."""
    monkeypatch.setattr(exits, "_ANNOUNCED_SECONDS", 1000)
    watch = ExitWatch(2)
    for token in range(6):
        watch.watch(children.start(token).process, sink, token, is_child=True)
    with sink.changed:  # the first look, after which there is no other
        assert sink.changed.wait_for(lambda: sink.markings, PATIENCE)

    for token, child in enumerate(children.all):
        child.end()
        sink.wait_for(token)

    assert statuses(sink.exits) == {code: code << 8 for code in range(6)}


def test_a_pidfd_that_becomes_free_while_a_process_is_postponed_is_used(
    children: Children, sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = ExitWatch(1)
    first, second = children.start(), children.start(7)
    watch.watch(first.process, sink, "first", is_child=True)
    monkeypatch.setattr(exits, "_ANNOUNCED_SECONDS", 1000)
    watch.watch(second.process, sink, "second", is_child=True)
    settle(watch)  # the first look, after which there is no other
    first.end()
    sink.wait_for("first")
    second.end()

    sink.wait_for("second", timeout_seconds=SHORT)


# --------------------------------------------------------------------------------------------- sinks


def raising(times: int) -> Callable[[object], None]:
    left = [times]

    def fail(_: object) -> None:
        if left[0] > 0:
            left[0] -= 1
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    return fail


@LIMITS
def test_a_sink_that_raises_does_not_affect_others(
    children: Children, sink: Sink, tmp_path: Path, limit: int
) -> None:
    bad = Sink(str(tmp_path), on_ended=raising(1000), on_marked=raising(1000))
    watch = ExitWatch(limit)
    started = [children.start() for _ in range(6)]
    for token, child in enumerate(started):
        watch.watch(child.process, bad if token % 2 else sink, token, is_child=True)

    for child in reversed(started):
        child.end()

    sink.wait_for(0, 2, 4, timeout_seconds=SHORT)
    # otherwise the watch would log during later tests
    bad.on_ended = bad.on_marked = lambda _: None
    bad.wait_for(1, 3, 5)


@LIMITS
def test_a_report_to_a_sink_that_raised_once_is_repeated(children: Children, sink: Sink, limit: int) -> None:
    """The cause, such as a full table of descriptors, may pass; the sink did not get the exit."""
    sink.on_ended = raising(1)
    watch = ExitWatch(limit)
    started = [children.start(7) for _ in range(3)]
    for token, child in enumerate(started):
        watch.watch(child.process, sink, token, is_child=True)

    for child in started:
        child.end()

    sink.wait_for(0, 1, 2, timeout_seconds=SHORT)


@pytest.mark.parametrize("limit", [1, 0])
def test_a_sink_that_could_not_read_markers_once_is_called_again(
    children: Children, sink: Sink, limit: int
) -> None:
    sink.on_marked = raising(1)
    watch = ExitWatch(limit)
    for token in range(3):
        watch.watch(children.start().process, sink, token, is_child=True)

    with sink.changed:
        assert sink.changed.wait_for(lambda: sink.markings, SHORT)


# ------------------------------------------------------------------------------------------- timers


def test_timers_fire_in_the_order_of_their_times() -> None:
    watch = ExitWatch(0)
    fired: list[float] = []
    done = threading.Event()

    for seconds in (0.03, 0.01, 0.02, 0, 0.04):
        watch.call_later(seconds, lambda seconds=seconds: fired.append(seconds))  # type: ignore[misc]
    watch.call_later(0.05, done.set)

    assert done.wait(PATIENCE)
    assert fired == [0, 0.01, 0.02, 0.03, 0.04]


def test_timer_never_fires_early() -> None:
    watch = ExitWatch(0)
    late: list[float] = []
    done = threading.Event()
    start = time.monotonic()

    for seconds in (0.02, 0.05):
        due = start + seconds
        watch.call_later(seconds, lambda due=due: late.append(time.monotonic() - due))  # type: ignore[misc]
    watch.call_later(0.05, done.set)

    assert done.wait(PATIENCE)
    assert min(late) >= 0


def test_timers_set_by_many_threads_all_fire() -> None:
    watch = ExitWatch(0)
    fired = threading.Semaphore(0)

    def work() -> None:
        for number in range(100):
            watch.call_later(number % 3 / 1000, fired.release)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    for _ in range(400):
        assert fired.acquire(timeout=PATIENCE)


def test_a_timer_that_raises_affects_nothing_else(
    children: Children, sink: Sink, caplog: pytest.LogCaptureFixture
) -> None:
    watch, child = ExitWatch(1), children.start(3)
    watch.watch(child.process, sink, 1, is_child=True)

    failed = []

    def fail() -> None:
        if not failed:
            failed.append(1)
            msg = "on purpose"
            raise ValueError(msg)

    watch.call_later(0, fail)
    child.end()

    assert statuses(sink.wait_for(1)) == {1: 3 << 8}
    settle(watch)
    assert "on purpose" in caplog.text


@pytest.mark.parametrize("days", [25, 999_999_999])
def test_a_timer_in_the_distant_future_affects_nothing_else(
    children: Children, sink: Sink, days: int
) -> None:
    """A job may have any duration; a system call waits at most 24 days."""
    watch, child = ExitWatch(1), children.start(3)

    watch.call_later(days * 86_400.0, lambda: None)
    watch.watch(child.process, sink, 1, is_child=True)
    child.end()

    assert statuses(sink.wait_for(1, timeout_seconds=SHORT)) == {1: 3 << 8}


# ----------------------------------------------------------------------------- one watch per process


def test_process_has_one_watch() -> None:
    assert exits.shared_watch() is exits.shared_watch()


def test_watch_needs_no_descriptors_after_the_processes_are_gone(children: Children, sink: Sink) -> None:
    watch = ExitWatch(1000)
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208  numbers
    for token in range(10):
        watch.watch(children.start().process, sink, token, is_child=True)

    for child in children.all:
        child.end()
    sink.wait_for(*range(10))
    settle(watch)

    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


FORKED = """
import os, sys, threading
from jpsi_engine.local import exits

fired = threading.Event()
parents = exits.shared_watch()
pid = os.fork()
if pid == 0:
    exits.shared_watch().call_later(0, fired.set)
    os._exit(0 if fired.wait(30) and exits.shared_watch() is not parents else 1)
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
parents.call_later(0, fired.set)
sys.exit(code if fired.wait(30) else 2)
"""


def test_a_forked_child_has_its_own_watch() -> None:
    result = subprocess.run([sys.executable, "-W", "ignore", "-c", FORKED], check=False)

    assert result.returncode == 0
