"""Conformance tests with a batch system that fails, hangs or prints garbage: each job still runs once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import jpsi
from jpsi import Job, JobExecutor, JobState
from jpsi.plugin import ExecutorConfig
from jpsi_engine import job_store
from jpsi_testing.conformance.base import ExecutorTestBase, Gate, Proof, shell
from jpsi_testing.fake import FakeScheduler, find_fake
from jpsi_testing.waiting import eventually

# The faults of all commands, by name.
_FAULTS: dict[str, Callable[[FakeScheduler], None]] = {
    "says no": lambda fake: fake.faults.fail("*", times=4),
    "garbage": lambda fake: fake.faults.fail("*", times=4, returncode=0, stdout="garbage\n"),
    "says nothing": lambda fake: fake.faults.fail("*", times=2, returncode=0, stderr=""),
    "is cut": lambda fake: fake.faults.cut("*", times=4),
    "hangs": lambda fake: fake.faults.hang("*", times=1),
}


class FaultTests(ExecutorTestBase):
    """Tests for fake batch systems only."""

    def test_the_submit_command_belongs_to_the_fake(self) -> None:
        """A fault of a command that the fake does not have would never strike."""
        if self.fake_system is None:
            pytest.skip("the tests run without a fake (fake_system is None)")
        system_fake = find_fake(self.fake_system)

        assert self.submit_command in system_fake.commands, (
            f"submit_command is {self.submit_command!r}; it must be the command that submits, one of "
            f"the fake's commands {', '.join(sorted(system_fake.commands))}"
        )

    @pytest.mark.parametrize("trouble", _FAULTS)
    def test_a_troubled_system_changes_no_outcome(
        self, short_timeout_executor: JobExecutor, tmp_path: Path, fake: FakeScheduler, trouble: str
    ) -> None:
        """Commands fail, hang or print garbage while the job runs, and the job keeps its exit code."""
        gate, begun = Gate(tmp_path / "gate"), tmp_path / "begun"
        job = self.start(short_timeout_executor, shell(f'touch "$2"; {gate.WAIT}; exit 7', gate.path, begun))
        # the launcher, too, may be a command of the batch system
        assert eventually(begun.exists, self.timeout_seconds)
        call_count = len(fake.log)

        _FAULTS[trouble](fake)
        assert fake.wait_for(lambda: len(fake.log) > call_count, self.timeout_seconds)
        gate.open()

        assert self.end(job).exit_code == 7

    def test_a_job_that_waits_outlives_a_system_that_is_down(
        self, executor: JobExecutor, fake: FakeScheduler, tmp_path: Path
    ) -> None:
        """A job in the queue is followed again when the batch system answers."""
        proof = Proof(tmp_path / "proof")
        fake.slots = 0
        job = self.submit(executor, proof.job(7))

        fake.faults.down()
        call_count = len(fake.log)
        assert fake.wait_for(lambda: len(fake.log) > call_count + 2, self.timeout_seconds)
        assert job.status.state is JobState.QUEUED
        fake.faults.up()
        fake.slots = 8
        fake.settle()

        assert self.end(job).exit_code == 7
        assert proof.runs == 1

    @pytest.mark.clause("python-submit-output")
    def test_banners_in_output_are_ignored(
        self, executor: JobExecutor, fake: FakeScheduler, tmp_path: Path
    ) -> None:
        """A site's text before and after the output changes nothing."""
        fake.faults.banner(stdout="Welcome 12345!\n", stderr="WARNING: maintenance on 2031-01-01\n")
        gate = Gate(tmp_path / "gate")
        job = self.submit(executor, gate.job(7))
        assert job.native_id in [it.native_id for it in fake.jobs]
        self.active(job)
        gate.open()

        assert self.end(job).exit_code == 7

    @pytest.mark.clause("submit-refused")
    @pytest.mark.parametrize("hangs", [False, True], ids=["fails", "hangs"])
    def test_a_failed_submission_leaves_the_job_as_it_was(
        self, short_timeout_executor: JobExecutor, fake: FakeScheduler, tmp_path: Path, hangs: bool
    ) -> None:
        """The job stays NEW and can be submitted again."""
        proof = Proof(tmp_path / "proof")
        job = Job(proof.job(3))
        fake.faults.down(hangs=hangs)

        with pytest.raises(jpsi.SubmitException) as caught:
            short_timeout_executor.submit(job)

        assert caught.value.transient
        assert (job.status.state, job.native_id, job.executor) == (JobState.NEW, None, None)
        fake.faults.up()
        short_timeout_executor.submit(job)
        assert self.end(job).exit_code == 3
        assert proof.runs == 1

    @pytest.mark.parametrize("trouble", ["accept_and_hang", "cut"])
    @pytest.mark.parametrize("lag", [0, 3600], ids=["shows", "never shows"])
    def test_an_ambiguous_submission_runs_once(
        self,
        short_timeout_executor: JobExecutor,
        fake: FakeScheduler,
        tmp_path: Path,
        trouble: str,
        lag: float,
    ) -> None:
        """The batch system has the job, but its submit command hangs or is killed."""
        proof = Proof(tmp_path / "proof")
        fake.lag = lag
        # the job may start before or after its submitter gives up
        fake.slots = 0 if lag else 8
        job = Job(proof.job(3))
        getattr(fake.faults, trouble)(self.submit_command)

        try:
            short_timeout_executor.submit(job)
        except jpsi.SubmitException:
            assert job.status.state is JobState.NEW
            short_timeout_executor.submit(job)
        fake.lag, fake.slots = 0, 8
        fake.settle()

        assert self.end(job).exit_code == 3
        assert fake.wait_for(lambda: all(it.state.final for it in fake.jobs), self.timeout_seconds)
        assert proof.runs == 1

    @pytest.mark.parametrize("trouble", ["hang", "accept_and_hang"])
    def test_an_ambiguous_submission_is_reported_consistently(
        self,
        short_timeout_executor: JobExecutor,
        short_timeout_config: ExecutorConfig,
        fake: FakeScheduler,
        tmp_path: Path,
        work_directory: Path,
        trouble: str,
    ) -> None:
        """The batch system is down, too, when the client looks for the job."""
        proof = Proof(tmp_path / "proof")
        job = Job(proof.job(3))
        fake.slots = 0
        getattr(fake.faults, trouble)(self.submit_command)
        fake.faults.down()

        def states() -> set[JobState]:
            """Return the job's states in the program that submitted it, on disk, and in another program."""
            stored_states = [
                it.status.state for it in job_store.jobs(also=[work_directory]) if it.id == job.id
            ]
            with self.new_executor(short_timeout_config) as other:
                recalled = [it.status.state for it in other.recall([job.id])]
                # the program that got the exception keeps the job
                assert job.id not in [it.id for it in other.recover()]
            assert (len(stored_states), len(recalled)) == (1, 1)
            return {job.status.state, *stored_states, *recalled}

        with pytest.raises(jpsi.SubmitException):
            short_timeout_executor.submit(job)
        assert states() == {JobState.NEW}
        fake.faults.clear()
        fake.slots = 8
        fake.settle()
        assert fake.wait_for(lambda: all(it.state.final for it in fake.jobs), self.timeout_seconds)
        assert states() == {JobState.NEW}
        assert proof.runs == 0
        short_timeout_executor.submit(job)

        assert self.end(job).exit_code == 3
        with self.new_executor(short_timeout_config) as other:
            (recalled,) = other.recall([job.id])
            assert self.end(recalled).exit_code == 3
        assert proof.runs == 1
