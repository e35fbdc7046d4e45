"""Conformance tests of recovery: jobs outlive the process that submitted them."""

from __future__ import annotations

import pickle
import subprocess
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import attrs
import pytest

from jpsi import Job, JobExecutor, JobSpec, JobState, JobStatus, Reason
from jpsi.plugin import BatchConfig, ExecutorConfig
from jpsi_testing.conformance.base import ExecutorTestBase, Gate, Proof, shell
from jpsi_testing.fake import FakeScheduler
from jpsi_testing.forks import PROGRAMS, ForkedProcess
from jpsi_testing.waiting import eventually

# Submits the jobs on its input, prints their ids, and waits until it is killed.
_CLIENT = """
import jpsi, pickle, sys
name, url, config, specs = pickle.load(sys.stdin.buffer)
executor = jpsi.JobExecutor.get_instance(name, url=url, config=config)
jobs = [jpsi.Job(spec) for spec in specs]
{submit}
print("done", flush=True)
jpsi.Job().wait()
"""
_ONE_BY_ONE = """
for job in jobs:
    executor.submit(job)
    print(job.id, flush=True)
"""
_AT_ONCE = """
executor.submit_many(jobs)
print(*[job.id for job in jobs], sep="\\n", flush=True)
"""


def client(
    name: str,
    config: ExecutorConfig,
    specs: Sequence[JobSpec],
    *,
    url: str | None = None,
    at_once: bool = False,
) -> ForkedProcess:
    """Start a process that submits jobs to this executor, prints the id of each, and then `done`."""
    program = _CLIENT.format(submit=_AT_ONCE if at_once else _ONE_BY_ONE)
    text = pickle.dumps((name, url, config, list(specs)))
    return PROGRAMS.start("-c", program, input=text, stdout=subprocess.PIPE)


