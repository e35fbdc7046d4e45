"""Conformance tests of jobs that end early: cancelled, out of time, requeued, or gone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import jpsi
from jpsi import Job, JobExecutor, JobSpec, JobState, Reason
from jpsi_testing.conformance.base import ExecutorTestBase, Gate, Proof, Sign, shell
from jpsi_testing.fake import FakeScheduler, FakeState

# A program that exits with 0 at once on TERM.
_EXITS_ON_TERM = "trap 'exit 0' TERM; while :; do sleep 0.05; done"
# A program that saves its state first, and exits with 0 a moment after TERM. A batch system may signal the
# processes of a job one after the other; a job that returns 0 before its runner gets the signal has
# completed, unless jpsi had cancelled it.
_SAVING = "trap 'trap \"\" TERM; sleep 0.2; exit 0' TERM; while :; do sleep 0.05; done"


def _exceed_limit(fake: FakeScheduler, native_id: str) -> None:
    fake.end_as(native_id, FakeState.TIMEOUT)


#: The shell text of a job, the event that ends it, and the possible reasons of its end.
_EVENTS: dict[str, tuple[str, Callable[[FakeScheduler, str], object], set[Reason]]] = {
    "time limit": ("sleep 1000", _exceed_limit, {Reason.TIMEOUT}),
    "time limit, exits 0": (_EXITS_ON_TERM, _exceed_limit, {Reason.TIMEOUT}),
    "failed node": ("sleep 1000", lambda fake, _: fake.fail_node(), {Reason.NODE_FAIL, Reason.LOST}),
    "vanished": ("sleep 1000", FakeScheduler.vanish, {Reason.LOST}),
}


class EndTests(ExecutorTestBase):
    """Tests that the final status of a job shows why it ended."""

    def cancel_outside(self, native_id: str, scheduler: FakeScheduler | None) -> None:
        """Cancel a job with the batch system's own command; override it for a real batch system."""
        if scheduler is None:
            pytest.skip("cancel_outside is not implemented for this batch system")
        scheduler.cancel(native_id)

    @pytest.mark.clause("cancel-asks", "state-canceled")
    def test_a_pending_job_is_cancelled(
        self, executor: JobExecutor, tmp_path: Path, fake: FakeScheduler
    ) -> None:
        """A job that waits in the queue is CANCELED without having run."""
        proof = Proof(tmp_path / "proof")
        fake.slots = 0
        job = self.submit(executor, proof.job())

        job.cancel()

        assert fake.job(job.native_id or "").state is FakeState.CANCELLED, "it had the request by then"
        status = self.end(job)
        assert (status.state, status.reason, status.exit_code) == (JobState.CANCELED, Reason.CANCELLED, None)
        assert proof.runs == 0

    @pytest.mark.clause("cancel-asks", "state-canceled", "job-cancel")
    def test_a_running_job_is_cancelled(self, executor: JobExecutor, tmp_path: Path) -> None:
        """A job that runs is CANCELED for `Reason.CANCELLED`."""
        job = self.start(executor, Gate(tmp_path / "never").job())

        job.cancel()

        status = self.end(job)
        assert (status.state, status.reason) == (JobState.CANCELED, Reason.CANCELLED)

    def test_a_cancel_that_was_accepted_and_had_no_effect_is_asked_for_again(
        self, executor: JobExecutor, tmp_path: Path, fake: FakeScheduler
    ) -> None:
        """Torque forgets to end elements that are just starting."""
        job = self.start(executor, Gate(tmp_path / "never").job())
        fake.ignored_cancels = 1

        job.cancel()

        assert fake.job(job.native_id or "").state is FakeState.RUNNING
        assert self.end(job).state is JobState.CANCELED

    def test_a_cancelled_job_that_exits_0_is_canceled(self, executor: JobExecutor) -> None:
        """A job that handles the signal and exits with 0 is CANCELED all the same."""
        job = self.start(executor, shell(_EXITS_ON_TERM))

        job.cancel()

        assert self.end(job).state is JobState.CANCELED

    @pytest.mark.clause("cancel-race", "cancel-wait", "cancel-wait-canceled")
    def test_cancelling_an_ended_job_does_nothing(self, executor: JobExecutor) -> None:
        """The job keeps its status, and no error is raised."""
        job = self.submit(executor, shell("exit 7"))
        status = self.end(job)

        job.cancel()

        assert job.status == status
        assert job.wait() == status
        with pytest.raises(jpsi.UnreachableStateException):
            job.wait(JobState.CANCELED)

    @pytest.mark.clause("cancel-new")
    def test_a_job_that_was_never_submitted_cannot_be_cancelled(self) -> None:
        """`cancel` raises SubmitException for a NEW job."""
        with pytest.raises(jpsi.SubmitException):
            Job(JobSpec("/bin/true")).cancel()

    @pytest.mark.parametrize("text", ["sleep 1000", _SAVING], ids=["plain", "exits 0"])
    def test_a_job_cancelled_by_another_program_is_canceled(
        self, executor: JobExecutor, scheduler: FakeScheduler | None, text: str
    ) -> None:
        """The client learns of it from the batch system."""
        job = self.start(executor, shell(text))

        try:
            self.cancel_outside(job.native_id or "", scheduler)
        except BaseException:
            # also if the test is skipped there: the job would keep its slot
            job.cancel()
            raise

        assert self.end(job).state is JobState.CANCELED

    def test_the_last_run_of_a_requeued_job_decides(
        self, executor: JobExecutor, tmp_path: Path, fake: FakeScheduler
    ) -> None:
        """The exit code of an earlier run is not the job's."""
        proof = Proof(tmp_path / "proof")
        seen: list[JobState] = []
        begun = Sign(tmp_path / "begun")
        again = f'{Proof.WRITE}; [ "$(wc -l < "$1")" -gt 1 ] && exit 5'
        job = Job(shell(f'{again}; echo > "$2"; {_EXITS_ON_TERM}', proof.path, begun.path))
        job.set_job_status_callback(lambda _, status: seen.append(status.state))
        executor.submit(job)
        self.active(job)
        # it is ACTIVE a little before it leaves its proof
        assert begun.wait(self.timeout_seconds)

        fake.requeue(job.native_id or "")

        status = self.end(job)
        assert (status.state, status.exit_code) == (JobState.FAILED, 5)
        assert proof.runs == 2
        assert seen == [JobState.QUEUED, JobState.ACTIVE, JobState.FAILED]

    @pytest.mark.clause("state-failed")
    @pytest.mark.parametrize("event", _EVENTS)
    def test_a_job_that_its_system_ends_tells_why(
        self, executor: JobExecutor, fake: FakeScheduler, event: str
    ) -> None:
        """The status has the reason for which the batch system ended the job."""
        text, happen, reasons = _EVENTS[event]
        job = self.start(executor, shell(text))

        happen(fake, job.native_id or "")

        status = self.end(job)
        assert status.state is JobState.FAILED
        assert status.reason in reasons

    def test_a_job_forgotten_at_its_end_keeps_its_exit_code(
        self, executor: JobExecutor, fake: FakeScheduler
    ) -> None:
        """The job's markers show the exit code, although the batch system has forgotten the job."""
        fake.keep, fake.accounting = 0, False

        assert self.run(executor, shell("exit 7")).exit_code == 7
        assert self.run(executor, JobSpec("/bin/true")).state is JobState.COMPLETED
