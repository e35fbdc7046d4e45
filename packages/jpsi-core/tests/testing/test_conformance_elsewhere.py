"""The executor `local` conforms where a transport leads to another machine, here to this one."""

from __future__ import annotations

import os
import platform
import signal
import time
from datetime import timedelta

import attrs
import pytest

from jpsi import ExecutorConfig, Job, JobAttributes, JobExecutor, JobState, Reason
from jpsi.builtin import local
from jpsi.engine.procfs import ProcessId, session
from jpsi.fakes import FakeScheduler
from jpsi.testing import ExecutorConformance, PluginDirectory
from jpsi.testing.conformance_kit import shell

_OBEDIENT = "trap 'exit 0' TERM; while :; do sleep 0.05; done"
_TRANSPORT = """
from jpsi.engine.transport import LocalTransport
from jpsi.plugin import hookimpl

class Elsewhere(LocalTransport):
    is_local = False

    def run(self, command, keep=None, ready=None):
        return super().run(command, None, ready)

@hookimpl
def open_transport():
    return Elsewhere()
"""


class TestLocalElsewhere(ExecutorConformance):
    executor_name = "local"
    url = "elsewhere://here"
    config_class = local.LocalConfig
    plugin = local
    unknown_id = f"999999.1.0.{platform.node()}"

    @pytest.fixture(autouse=True)
    def installed(self, plugin_directory: PluginDirectory) -> None:
        plugin_directory.add(
            "elsewhere",
            "0.1",
            entry_points={"jpsi.transports": {"elsewhere": "elsewhere_transport"}},
            files={"elsewhere_transport.py": _TRANSPORT},
        )

    def cancel_outside(self, native_id: str, scheduler: FakeScheduler | None) -> None:
        """Tell the job's leader to end."""
        os.kill(int(native_id.partition(".")[0]), signal.SIGTERM)

    @pytest.mark.parametrize("text", [_OBEDIENT, "trap '' TERM; sleep 1000"], ids=["obeys", "is killed"])
    def test_a_job_ends_with_its_duration_though_nobody_follows_it(
        self, config: ExecutorConfig, text: str
    ) -> None:
        job = Job(shell(text, attributes=JobAttributes(duration=timedelta(seconds=1))))
        with self.new_executor(config) as executor:
            executor.submit(job)
        assert eventually_gone(job.native_id or "", self.patience)

        with self.new_executor(config) as executor:
            (recovered,) = executor.recover()
            status = self.end(recovered)

        assert (status.state, status.reason) == (JobState.FAILED, Reason.TIMEOUT)

    def test_nothing_is_left_of_a_job_that_was_cancelled(self, executor: JobExecutor) -> None:
        """Each process of a job is told to end, and those that do not obey are killed."""
        job = Job(shell("trap '' TERM; sleep 1000 & sleep 1000"))
        executor.submit(job)
        self.active(job)

        job.cancel()

        assert self.end(job).state is JobState.CANCELED
        assert eventually_gone(job.native_id or "", self.patience)

    def test_what_it_is_configured_by_limits_jobs_that_ask_for_nothing(self, config: ExecutorConfig) -> None:
        assert isinstance(config, local.LocalConfig)
        limited = attrs.evolve(config, default_duration=timedelta(seconds=1))

        with self.new_executor(limited) as executor:
            assert self.run(executor, shell("sleep 1000")).reason is Reason.TIMEOUT


def eventually_gone(native_id: str, seconds: float) -> bool:
    """Whether nothing of a job is left in good time."""
    leader, start = map(int, native_id.split(".")[:2])
    deadline = time.monotonic() + seconds
    while session(ProcessId(leader, start)):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
