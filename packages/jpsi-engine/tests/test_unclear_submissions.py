"""Submissions without a clear outcome: every process reports the same status, and each job runs once."""

from __future__ import annotations

import os
import pickle
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import attrs
import pytest

import jpsi
from jpsi import Job, JobExecutor, JobState
from jpsi.plugin import BatchConfig
from jpsi_engine import job_store
from jpsi_engine.spool import encode_status
from jpsi_engine.spool.spool import Spool
from jpsi_engine.verdict.marker_verdict import never_ran_status
from jpsi_testing import PluginDirectory
from jpsi_testing.conformance.base import Proof
from jpsi_testing.conformance.base import shell as shell_spec
from jpsi_testing.fake import FakeScheduler, on_path
from killed_clients import PATIENCE, run_client
from toys import QUICK, install_toy

CODE = 3
UNKNOWN = "it is not known yet whether it was submitted: the submission is in progress, or was interrupted"
NEVER = "it was not submitted, and cannot run"
NO_CLEAR_ANSWER = f"{NEVER}: toy gave no clear answer: accepted"

# Submits a job and is killed before or after a call of a method.
CLIENT = """
import pickle, sys
import jpsi
from killed_clients import kill_around

module, owner, name, when, count = sys.argv[1:]
config, specs = pickle.load(sys.stdin.buffer)
kill_around(module, f"{owner}.{name}", when)
jobs = [jpsi.Job(spec) for spec in specs]
print(*(job.id for job in jobs), flush=True)
executor = jpsi.JobExecutor("toy", config=config)
if int(count) == 1:
    executor.submit(jobs[0])
else:
    executor.submit_many(jobs)
"""


@pytest.fixture
def config(state_home: Path, plugin_directory: PluginDirectory) -> BatchConfig:
    install_toy(plugin_directory)
    return attrs.evolve(QUICK, work_directory=state_home / "work")


@pytest.fixture
def fake() -> Iterator[FakeScheduler]:
    """Yield a fake batch system whose jobs are queued until it has slots."""
    with FakeScheduler(slots=0) as scheduler, on_path("toy", scheduler):
        yield scheduler


@pytest.fixture
def executor(config: BatchConfig, fake: FakeScheduler) -> Iterator[JobExecutor]:
    with JobExecutor("toy", config=config) as executor:
        yield executor


@pytest.fixture
def stored_job(config: BatchConfig) -> Callable[[str], job_store.StoredJob]:
    """Return a function that reads a job from disk, as every other process does."""

    def stored_job(job_id: str) -> job_store.StoredJob:
        (found,) = [it for it in job_store.jobs(also=[Path(str(config.work_directory))]) if it.id == job_id]
        return found

    return stored_job


def free_slots(fake: FakeScheduler) -> None:
    with fake.lock:
        fake.slots = 8
        fake.settle()


def hide_next_submission(fake: FakeScheduler) -> None:
    """Accept the next submission, lose its output, and answer no command before `faults.clear`."""
    fake.faults.cut("tsubmit")
    fake.faults.down()


def full(*_: object) -> bool:
    raise OSError(28, os.strerror(28))


def code_of(job: Job) -> int | None:
    status = job.wait(PATIENCE)
    assert status is not None
    return status.exit_code


@pytest.mark.parametrize("count", [1, 3], ids=["alone", "array"])
def test_jobs_that_could_not_be_recorded_again_are_not_recovered(
    monkeypatch: pytest.MonkeyPatch,
    executor: JobExecutor,
    config: BatchConfig,
    fake: FakeScheduler,
    tmp_path: Path,
    stored_job: Callable[[str], job_store.StoredJob],
    count: int,
) -> None:
    jobs = [Job(Proof(tmp_path / f"proof{index}").job()) for index in range(count)]
    hide_next_submission(fake)
    with pytest.raises(jpsi.SubmitException):
        executor.submit_many(jobs)
    fake.faults.clear()
    monkeypatch.setattr(Spool, "sync", staticmethod(full))
    with pytest.raises(jpsi.SubmitException, match="could not be recorded"):
        executor.submit_many(jobs)

    with JobExecutor("toy", config=config) as other:
        assert list(other.recover()) == []
    assert ["No space left" in (stored_job(job.id).remark or "") for job in jobs] == [True] * count


