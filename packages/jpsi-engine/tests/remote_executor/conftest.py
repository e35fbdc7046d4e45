"""A batch system on a remote host with its own files, and an executor that reaches it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jpsi import JobExecutor
from jpsi_engine.spool import pruning
from jpsi_testing import PluginDirectory, RemoteTransport, toy
from jpsi_testing.fake import FakeScheduler, on_path
from remote_jobs import executor_of


@pytest.fixture(autouse=True)
def scheduler(plugin_directory: PluginDirectory) -> Iterator[FakeScheduler]:
    plugin_directory.add(
        "jpsi-toy",
        "0.1",
        entry_points={"jpsi.executors": {"toy": "jpsi_toy"}},
        files={"jpsi_toy.py": Path(toy.__file__).read_text()},
    )
    with FakeScheduler(slots=8, kill_delay=0.5) as scheduler, on_path("toy", scheduler):
        yield scheduler


@pytest.fixture
def remote_transport(tmp_path: Path) -> RemoteTransport:
    return RemoteTransport(tmp_path / "remote home")


@pytest.fixture
def executor(remote_transport: RemoteTransport) -> Iterator[JobExecutor]:
    with executor_of(remote_transport) as executor:
        yield executor


@pytest.fixture(autouse=True)
def prune_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each executor that is opened looks for old jobs, not only the first in an hour."""
    monkeypatch.setattr(pruning, "_PASS_SECONDS", 0.0)
