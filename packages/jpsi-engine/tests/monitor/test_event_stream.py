"""The event stream of a batch system runs while there are jobs, and jpsi never relies on it."""

from __future__ import annotations

import gc
import signal
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import cast

import attrs
import pluggy
import pytest

from jpsi.contract.command import Command
from jpsi.contract.config import BatchConfig
from jpsi.contract.engine import EngineSetup, Submission
from jpsi.contract.hookspecs import PROJECT, ExecutorHooks, hookimpl
from jpsi.contract.shell import ShellLine
from jpsi.contract.transport import Lines
from jpsi.layers import default_hooks
from jpsi.model.errors import PluginError, TransportError
from jpsi.model.spec import JobSpec
from jpsi_engine.batch import BatchEngine
from jpsi_engine.host.local_transport import ProcessLines
from jpsi_engine.host.reentrant_event import ReentrantEvent
from jpsi_engine.monitor.event_stream import EventStream
from jpsi_testing import FakeTransport, toy, toy_fake
from jpsi_testing.fake import FakeClock, FakeScheduler, Outcome
from jpsi_testing.threads import in_this_thread

PATIENCE = 30.0
HOUR = 3600.0


class FakeLines:
    """Lines that a test puts; None ends them."""

    def __init__(self, *lines: str) -> None:
        self.lines: SimpleQueue[str | None] = SimpleQueue()
        for line in lines:
            self.lines.put(line)
        self.closed = threading.Event()

    def __iter__(self) -> Iterator[str]:
        return iter(self.lines.get, None)

    def close(self) -> None:
        self.closed.set()
        self.lines.put(None)


@attrs.define
class FakeSource:
    """The arguments of an `EventStream`, and records of its calls."""

    streams: list[FakeLines | Exception] = attrs.field(factory=list)
    is_wanted: bool = True
    on_event: SimpleQueue[Collection[str]] = attrs.field(factory=SimpleQueue)
    pauses: SimpleQueue[float] = attrs.field(factory=SimpleQueue)
    done: threading.Event = attrs.field(factory=threading.Event)

    def listen(self) -> Lines:
        if not self.streams:
            self.is_wanted = False
            msg = "there are no more streams"
            raise TransportError(msg)
        stream = self.streams.pop(0)
        if isinstance(stream, Exception):
            raise stream
        return stream

    @staticmethod
    def parse(line: str) -> list[str]:
        if line == "malformed line":
            msg = "malformed"
            raise PluginError(msg)
        return line.split()

    def wait(self, closed: ReentrantEvent, seconds: float) -> None:
        self.pauses.put(seconds)
        if closed.is_set():
            self.done.set()

    def event_stream(self) -> EventStream:
        return EventStream(self.listen, self.parse, lambda: self.is_wanted, self.on_event.put, self.wait)

    def all_pauses(self) -> list[float]:
        return [self.pauses.get(timeout=PATIENCE) for _ in range(self.pauses.qsize())]


def join_threads() -> None:
    for thread in threading.enumerate():
        if thread.name == "jpsi-event-stream":
            thread.join(PATIENCE)


def test_events_are_passed_on_and_malformed_lines_are_skipped() -> None:
    lines = FakeLines("1 2", "", "malformed line", "3")
    lines.lines.put(None)
    source = FakeSource([lines])
    event_stream = source.event_stream()

    event_stream.start()
    join_threads()

    assert [source.on_event.get_nowait() for _ in range(source.on_event.qsize())] == [["1", "2"], ["3"]]
    assert lines.closed.is_set()


def test_a_command_without_events_is_restarted_with_backoff() -> None:
    silent: list[FakeLines | Exception] = [
        TransportError("no"),
        FakeLines(),
        FakeLines(""),
        TransportError("no"),
        FakeLines("1"),
    ]
    for stream in silent:
        if isinstance(stream, FakeLines):
            stream.lines.put(None)
    source = FakeSource([*silent, *[TransportError("no") for _ in range(7)]])
    event_stream = source.event_stream()

    event_stream.start()
    join_threads()

    again = [5.0, 20.0, 80.0, 320.0, 1280.0, 3600.0, 3600.0]
    assert source.all_pauses() == [5.0, 20.0, 80.0, 320.0, 5.0, *again, 3600.0]


def test_no_command_is_started_again_while_the_program_exits() -> None:
    """The finalizer of a stream that still exists is called at exit."""
    lines, further = FakeLines("1"), FakeLines()
    source = FakeSource([lines, further])
    event_stream = source.event_stream()
    event_stream.start()
    assert source.on_event.get(timeout=PATIENCE) == ["1"]

    event_stream._open_stream.close()
    join_threads()

    assert lines.closed.is_set()
    assert source.streams == [further]


def test_the_stream_ends_when_no_jobs_are_left() -> None:
    lines = FakeLines("1")
    source = FakeSource([lines])
    event_stream = source.event_stream()
    event_stream.start()
    assert source.on_event.get(timeout=PATIENCE) == ["1"]

    source.is_wanted = False
    lines.lines.put("")
    join_threads()

    assert lines.closed.is_set()
    assert source.pauses.empty()


def test_the_stream_starts_again_with_new_jobs() -> None:
    source = FakeSource([FakeLines("1"), FakeLines("2")], is_wanted=False)
    event_stream = source.event_stream()
    event_stream.start()
    join_threads()
    assert len(source.streams) == 2

    source.is_wanted = True
    event_stream.start()

    assert source.on_event.get(timeout=PATIENCE) == ["1"]
    del event_stream


