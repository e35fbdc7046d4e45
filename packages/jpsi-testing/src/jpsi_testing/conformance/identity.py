"""Conformance tests of reused native ids: jpsi never takes a foreign job for its own.

A foreign job is one that jpsi did not submit, and that has the native id of an earlier job of jpsi. Its
outcome must not count, and no request such as a cancel may reach it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import jpsi
from jpsi import Job, JobExecutor, JobState, Reason
from jpsi_testing.conformance.base import ExecutorTestBase, Gate, Proof
from jpsi_testing.fake import FakeJob, FakeScheduler, FakeState

# The scripts of a foreign job that has got the native id of a job of jpsi's.
_SCRIPTS = {
    "completes": "#!/bin/sh\nexit 0\n",
    "fails": "#!/bin/sh\nexit 7\n",
    "runs": "#!/bin/sh\nexec sleep 300\n",
}
_RESTART_SECONDS = 5.0
# A pattern of the messages when jpsi refuses a request because it may reach a foreign job.
_NOT_CANCELLED = "without the tag|another job's"


class IdentityTests(ExecutorTestBase):
    """Tests in which a controller dies before it records a job, and gives its native id to another job."""

    @pytest.mark.parametrize("fate", [*_SCRIPTS, "is forgotten", "is cancelled"])
    def test_a_job_whose_native_id_was_reused_is_lost(
        self, executor: JobExecutor, fake: FakeScheduler, tmp_path: Path, fate: str
    ) -> None:
        """The job without markers is LOST, and the end of the other job is not taken for its end."""
        proof = Proof(tmp_path / "proof")
        fake.keep = 0 if fate == "is forgotten" else fake.keep
        job = self._waiting(executor, fake, proof)
        script = {"is forgotten": "completes", "is cancelled": "runs"}.get(fate, fate)

        other = self._reuse_native_id(fake, job, _SCRIPTS[script])
        if fate == "is cancelled":
            fake.cancel(other.native_id)

        self._assert_lost(job)
        assert proof.runs == 0
        assert fate != "runs" or other.state is FakeState.RUNNING

    @pytest.mark.clause("cancel-asks")
    @pytest.mark.parametrize("request_", ["cancel", "hold", "release"])
    def test_no_request_reaches_the_job_of_a_reused_id(
        self, executor: JobExecutor, fake: FakeScheduler, tmp_path: Path, request_: str
    ) -> None:
        """`cancel`, `hold` and `release` leave the other job alone."""
        job = self._waiting(executor, fake, Proof(tmp_path / "proof"))
        other = self._reuse_native_id(fake, job, _SCRIPTS["runs"])
        assert fake.wait_for(lambda: other.state is FakeState.RUNNING, self.timeout_seconds)

        with pytest.raises(jpsi.SubmitException, match="another job's"):
            job.cancel() if request_ == "cancel" else getattr(executor, request_)(job)

        assert (other.state, other.ending) == (FakeState.RUNNING, None)
        self._assert_lost(job)

    def test_no_bulk_cancellation_reaches_the_job_of_a_reused_id(
        self, executor: JobExecutor, fake: FakeScheduler, tmp_path: Path
    ) -> None:
        """The other jobs are cancelled."""
        fake.slots = 0
        jobs = [Job(Proof(tmp_path / f"proof{number}").job()) for number in range(3)]
        for job in jobs:
            executor.submit(job)
        later(fake)
        other = fake.reuse_native_id(jobs[1].native_id or "", _SCRIPTS["runs"])

        with pytest.raises(jpsi.BulkException) as caught:
            executor.cancel_many(jobs)

        assert list(caught.value.failed) == [jobs[1]]
        canceled = JobState.CANCELED
        assert [self.end(job).state for job in jobs] == [canceled, JobState.FAILED, canceled]
        assert (other.state, other.ending) == (FakeState.PENDING, None)

    def test_a_job_that_runs_on_without_its_controller_keeps_its_code(
        self, executor: JobExecutor, fake: FakeScheduler, tmp_path: Path
    ) -> None:
        """The job's own markers count, although another job has its native id."""
        gate = Gate(tmp_path / "gate")
        job = self.start(executor, gate.job(7))

        later(fake)
        fake.reuse_native_id(job.native_id or "", _SCRIPTS["runs"], kill=False)
        gate.open()

        status = self.end(job)
        assert (status.state, status.exit_code) == (JobState.FAILED, 7)

    def test_a_killed_job_does_not_wait_for_the_job_of_its_reused_id(
        self, executor: JobExecutor, fake: FakeScheduler, tmp_path: Path
    ) -> None:
        """A job that ran and left no exit code is lost, while the job that has its native id runs on."""
        job = self.start(executor, Gate(tmp_path / "gate").job())

        later(fake)
        other = fake.reuse_native_id(job.native_id or "", _SCRIPTS["runs"])

        self._assert_lost(job)
        assert (other.state, other.ending) == (FakeState.RUNNING, None)

    def test_a_job_with_a_reused_id_of_the_same_second_is_left_alone(
        self, executor: JobExecutor, fake: FakeScheduler, tmp_path: Path
    ) -> None:
        """The controller was killed, started again and took another job before the second was over."""
        gate = Gate(tmp_path / "gate")
        job = self._follow_by_time(executor, gate.job(7))
        native_id = job.native_id or ""
        lost = fake.job(native_id)

        other = fake.reuse_native_id(native_id, _SCRIPTS["runs"], kill=False)
        other.submitted = lost.submitted
        with pytest.raises(jpsi.SubmitException, match=_NOT_CANCELLED):
            job.cancel()

        assert other.ending is None
        gate.open()
        status = self.end(job)
        assert (status.state, status.exit_code) == (JobState.FAILED, 7)

    def test_a_job_that_lost_its_tag_is_followed_but_not_cancelled(
        self, executor: JobExecutor, fake: FakeScheduler, tmp_path: Path
    ) -> None:
        """A user or a site may have changed the text with the tag: the job may be another one."""
        gate = Gate(tmp_path / "gate")
        job = self._follow_by_time(executor, gate.job())

        fake.untag(job.native_id or "")
        call_count = len(fake.log)
        assert fake.wait_for(lambda: len(fake.log) > call_count + 1, self.timeout_seconds)
        with pytest.raises(jpsi.SubmitException, match=_NOT_CANCELLED):
            job.cancel()

        gate.open()
        assert self.end(job).state is JobState.COMPLETED

    def _assert_lost(self, job: Job) -> None:
        status = self.end(job)
        assert (status.state, status.reason, status.exit_code) == (JobState.FAILED, Reason.LOST, None)

    def _follow_by_time(self, executor: JobExecutor, spec: jpsi.JobSpec) -> Job:
        """Return a job that runs and whose time of submission the batch system reports."""
        job = self.start(executor, spec)
        seen = executor.info(job)
        if seen is None or seen.submitted is None:
            pytest.skip("it does not report when a job was submitted")
        return job

    def _waiting(self, executor: JobExecutor, fake: FakeScheduler, proof: Proof) -> Job:
        """Return a job that was submitted and waits."""
        fake.slots = 0
        return self.submit(executor, proof.job())

    def _reuse_native_id(self, fake: FakeScheduler, job: Job, script: str) -> FakeJob:
        later(fake)
        other = fake.reuse_native_id(job.native_id or "", script)
        fake.slots = 8
        fake.settle()
        return other


def later(fake: FakeScheduler) -> None:
    """Move the clock of a batch system on by some seconds, as during a restart of its controller."""
    clock = fake.clock
    fake.clock = lambda: clock() + _RESTART_SECONDS