class RecoveryTests(ExecutorTestBase):
    """Tests that a job's state is on disk, and not only in the process that submitted it."""

    @pytest.mark.parametrize(("count", "at_once"), [(5, False), (12, True)], ids=["one by one", "at once"])
    def test_a_killed_client_loses_no_job_and_no_code(
        self,
        config: ExecutorConfig,
        tmp_path: Path,
        scheduler: FakeScheduler | None,
        count: int,
        at_once: bool,
    ) -> None:
        """The next client recovers every job of a client that was killed, with its exit code."""
        gate, proofs = Gate(tmp_path / "gate"), [Proof(tmp_path / f"proof{code}") for code in range(count)]
        ids = self._submit_and_kill(config, gate, proofs, at_once=at_once)

        with self.new_executor(config) as executor:
            jobs = {job.id: job for job in executor.recover()}
            gate.open()
            assert [self.end(jobs[job_id]).exit_code for job_id in ids] == list(range(count))
            assert executor.recover() == []
        assert [proof.runs for proof in proofs] == [1] * count

    def _submit_and_kill(
        self, config: ExecutorConfig, gate: Gate, proofs: Sequence[Proof], *, at_once: bool
    ) -> list[str]:
        """Let a client submit jobs that wait for a gate, kill it, and return the ids of the jobs."""
        specs = [
            shell(f"{Gate.WAIT}; shift; {Proof.WRITE}; exit $2", gate.path, proof.path, code)
            for code, proof in enumerate(proofs)
        ]
        with client(self.executor_name, config, specs, url=self.url, at_once=at_once) as process:
            assert process.stdout is not None
            *ids, done = [process.stdout.readline().decode().strip() for _ in range(len(specs) + 1)]
            process.kill()
        assert done == "done"
        return ids

    @pytest.mark.parametrize("lag", [0, 3600], ids=["shows", "never shows"])
    def test_a_client_killed_while_it_submits_loses_nothing(
        self, short_timeout_config: ExecutorConfig, tmp_path: Path, fake: FakeScheduler, lag: float
    ) -> None:
        """The next client finds the job, or can submit it again; it runs once."""
        proof = Proof(tmp_path / "proof")
        fake.lag = lag
        fake.faults.accept_and_hang(self.submit_command)
        with client(self.executor_name, short_timeout_config, [proof.job(3)], url=self.url) as process:
            assert fake.wait_for(lambda: fake.jobs, self.timeout_seconds)
            process.kill()

        fake.lag = 0
        with self.new_executor(short_timeout_config) as executor:
            # its submit command may still hold the job, until the command timeout kills it
            assert fake.wait_for(lambda: fake.jobs[0].state.final, self.timeout_seconds)
            for job in executor.recover():
                if job.status.state is JobState.NEW:
                    executor.submit(job)
                assert self.end(job).exit_code == 3
        assert proof.runs == 1

    @pytest.mark.parametrize("is_counted", [False, True], ids=["as if new", "put back"])
    @pytest.mark.parametrize("code", [0, 3])
    def test_a_batch_system_restored_from_an_old_state_does_not_rerun_an_ended_job(
        self, executor: JobExecutor, tmp_path: Path, fake: FakeScheduler, code: int, is_counted: bool
    ) -> None:
        """The job that the batch system starts again stops at once, and keeps its outcome."""
        proof = Proof(tmp_path / "proof")
        job = self.submit(executor, proof.job(code))
        published = self.end(job)

        self._restored(fake, job.native_id or "", is_counted=is_counted)

        assert (published.exit_code, job.status, proof.runs) == (code, published, 1)
        # the batch system's records are right, and so are jobs that depend on this one
        assert fake.job(job.native_id or "").exit_code == code

    @pytest.mark.parametrize("is_counted", [False, True], ids=["as if new", "put back"])
    def test_a_batch_system_restored_from_an_old_state_does_not_rerun_a_job_whose_end_was_missed(
        self,
        executor: JobExecutor,
        config: ExecutorConfig,
        tmp_path: Path,
        fake: FakeScheduler,
        is_counted: bool,
    ) -> None:
        """A job whose end no client has seen keeps its exit code, too."""
        # from then on the executor knows which failures are final in this work directory
        assert self.run(executor, JobSpec("/bin/true")).state is JobState.COMPLETED
        gate, proofs = Gate(tmp_path / "gate"), [Proof(tmp_path / f"proof{code}") for code in range(3)]
        ids = self._submit_and_kill(config, gate, proofs, at_once=True)
        gate.open()
        assert fake.wait_for(lambda: all(it.state.final for it in fake.jobs), self.timeout_seconds)

        for it in fake.jobs:
            self._restored(fake, it.native_id, is_counted=is_counted)

        with self.new_executor(config) as fresh:
            jobs = fresh.recall(ids)
            assert sorted(self.end(job).exit_code or 0 for job in jobs) == [0, 1, 2]
        assert [proof.runs for proof in proofs] == [1, 1, 1]

    def _restored(self, fake: FakeScheduler, native_id: str, *, is_counted: bool) -> None:
        """Let a batch system forget that a job has ended, and wait until it has ended once more."""
        # it left its marker a little before
        assert fake.wait_for(lambda: fake.job(native_id).state.final, self.timeout_seconds)
        fake.restore(native_id, is_counted=is_counted)
        assert fake.wait_for(lambda: fake.job(native_id).state.final, self.timeout_seconds)

    def test_one_job_of_many_is_recalled_and_no_other(
        self, executor: JobExecutor, config: ExecutorConfig, tmp_path: Path
    ) -> None:
        """`recall` returns the job with this id and follows it alone."""
        gate = Gate(tmp_path / "gate")
        jobs = [Job(gate.job(code)) for code in range(3)]
        executor.submit_many(jobs)

        with self.new_executor(config) as fresh:
            (job,) = fresh.recall([jobs[1].id, "no-such-job"])
            assert (job.id, job.native_id) == (jobs[1].id, jobs[1].native_id)
            # with the configured settings for every job, which the submitted spec does not have
            assert job.spec is not None
            assert job.spec.arguments == gate.job(1).arguments
            assert fresh.list() == [job.native_id]
            assert list(fresh.recall([job.id])) == [job]
            gate.open()

            assert [self.end(it).exit_code for it in (job, *jobs)] == [1, 0, 1, 2]

    @pytest.mark.clause("job-native-id", "list-attachable")
    def test_an_own_id_can_be_attached_to(self, executor: JobExecutor, tmp_path: Path) -> None:
        """A job that jpsi submitted can be attached by its native id."""
        gate = Gate(tmp_path / "gate")
        job, other = Job(gate.job(7)), Job()
        executor.submit(job)

        (listed,) = executor.list()
        executor.attach(other, listed)
        gate.open()

        status = self.end(other)
        assert other.native_id == job.native_id
        assert (status.state, status.exit_code) == (JobState.FAILED, 7)
        assert self.end(job).exit_code == 7

    def test_an_ended_job_can_be_attached_to(self, executor: JobExecutor, config: ExecutorConfig) -> None:
        """The attached job gets the exit code of the job."""
        job, other = Job(shell("exit 7")), Job()
        executor.submit(job)
        self.end(job)

        with self.new_executor(config) as fresh:
            fresh.attach(other, job.native_id or "")
            assert self.end(other).exit_code == 7

    def test_the_word_of_the_batch_system_about_an_unknown_id_counts_at_once(
        self, config: ExecutorConfig, fake: FakeScheduler
    ) -> None:
        """However long a job may be missing before it counts as lost."""
        if not self.names_unknown_jobs:
            pytest.skip("it does not say that it knows no such job")
        assert isinstance(config, BatchConfig)
        patient = attrs.evolve(config, grace=timedelta(hours=1))
        with self.new_executor(patient) as executor:
            jobs = [Job(), Job()]
            executor.attach_many([(job, f"{self.unknown_id}{at or ''}") for at, job in enumerate(jobs)])

            for job in jobs:
                assert self.end(job).reason is Reason.ATTACH_UNVERIFIED

    @pytest.mark.clause("attach-callback", "attach-fails")
    def test_an_unknown_id_never_becomes_completed(self, executor: JobExecutor) -> None:
        """The attached job is FAILED for `Reason.ATTACH_UNVERIFIED`; its callback gets that status alone."""
        seen: list[JobStatus] = []
        job = Job()
        job.set_job_status_callback(lambda _, status: seen.append(status))

        executor.attach(job, self.unknown_id)

        status = self.end(job)
        assert (status.state, status.reason) == (JobState.FAILED, Reason.ATTACH_UNVERIFIED)
        assert eventually(lambda: bool(seen), self.timeout_seconds)
        # no callback came before the id was known to be unknown
        assert [it.state for it in seen] == [JobState.FAILED]