def test_the_command_ends_with_the_executor() -> None:
    lines = FakeLines("1")
    source = FakeSource([lines])
    event_stream = source.event_stream()
    event_stream.start()
    event_stream.start()
    assert source.on_event.get(timeout=PATIENCE) == ["1"]

    del event_stream
    gc.collect()

    assert lines.closed.wait(PATIENCE)
    join_threads()


# ------------------------------------------------------------------------------------------- processes


def shell(text: str) -> ProcessLines:
    return ProcessLines(Command(["/bin/sh"], stdin=text))


def test_lines_are_read_as_they_come() -> None:
    assert list(shell("echo a; printf 'b\\377\\nc'")) == ["a", "b\N{REPLACEMENT CHARACTER}", "c"]


def test_close_ends_a_process_and_its_children() -> None:
    lines = shell("sleep 1000 & echo up; wait")
    read = iter(lines)
    assert next(read) == "up"

    lines.close()

    assert list(read) == []
    assert lines._process.returncode == -signal.SIGKILL
    lines.close()


def test_close_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Garbage collection may call it in a thread that holds any lock and may not sleep."""
    lines = shell("echo up; sleep 1000")
    read = iter(lines)
    assert next(read) == "up"

    with monkeypatch.context() as patched:
        patched.setattr(time, "sleep", in_this_thread(lambda _: pytest.fail("it has slept"), time.sleep))
        with lines._lock:
            lines.close()
        lines.close()

    assert list(read) == []
    assert lines._process.returncode == -signal.SIGKILL


def test_a_reader_that_stops_leaves_no_process_behind() -> None:
    lines = shell("echo up; sleep 1000")
    for _ in lines:
        break
    gc.collect()

    assert lines._process.returncode == -signal.SIGKILL


def test_a_missing_command_is_an_error() -> None:
    with pytest.raises(TransportError, match="was not found"):
        ProcessLines(Command(["/no/such/command"]))


# ------------------------------------------------------------------------------------------ the engine


class LineFake(FakeTransport):
    """A transport to a fake batch system whose event stream has the lines of a test."""

    def __init__(self, scheduler: FakeScheduler, lines: FakeLines) -> None:
        super().__init__(scheduler, toy_fake)
        self.lines = lines
        self.has_opened = threading.Event()

    def open(self, command: Command) -> Lines:
        assert command.argv == ("ttell",)
        self.has_opened.set()
        return self.lines


class EventHooks:
    """A layer over the toy with an event stream."""

    @hookimpl
    def watch(self) -> Command:
        return Command(["ttell"])

    @hookimpl
    def parse_event(self, line: str) -> Sequence[str]:
        return line.split()


@pytest.fixture
def scheduler() -> Iterator[FakeScheduler]:
    with FakeScheduler(FakeClock(), slots=1, outcome=Outcome(60)) as scheduler:
        yield scheduler


def engine(root: Path, scheduler: FakeScheduler, lines: FakeLines) -> tuple[BatchEngine, LineFake]:
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(ExecutorHooks)
    for layer in (default_hooks, toy, EventHooks()):
        manager.register(layer)
    transport = LineFake(scheduler, lines)
    setup = EngineSetup(
        executor="toy",
        version="1",
        config=BatchConfig(work_directory=root),
        transport=transport,
        publish=lambda job_id, status: None,
        process_engine=lambda setup: pytest.fail("a batch system needs no processes"),
    )
    return BatchEngine(setup, cast("ExecutorHooks", manager.hook)), transport


def test_an_event_of_a_job_makes_a_poll_due_soon(tmp_path: Path, scheduler: FakeScheduler) -> None:
    """An event of an unknown job does not."""
    tested, _ = engine(tmp_path, scheduler, FakeLines())
    spec = JobSpec("/bin/true", directory=tmp_path)
    native_id = tested.submit(Submission(job_id="a1", attempt=1, spec=spec, launch=[ShellLine('exec "$@"')]))
    monitor, _ = tested._open()
    poll_interval = monitor._poll_interval
    poll_interval._interval = HOUR
    now = time.monotonic()
    poll_interval.note_poll(now, now)
    event_stream = tested._receivers[-1]
    assert isinstance(event_stream, EventStream)

    event_stream._handle_line("999")
    assert poll_interval.next_poll_time() > time.monotonic() + HOUR / 2
    event_stream._handle_line(f"998 {native_id}")
    assert poll_interval.next_poll_time() < time.monotonic() + HOUR / 2


def test_the_engine_reads_events_while_it_follows_jobs(tmp_path: Path, scheduler: FakeScheduler) -> None:
    lines = FakeLines()
    tested, transport = engine(tmp_path, scheduler, lines)
    spec = JobSpec("/bin/true", directory=tmp_path)
    tested.submit(Submission(job_id="a1", attempt=1, spec=spec, launch=[ShellLine('exec "$@"')]))

    tested.track("a1")

    assert transport.has_opened.wait(PATIENCE)
    del tested
    # a thread in the middle of a poll holds it for a moment
    assert any(gc.collect() >= 0 and lines.closed.wait(0.1) for _ in range(int(10 * PATIENCE)))


def test_a_backend_without_events_has_no_stream(tmp_path: Path, scheduler: FakeScheduler) -> None:
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(ExecutorHooks)
    for layer in (default_hooks, toy):
        manager.register(layer)
    setup = EngineSetup(
        executor="toy",
        version="1",
        config=BatchConfig(work_directory=tmp_path),
        transport=LineFake(scheduler, FakeLines()),
        publish=lambda job_id, status: None,
        process_engine=lambda setup: pytest.fail("a batch system needs no processes"),
    )
    tested = BatchEngine(setup, cast("ExecutorHooks", manager.hook))
    tested._open()

    assert not any(isinstance(it, EventStream) for it in tested._receivers)
    assert default_hooks.parse_event() == ()