@pytest.mark.parametrize("count", [1, 3], ids=["alone", "array"])
def test_a_revoked_submission_is_new_for_every_process(
    executor: JobExecutor,
    config: BatchConfig,
    fake: FakeScheduler,
    tmp_path: Path,
    stored_job: Callable[[str], job_store.StoredJob],
    count: int,
) -> None:
    proofs = [Proof(tmp_path / f"proof{index}") for index in range(count)]
    jobs = [Job(proof.job(CODE)) for proof in proofs]
    hide_next_submission(fake)

    def is_consistent() -> bool:
        """Return True if every process reports it as not submitted, whatever the batch system has."""
        with JobExecutor("toy", config=config) as other:
            recalled = other.recall([job.id for job in jobs])
            assert [it.id for it in other.recover()] == []
        stored = [stored_job(job.id) for job in jobs]
        assert [it.remark for it in stored] == [NO_CLEAR_ANSWER] * count
        states = {it.status.state for it in (*jobs, *recalled, *stored)}
        return states == {JobState.NEW} and len(recalled) == count

    with pytest.raises(jpsi.SubmitException, match="which will not run") as caught:
        executor.submit_many(jobs)
    assert caught.value.transient
    assert is_consistent()
    fake.faults.clear()
    assert is_consistent(), "what the batch system has of it is no job any more"
    free_slots(fake)
    assert fake.wait_for(lambda: all(it.state.final for it in fake.jobs), PATIENCE)
    assert is_consistent(), "it has come and gone"
    executor.submit_many(jobs)

    assert [code_of(job) for job in jobs] == [CODE] * count
    with JobExecutor("toy", config=config) as other:
        assert [code_of(it) for it in other.recall([job.id for job in jobs])] == [CODE] * count
    assert [stored_job(job.id).status.exit_code for job in jobs] == [CODE] * count
    assert [proof.runs for proof in proofs] == [1] * count


@pytest.mark.parametrize("count", [1, 3], ids=["alone", "array"])
def test_a_withdrawn_submission_that_is_cancelled_is_submitted_by_no_program(
    executor: JobExecutor,
    config: BatchConfig,
    fake: FakeScheduler,
    tmp_path: Path,
    stored_job: Callable[[str], job_store.StoredJob],
    count: int,
) -> None:
    proofs = [Proof(tmp_path / f"proof{index}") for index in range(count)]
    jobs = [Job(proof.job(CODE)) for proof in proofs]
    ids = [job.id for job in jobs]
    hide_next_submission(fake)
    with pytest.raises(jpsi.SubmitException, match="which will not run"):
        executor.submit_many(jobs)
    fake.faults.clear()

    cancelled = job_store.cancel_unsent([stored_job(it) for it in ids])

    assert (set(cancelled.done), cancelled.failures) == (set(ids), {})
    with pytest.raises(jpsi.JpsiError, match="by another process in the meantime"):
        executor.submit_many(jobs)
    free_slots(fake)
    assert fake.wait_for(lambda: all(it.state.final for it in fake.jobs), PATIENCE)
    assert {stored_job(it).status.state for it in ids} == {JobState.CANCELED}
    with JobExecutor("toy", config=config) as other:
        assert other.recover() == []
    assert [proof.runs for proof in proofs] == [0] * count


def test_a_submission_that_is_repeated_meanwhile_is_not_cancelled(
    executor: JobExecutor,
    fake: FakeScheduler,
    tmp_path: Path,
    stored_job: Callable[[str], job_store.StoredJob],
) -> None:
    proof = Proof(tmp_path / "proof")
    job = Job(proof.job(CODE))
    hide_next_submission(fake)
    with pytest.raises(jpsi.SubmitException, match="which will not run"):
        executor.submit(job)
    fake.faults.clear()
    before = stored_job(job.id)
    executor.submit(job)

    cancelled = job_store.cancel_unsent([before])

    assert (set(cancelled.done), cancelled.failures) == (set(), {})
    free_slots(fake)
    assert code_of(job) == CODE
    assert proof.runs == 1


@pytest.mark.parametrize("count", [1, 3], ids=["alone", "array"])
def test_every_process_binds_a_submission_that_is_found_later(
    executor: JobExecutor,
    config: BatchConfig,
    fake: FakeScheduler,
    tmp_path: Path,
    stored_job: Callable[[str], job_store.StoredJob],
    monkeypatch: pytest.MonkeyPatch,
    count: int,
) -> None:
    """The client could not revoke it, so its outcome is unknown until the batch system answers."""
    proofs = [Proof(tmp_path / f"proof{index}") for index in range(count)]
    jobs = [Job(proof.job(CODE)) for proof in proofs]
    ids = [job.id for job in jobs]
    hide_next_submission(fake)
    with monkeypatch.context() as patch:
        patch.setattr("jpsi_engine.spool.arrays.revoke", full)
        patch.setattr("jpsi_engine.spool.spool.revoke", full)
        with pytest.raises(jpsi.SubmitException, match="may run or not"):
            executor.submit_many(jobs)

    assert {job.status.state for job in jobs} == {JobState.NEW}
    assert {(stored_job(it).status.state, stored_job(it).remark) for it in ids} == {(JobState.NEW, UNKNOWN)}
    with JobExecutor("toy", config=config) as other:
        with pytest.raises(jpsi.SubmitException):
            other.recover()
        with pytest.raises(jpsi.SubmitException):
            other.recall(ids)
        fake.faults.clear()
        found = {job.id: job for job in other.recover()}

        assert found.keys() == set(ids)
        assert {job.status.state for job in found.values()} == {JobState.QUEUED}
        assert {stored_job(it).status.state for it in ids} == {JobState.QUEUED}
        assert [stored_job(it).native_id for it in ids] == [found[it].native_id for it in ids]
        with pytest.raises(jpsi.BulkException, match="runs already"):
            executor.submit_many(jobs)
        assert {job.status.state for job in jobs} == {JobState.NEW}
        free_slots(fake)
        assert [code_of(found[it]) for it in ids] == [CODE] * count
    assert [stored_job(it).status.exit_code for it in ids] == [CODE] * count
    assert [proof.runs for proof in proofs] == [1] * count


