"""The clients that a test leaves behind run no commands of the next test's fake batch system."""

from __future__ import annotations

import gc
import threading
from collections.abc import Collection, Iterator

import pytest

from jpsi import Job, JobExecutor, JobSpec
from jpsi_testing import PluginDirectory, pytest_plugin
from jpsi_testing.fake import FakeScheduler, on_path
from jpsi_testing.waiting import eventually
from toys import QUICK, install_toy


@pytest.fixture
def no_garbage_collection() -> Iterator[None]:
    """Have garbage collected only where somebody calls for it."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_garbage_collection")
def test_a_client_that_a_test_leaves_behind_ends_with_it(
    plugin_directory: PluginDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pytest_plugin, "_LEAVING_SECONDS", 300.0)
    install_toy(plugin_directory)
    others = set(threading.enumerate())
    protocol = pytest_plugin.pytest_runtest_protocol()

    with FakeScheduler(kill_delay=0.1) as scheduler, on_path("toy", scheduler):
        next(protocol)
        JobExecutor("toy", config=QUICK).submit(Job(JobSpec("/bin/sleep", ["1000"])))
        with pytest.raises(StopIteration) as ended:
            protocol.send(True)

        assert ended.value.value is True
        assert eventually(lambda: not _polling(others), 60)


def _polling(others: Collection[threading.Thread]) -> list[threading.Thread]:
    """Return the threads that poll the batch system, without these others."""
    return [it for it in threading.enumerate() if it.name == "jpsi-batch-poll" and it not in others]
