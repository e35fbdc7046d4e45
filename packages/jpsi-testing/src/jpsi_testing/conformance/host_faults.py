"""Conformance tests with clocks that jump, read-only disks, and directories that show new files late."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any, Self

import attrs
import pytest

from jpsi import Job, JobExecutor, JobSpec, JobState, Reason
from jpsi.plugin import ExecutorConfig
from jpsi_engine.monitor import publisher
from jpsi_engine.submission import control
from jpsi_engine.verdict import markers
from jpsi_testing.conformance.base import ExecutorTestBase, Gate, Proof
from jpsi_testing.fake import FakeScheduler
from jpsi_testing.late_files import LateFiles

_JUMPS = {"forward": timedelta(hours=1), "back": timedelta(hours=-1)}
# How long new files are hidden.
_LATE_SECONDS = 0.5
# How long a job counts as running although the batch system does not list it.
_GRACE = timedelta(seconds=3)
# The functions that fail on a read-only file system.
_WRITES = ("link", "mkdir", "rename", "unlink")


class HostFaultTests(ExecutorTestBase):
    """Tests on fake batch systems only: the host of the jobs is at fault here, not the batch system."""

    @pytest.fixture
    def local_fake(self, fake: FakeScheduler) -> FakeScheduler:
        """Return the fake batch system; skip the test if the files of jobs are on a remote host."""
        if self.is_remote:
            pytest.skip("the files of jobs are on another machine")
        return fake

    @pytest.fixture(params=_JUMPS.values(), ids=list(_JUMPS))
    def jump(self, request: pytest.FixtureRequest) -> timedelta:
        """Return the time by which a clock jumps."""
        jump: timedelta = request.param
        return jump

    def running(self, executor: JobExecutor, *specs: JobSpec) -> list[Job]:
        """Submit jobs, one after the other, and return them once they run."""
        jobs = [Job(spec) for spec in specs]
        for job in jobs:
            executor.submit(job)
            self.active(job)
        return jobs

    @pytest.mark.usefixtures("local_fake")
    def test_a_clock_that_jumps_while_a_job_runs_changes_no_outcome(
        self, executor: JobExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump: timedelta
    ) -> None:
        """The client's clock goes forward or back."""
        gate, stopped = Gate(tmp_path / "gate"), Gate(tmp_path / "never")
        jobs = self.running(executor, gate.job(7), gate.job(0), stopped.job(0))

        _set_clock(monkeypatch, jump)
        jobs[2].cancel()
        gate.open()

        ends = [self.end(job) for job in jobs]
        assert [it.state for it in ends] == [JobState.FAILED, JobState.COMPLETED, JobState.CANCELED]
        assert [it.exit_code for it in ends[:2]] == [7, 0]

    @pytest.mark.usefixtures("local_fake")
    def test_a_file_server_whose_clock_is_off_by_an_hour_changes_no_outcome(
        self, executor: JobExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump: timedelta
    ) -> None:
        """The times of markers are an hour ahead of the client's clock, or behind it."""
        gate, stopped = Gate(tmp_path / "gate"), Gate(tmp_path / "never")
        _set_file_times(monkeypatch, jump)
        jobs = self.running(executor, gate.job(7), stopped.job(0))

        jobs[1].cancel()
        gate.open()

        ends = [self.end(job) for job in jobs]
        assert [it.state for it in ends] == [JobState.FAILED, JobState.CANCELED]
        assert ends[0].exit_code == 7

    def test_a_disk_that_turns_read_only_for_the_client_changes_no_outcome(
        self,
        executor: JobExecutor,
        config: ExecutorConfig,
        local_fake: FakeScheduler,
        tmp_path: Path,
        work_directory: Path,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        """The client still follows the jobs, and later clients see the same exit codes."""
        gate = Gate(tmp_path / "gate")
        jobs = self.running(executor, gate.job(0), gate.job(7))

        make_writable = _refuse_writes(monkeypatch, work_directory)
        gate.open()
        exit_codes = [self.end(job).exit_code for job in jobs]
        # this client is to leave to later ones what it could not write
        make_writable()

        assert exit_codes == [0, 7]
        about = [it for it in caplog.records if it.levelname == "WARNING" and "Read-only" in it.getMessage()]
        assert len(about) <= 1
        with self.new_executor(config) as fresh:
            assert sorted(self.end(job).exit_code or 0 for job in fresh.recover()) == [0, 7]
        with self.new_executor(config) as fresh:
            assert fresh.recover() == []

    def test_files_that_appear_late_are_awaited(
        self,
        local_fake: FakeScheduler,
        config: ExecutorConfig,
        tmp_path: Path,
        work_directory: Path,
        late: Callable[[Path], object],
    ) -> None:
        """A network file system shows markers late, and no job is LOST for that."""
        local_fake.keep, local_fake.accounting = 0, False
        proof = Proof(tmp_path / "proof")
        slow: Any = attrs.evolve(config, network_files=True, grace=_GRACE)  # type: ignore[call-arg]  # of a batch system
        with self.new_executor(slow) as executor:
            late(work_directory)
            job = self.submit(executor, proof.job(7))

            status = self.end(job)

        assert (status.state, status.exit_code, status.reason) == (JobState.FAILED, 7, Reason.EXIT_CODE)
        with self.new_executor(slow) as fresh:
            assert fresh.recover() == []
        assert proof.runs == 1

    @pytest.fixture
    def late(self, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], object]:
        """Return a function that makes new files below a directory show late, until the test ends."""

        def begin(folder: Path) -> None:
            LateFiles(folder, _LATE_SECONDS).install(monkeypatch.setattr)

        return begin


def _set_clock(monkeypatch: pytest.MonkeyPatch, jump: timedelta) -> None:
    """Shift the wall clock of this process."""

    class Jumped(datetime):
        """The current time, shifted by the jump."""

        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return cls.fromtimestamp((datetime.now(tz) + jump).timestamp(), tz)

    for module in (control, publisher):
        monkeypatch.setattr(module, "datetime", Jumped)


def _set_file_times(monkeypatch: pytest.MonkeyPatch, jump: timedelta) -> None:
    """Shift the times of the files that jobs leave."""
    real = markers.parse
    jump_ns = jump // timedelta(microseconds=1) * 1000
    monkeypatch.setattr(markers, "parse", lambda name, time_ns: real(name, time_ns + jump_ns))


def _refuse_writes(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Callable[[], None]:
    """Make the file system below a directory read-only for this process.

    Returns a function that makes it writable again, except for the other threads that run at that time.
    """
    root, real_open = f"{folder}/", os.open
    refused: set[threading.Thread] | None = None

    def check(path: Any) -> None:  # noqa: ANN401  whatever `os` takes for a path
        if refused is not None and threading.current_thread() not in refused:
            return
        if not isinstance(path, int) and os.fsdecode(path).startswith(root):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)

    def guarded(name: str) -> Callable[..., Any]:
        real = getattr(os, name)

        def call(path: Any, *rest: Any, **more: Any) -> Any:  # noqa: ANN401  as above
            check(path)
            return real(path, *rest, **more)

        return call

    def guarded_open(path: Any, flags: int, *rest: Any, **more: Any) -> int:  # noqa: ANN401  as above
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            check(path)
        return real_open(path, flags, *rest, **more)

    def make_writable() -> None:
        nonlocal refused
        refused = set(threading.enumerate()) - {threading.current_thread()}

    for name in _WRITES:
        monkeypatch.setattr(os, name, guarded(name))
    monkeypatch.setattr(os, "open", guarded_open)
    return make_writable
