"""The plugin for pytest: fixtures, which import their modules on first use, and the end of left clients."""

from __future__ import annotations

import contextlib
import gc
import os
import threading
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from jpsi.plugin import Transport
    from jpsi_testing.fake import FakeClock, FakeScheduler, FakeSystem
    from jpsi_testing.plugin_directory import PluginDirectory

pytest.register_assert_rewrite("jpsi_testing")

# The name of the threads that query a batch system, and how long to wait for their ends: a fixture of several
# tests may keep a client.
_POLLING, _LEAVING_SECONDS = "jpsi-batch-poll", 5.0


def pytest_configure(config: pytest.Config) -> None:
    """Register the marks of conformance tests."""
    config.addinivalue_line(
        "markers", "clause(*ids): clauses of the J/PSI specification that the test proves"
    )
    config.addinivalue_line("markers", "alone: nothing runs beside it")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """End the clients that a test leaves behind: they would query the fake batch system of the next one.

    A client ends with the last reference to it; those in cycles last until garbage is collected.
    """
    others = set(threading.enumerate())
    is_run = yield
    deadline = time.monotonic() + _LEAVING_SECONDS
    while any(it.name == _POLLING for it in threading.enumerate() if it not in others):
        # a thread of the client may hold a reference for a moment
        gc.collect()
        if time.monotonic() > deadline:
            break
        time.sleep(0.05)
    return is_run


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what conformance tests exercised of each executor or launcher, and what not and why."""
    from jpsi_testing.conformance import format_table, read_outcomes  # noqa: PLC0415  on first use

    if lines := format_table(read_outcomes(terminalreporter.stats)):
        terminalreporter.section("conformance")
        terminalreporter.write("".join(f"{line}\n" for line in lines))


@pytest.fixture
def fake_clock() -> FakeClock:
    """Return a clock that stands still until the test advances it."""
    from jpsi_testing.fake import FakeClock  # noqa: PLC0415  on first use

    return FakeClock()


@pytest.fixture
def fake_scheduler(fake_clock: FakeClock) -> Iterator[FakeScheduler]:
    """Yield a fake batch system in the time of `fake_clock`; its jobs are simulated, and take a minute."""
    from jpsi_testing.fake import FakeScheduler, Outcome  # noqa: PLC0415

    with FakeScheduler(fake_clock, outcome=Outcome(seconds=60)) as scheduler:
        yield scheduler


@pytest.fixture
def fake_commands(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., FakeScheduler]]:
    """Yield a function that puts the commands of a fake batch system on PATH until the end of the test.

    Call it with the name of the batch system, and optionally a scheduler of your own; it returns the
    scheduler. By default jobs run as real processes in real time. `XDG_STATE_HOME` is a directory
    of the test, so that jpsi's files do not mix with the user's.
    """
    from jpsi_testing.fake import on_path  # noqa: PLC0415

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
    with contextlib.ExitStack() as stack:

        def put(fake_system: str | FakeSystem, scheduler: FakeScheduler | None = None) -> FakeScheduler:
            return stack.enter_context(on_path(fake_system, scheduler))

        yield put


@pytest.fixture
def here() -> Transport:
    """Return the transport of this machine, as `open_transport` returns it."""
    from jpsi_engine.host import LocalTransport  # noqa: PLC0415

    return LocalTransport()


@pytest.fixture
def plugin_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PluginDirectory:
    """Return a directory on the plugin path; a test adds plugins by its `add`."""
    from jpsi_testing.plugin_directory import PluginDirectory  # noqa: PLC0415

    path = tmp_path / "plugins"
    others = os.environ.get("JPSI_PLUGIN_PATH")
    monkeypatch.setenv("JPSI_PLUGIN_PATH", os.pathsep.join(filter(None, [str(path), others])))
    return PluginDirectory(path)
