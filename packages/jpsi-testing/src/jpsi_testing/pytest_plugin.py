"""What pytest offers wherever jpsi is installed; no fixture imports anything before it is used."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from jpsi.plugin import Transport
    from jpsi_testing.fake import Dialect, FakeClock, FakeScheduler
    from jpsi_testing.plugin_directory import PluginDirectory

pytest.register_assert_rewrite("jpsi_testing")


def pytest_configure(config: pytest.Config) -> None:
    """Make known the marker that tests of the conformance classes have."""
    config.addinivalue_line(
        "markers", "clause(*ids): clauses of the J/PSI specification that the test proves"
    )


@pytest.fixture
def fake_clock() -> FakeClock:
    """A clock that stands still until the test advances it."""
    from jpsi_testing.fake import FakeClock  # noqa: PLC0415  as the module says

    return FakeClock()


@pytest.fixture
def fake_scheduler(fake_clock: FakeClock) -> Iterator[FakeScheduler]:
    """A fake batch system that `fake_clock` moves; its jobs are played, and take a minute."""
    from jpsi_testing.fake import FakeScheduler, Outcome  # noqa: PLC0415

    with FakeScheduler(fake_clock, outcome=Outcome(seconds=60)) as scheduler:
        yield scheduler


@pytest.fixture
def fake_commands(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., FakeScheduler]]:
    """Puts the commands of a fake batch system on PATH until the end of the test.

    Call it with the name of the batch system, and a scheduler of your own if you like; it returns the
    scheduler. As it comes, jobs run as real processes in real time. What jpsi keeps of jobs stays apart from
    the user's own meanwhile: `XDG_STATE_HOME` is a directory of the test's.
    """
    from jpsi_testing.fake import on_path  # noqa: PLC0415

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
    with contextlib.ExitStack() as stack:

        def put(dialect: str | Dialect, scheduler: FakeScheduler | None = None) -> FakeScheduler:
            return stack.enter_context(on_path(dialect, scheduler))

        yield put


@pytest.fixture
def here() -> Transport:
    """The transport of this machine, as `open_transport` gets it."""
    from jpsi_engine.host import LocalTransport  # noqa: PLC0415

    return LocalTransport()


@pytest.fixture
def plugin_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PluginDirectory:
    """A directory on the plugin path, to be filled with plugins by its `add`."""
    from jpsi_testing.plugin_directory import PluginDirectory  # noqa: PLC0415

    path = tmp_path / "plugins"
    others = os.environ.get("JPSI_PLUGIN_PATH")
    monkeypatch.setenv("JPSI_PLUGIN_PATH", os.pathsep.join(filter(None, [str(path), others])))
    return PluginDirectory(path)
