"""The executor `local` conforms on a remote host with its own files."""

from __future__ import annotations

import gc
import os
import platform
import re
import signal
import threading
from collections.abc import Callable, Collection
from datetime import timedelta
from pathlib import Path

import attrs
import pytest

from jpsi import ExecutorConfig, Job, JobAttributes, JobExecutor, JobState, Reason
from jpsi.plugin import Command, CommandResult
from jpsi_engine.builtin import local
from jpsi_engine.host.procfs import ProcessId, session
from jpsi_testing import ExecutorConformance, RemoteTransport
from jpsi_testing.conformance.attributes import TRANSLATED
from jpsi_testing.conformance.base import shell
from jpsi_testing.fake import FakeScheduler
from jpsi_testing.waiting import eventually

_ENDS_BY_TERM = "trap 'exit 0' TERM; while :; do sleep 0.05; done"
# A line of the list of all jobs of the user, as the programs of `local` print it.
_LISTED = re.compile(r"process ([0-9]+) .* -s jpsi-")


class _SeparateHost(RemoteTransport):
    """A transport to this host as if it were another one, with its own processes.

    The user's jobs with another home directory, such as those of tests that run at the same time or were left
    by others, are not listed: they would count for the limits of an executor, whose jobs wait until they end.
    """

    def run(
        self, command: Command, keep: int | None = None, ready: Callable[[], None] | None = None
    ) -> CommandResult:
        result = super().run(command, keep, ready)
        lines = result.stdout.splitlines(keepends=True)
        return attrs.evolve(result, stdout="".join(it for it in lines if not self._belongs_to_others(it)))

    def _belongs_to_others(self, line: str) -> bool:
        match = _LISTED.match(line)
        if match is None:
            return False
        try:
            variables = Path("/proc", match[1], "environ").read_bytes().split(b"\0")
        except OSError:
            # the process has ended, or this system does not show its variables
            return False
        return os.fsencode(f"HOME={self.home}") not in variables


class TestLocalOnRemoteHost(ExecutorConformance):
    executor_name = "local"
    is_remote = True
    config_class = local.LocalConfig
    plugin = local
    unknown_id = f"999999.1.0.{platform.node()}"
    # there is one machine, all of which each job may use, and no queue
    ignored_attributes = TRANSLATED.keys() - {"resources.node_count", "attributes.duration"}

    @pytest.fixture(autouse=True)
    def remote_transport(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RemoteTransport:
        remote_transport = _SeparateHost(tmp_path / "remote home")
        monkeypatch.setattr(type(self), "url", remote_transport.url)
        return remote_transport

    def cancel_outside(self, native_id: str, scheduler: FakeScheduler | None) -> None:
        """Terminate the leader of the job."""
        os.kill(int(native_id.partition(".")[0]), signal.SIGTERM)

    @pytest.mark.parametrize("text", [_ENDS_BY_TERM, "trap '' TERM; sleep 1000"], ids=["ends", "is killed"])
    def test_a_job_ends_with_its_duration_without_a_follower(
        self, config: ExecutorConfig, text: str, remote_transport: RemoteTransport
    ) -> None:
        job = Job(shell(text, attributes=JobAttributes(duration=timedelta(seconds=1))))
        others = threading.enumerate()
        executor = self.new_executor(config)
        executor.submit(job)
        native_id = job.native_id or ""
        remote_transport.down()
        # the monitor of jobs ends with the last reference to it; a thread holds one for a moment
        del executor, job
        assert eventually(lambda: gc.collect() >= 0 and not _following(others), self.timeout_seconds)
        assert wait_until_killed(native_id, self.timeout_seconds)
        remote_transport.up()

        with self.new_executor(config) as executor:
            (recovered,) = executor.recover()
            status = self.end(recovered)

        assert (status.state, status.reason) == (JobState.FAILED, Reason.TIMEOUT)

    def test_a_cancelled_job_leaves_no_files(self, executor: JobExecutor) -> None:
        """Each process of a job gets TERM, and those that ignore it are killed."""
        job = Job(shell("trap '' TERM; sleep 1000 & sleep 1000"))
        executor.submit(job)
        self.active(job)

        job.cancel()

        assert self.end(job).state is JobState.CANCELED
        assert wait_until_killed(job.native_id or "", self.timeout_seconds)

    def test_the_default_duration_limits_jobs_without_one(self, config: ExecutorConfig) -> None:
        assert isinstance(config, local.LocalConfig)
        limited = attrs.evolve(config, default_duration=timedelta(seconds=1))

        with self.new_executor(limited) as executor:
            assert self.run(executor, shell("sleep 1000")).reason is Reason.TIMEOUT


def _following(others: Collection[threading.Thread]) -> list[str]:
    """Return the threads that follow jobs, without these others."""
    names = [it.name for it in threading.enumerate() if it not in others]
    return [
        it for it in names if it in {"jpsi-batch-scan", "jpsi-batch-poll", "jpsi-event-stream", "jpsi-prune"}
    ]


def wait_until_killed(native_id: str, seconds: float) -> bool:
    """Return True if no process of a job is left in time."""
    leader, start = map(int, native_id.split(".")[:2])
    return eventually(lambda: not session(ProcessId(leader, start)), seconds)