# The step at which the client is killed; the remark during the outage of the batch system; whether the job
# is found after the outage, is recovered as NEW, or is not recovered.
STEPS = [
    ("Spool", "revoke", "before", UNKNOWN, "found"),
    ("Spool", "revoke", "after", NEVER, "new"),
    ("Spool", "give_up", "before", NEVER, "new"),
    ("Spool", "give_up", "after", NO_CLEAR_ANSWER, "left"),
]
ARRAY_STEPS = [("ArrayFiles", *step[1:]) for step in STEPS]
MODULES = {"Spool": "jpsi_engine.spool.spool", "ArrayFiles": "jpsi_engine.spool.arrays"}


@pytest.mark.parametrize(
    ("owner", "name", "when", "remark", "outcome"),
    [*STEPS, *ARRAY_STEPS],
    ids=[f"{when} {owner}.{name}" for owner, name, when, *_ in (*STEPS, *ARRAY_STEPS)],
)
def test_processes_agree_about_a_job_whose_client_was_killed_during_revocation(
    config: BatchConfig,
    fake: FakeScheduler,
    tmp_path: Path,
    stored_job: Callable[[str], job_store.StoredJob],
    owner: str,
    name: str,
    when: str,
    remark: str,
    outcome: str,
) -> None:
    count = 1 if owner == "Spool" else 2
    proofs = [Proof(tmp_path / f"proof{index}") for index in range(count)]
    hide_next_submission(fake)
    ids = killed_client(config, [MODULES[owner], owner, name, when], proofs)

    assert {(stored_job(it).status.state, stored_job(it).remark) for it in ids} == {(JobState.NEW, remark)}
    with JobExecutor("toy", config=config) as other:
        if outcome == "found":
            with pytest.raises(jpsi.SubmitException):
                other.recover()
            assert {stored_job(it).status.state for it in ids} == {JobState.NEW}
        fake.faults.clear()
        if outcome == "new":
            with JobExecutor("toy", config=config) as looker:
                # as `jpsi wait` does for a person: no program follows the job by that
                assert len(looker.recall(ids)) == count
        found = other.recover()
        if outcome == "left":
            assert found == []
            found = other.recall(ids)
        states = {job.status.state for job in found}
        assert (len(found), states) == (count, {JobState.QUEUED if outcome == "found" else JobState.NEW})
        assert {stored_job(it).status.state for it in ids} == states
        # the rest of it in the batch system comes and goes
        free_slots(fake)
        if outcome != "found":
            assert fake.wait_for(lambda: all(it.state.final for it in fake.jobs), PATIENCE)
            assert {stored_job(it).status.state for it in ids} == {JobState.NEW}
            other.submit_many(found)
        assert {code_of(job) for job in found} == {CODE}
    assert {stored_job(it).status.exit_code for it in ids} == {CODE}
    assert [proof.runs for proof in proofs] == [1] * count


def killed_client(config: BatchConfig, step: Sequence[str], proofs: Sequence[Proof]) -> list[str]:
    """Run a client that submits jobs and is killed at a step, and return the ids of the jobs."""
    jobs = pickle.dumps((config, [proof.job(CODE) for proof in proofs]))
    client = run_client(CLIENT, *step, len(proofs), text=jobs, stdout=subprocess.PIPE)
    assert client.returncode == -9
    return client.stdout.decode().split()


def test_a_job_that_an_older_version_recorded_as_cancelled_is_new(
    executor: JobExecutor,
    config: BatchConfig,
    fake: FakeScheduler,
    stored_job: Callable[[str], job_store.StoredJob],
) -> None:
    job = Job(shell_spec("exit 3"))
    hide_next_submission(fake)
    with pytest.raises(jpsi.SubmitException):
        executor.submit(job)
    spool = Spool(stored_job(job.id).origin.path)
    os.unlink(f"{spool.folder(job.id)}/unsent.1")  # noqa: PTH108
    spool.finish(job.id, 1, encode_status(never_ran_status()))

    assert (stored_job(job.id).status.state, stored_job(job.id).remark) == (JobState.NEW, NEVER)
    with JobExecutor("toy", config=config) as other:
        assert other.recover() == []
        assert [it.status.state for it in other.recall([job.id])] == [JobState.NEW]
