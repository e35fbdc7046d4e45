"""Submissions that got no clear answer: every process tells the same of them, and each job runs once."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import pytest

import jpsi
from jpsi import Job, JobExecutor, JobState
from jpsi.plugin import BatchConfig
from jpsi_engine import job_store
from jpsi_engine.spool import encode_status
from jpsi_engine.spool.spool import Spool
from jpsi_engine.verdict.marker_verdict import never_ran_status
from jpsi_testing import PluginDirectory, toy
from jpsi_testing.conformance.base import Proof
from jpsi_testing.conformance.base import shell as shell_spec
from jpsi_testing.fake import FakeScheduler, on_path

PATIENCE = 60.0
CODE = 3
UNKNOWN = "it is not known yet whether it was submitted: the submission is in progress, or was interrupted"
NEVER = "it was not submitted, and cannot run"
TOLD = f"{NEVER}: toy gave no clear answer: accepted"

# Submits a job and is killed before or after a method is called.
CLIENT = """
import importlib, os, pickle, signal, sys
import jpsi

module, owner, name, when, count = sys.argv[1:]
config, specs = pickle.load(sys.stdin.buffer)
owner = getattr(importlib.import_module(module), owner)
original = getattr(owner, name)

def killed(*args, **kwargs):
    if when == "after":
        original(*args, **kwargs)
    os.kill(os.getpid(), signal.SIGKILL)

setattr(owner, name, killed)
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
    plugin_directory.add(
        "jpsi-toy",
        "0.1",
        entry_points={"jpsi.executors": {"toy": "jpsi_toy"}},
        files={"jpsi_toy.py": Path(toy.__file__).read_text()},
    )
    return BatchConfig(
        work_directory=state_home / "work",
        shortest_interval=timedelta(seconds=0.1),
        longest_interval=timedelta(seconds=0.3),
        grace=timedelta(seconds=0.5),
    )


@pytest.fixture
def fake() -> Iterator[FakeScheduler]:
    """Whose jobs wait until there is room."""
    with FakeScheduler(slots=0) as scheduler, on_path("toy", scheduler):
        yield scheduler


@pytest.fixture
def executor(config: BatchConfig, fake: FakeScheduler) -> Iterator[JobExecutor]:
    with JobExecutor("toy", config=config) as executor:
        yield executor


@pytest.fixture
def told(config: BatchConfig) -> Callable[[str], job_store.StoredJob]:
    """A job as every other process sees it on disk."""

    def told(job_id: str) -> job_store.StoredJob:
        (found,) = [it for it in job_store.jobs(also=[Path(str(config.work_directory))]) if it.id == job_id]
        return found

    return told


def make_room(fake: FakeScheduler) -> None:
    with fake.lock:
        fake.slots = 8
        fake.settle()


def hidden(fake: FakeScheduler) -> None:
    """Have the next submission accepted and its answer lost, and nobody answer before `faults.clear`."""
    fake.faults.cut("tsubmit")
    fake.faults.down()


def full(*_: object) -> bool:
    raise OSError(28, os.strerror(28))


def code_of(job: Job) -> int | None:
    status = job.wait(PATIENCE)
    assert status is not None
    return status.exit_code


@pytest.mark.parametrize("count", [1, 3], ids=["alone", "array"])
def test_jobs_that_could_not_be_written_down_again_are_nothing_to_recover(
    monkeypatch: pytest.MonkeyPatch,
    executor: JobExecutor,
    config: BatchConfig,
    fake: FakeScheduler,
    tmp_path: Path,
    told: Callable[[str], job_store.StoredJob],
    count: int,
) -> None:
    jobs = [Job(Proof(tmp_path / f"proof{index}").job()) for index in range(count)]
    hidden(fake)
    with pytest.raises(jpsi.SubmitException):
        executor.submit_many(jobs)
    fake.faults.clear()
    monkeypatch.setattr(Spool, "sync", staticmethod(full))
    with pytest.raises(jpsi.SubmitException, match="could not be recorded"):
        executor.submit_many(jobs)

    with JobExecutor("toy", config=config) as other:
        assert list(other.recover()) == []
    assert ["No space left" in (told(job.id).remark or "") for job in jobs] == [True] * count


@pytest.mark.parametrize("count", [1, 3], ids=["alone", "array"])
def test_a_submission_that_was_taken_back_is_new_for_everybody(
    executor: JobExecutor,
    config: BatchConfig,
    fake: FakeScheduler,
    tmp_path: Path,
    told: Callable[[str], job_store.StoredJob],
    count: int,
) -> None:
    proofs = [Proof(tmp_path / f"proof{index}") for index in range(count)]
    jobs = [Job(proof.job(CODE)) for proof in proofs]
    hidden(fake)

    def is_alike() -> bool:
        """Whether everybody says that it was not submitted, whatever the batch system has of it."""
        with JobExecutor("toy", config=config) as other:
            recalled = other.recall([job.id for job in jobs])
            assert [it.id for it in other.recover()] == []
        seen = [told(job.id) for job in jobs]
        assert [it.remark for it in seen] == [TOLD] * count
        states = {it.status.state for it in (*jobs, *recalled, *seen)}
        return states == {JobState.NEW} and len(recalled) == count

    with pytest.raises(jpsi.SubmitException, match="which will not run") as caught:
        executor.submit_many(jobs)
    assert caught.value.transient
    assert is_alike()
    fake.faults.clear()
    assert is_alike(), "what the batch system has of it is no job any more"
    make_room(fake)
    assert fake.wait_for(lambda: all(it.state.final for it in fake.jobs), PATIENCE)
    assert is_alike(), "it has come and gone"
    executor.submit_many(jobs)

    assert [code_of(job) for job in jobs] == [CODE] * count
    with JobExecutor("toy", config=config) as other:
        assert [code_of(it) for it in other.recall([job.id for job in jobs])] == [CODE] * count
    assert [told(job.id).status.exit_code for job in jobs] == [CODE] * count
    assert [proof.runs for proof in proofs] == [1] * count


@pytest.mark.parametrize("count", [1, 3], ids=["alone", "array"])
def test_a_submission_that_is_found_later_is_bound_by_everybody(
    executor: JobExecutor,
    config: BatchConfig,
    fake: FakeScheduler,
    tmp_path: Path,
    told: Callable[[str], job_store.StoredJob],
    monkeypatch: pytest.MonkeyPatch,
    count: int,
) -> None:
    """It could not be taken back, so that nothing is known of it before the batch system answers."""
    proofs = [Proof(tmp_path / f"proof{index}") for index in range(count)]
    jobs = [Job(proof.job(CODE)) for proof in proofs]
    ids = [job.id for job in jobs]
    hidden(fake)
    with monkeypatch.context() as patch:
        patch.setattr("jpsi_engine.spool.arrays.revoke", full)
        patch.setattr("jpsi_engine.spool.spool.revoke", full)
        with pytest.raises(jpsi.SubmitException, match="may run or not"):
            executor.submit_many(jobs)

    assert {job.status.state for job in jobs} == {JobState.NEW}
    assert {(told(it).status.state, told(it).remark) for it in ids} == {(JobState.NEW, UNKNOWN)}
    with JobExecutor("toy", config=config) as other:
        with pytest.raises(jpsi.SubmitException):
            other.recover()
        with pytest.raises(jpsi.SubmitException):
            other.recall(ids)
        fake.faults.clear()
        found = {job.id: job for job in other.recover()}

        assert found.keys() == set(ids)
        assert {job.status.state for job in found.values()} == {JobState.QUEUED}
        assert {told(it).status.state for it in ids} == {JobState.QUEUED}
        assert [told(it).native_id for it in ids] == [found[it].native_id for it in ids]
        with pytest.raises(jpsi.BulkException, match="runs already"):
            executor.submit_many(jobs)
        assert {job.status.state for job in jobs} == {JobState.NEW}
        make_room(fake)
        assert [code_of(found[it]) for it in ids] == [CODE] * count
    assert [told(it).status.exit_code for it in ids] == [CODE] * count
    assert [proof.runs for proof in proofs] == [1] * count


# Where the client is killed; what everybody says while the batch system does not answer; and whether the job
# is found once it does, comes back NEW, or is nobody's to recover.
STEPS = [
    ("Spool", "revoke", "before", UNKNOWN, "found"),
    ("Spool", "revoke", "after", NEVER, "new"),
    ("Spool", "give_up", "before", NEVER, "new"),
    ("Spool", "give_up", "after", TOLD, "left"),
]
ARRAY_STEPS = [("ArrayFiles", *step[1:]) for step in STEPS]
MODULES = {"Spool": "jpsi_engine.spool.spool", "ArrayFiles": "jpsi_engine.spool.arrays"}


@pytest.mark.parametrize(
    ("owner", "name", "when", "remark", "outcome"),
    [*STEPS, *ARRAY_STEPS],
    ids=[f"{when} {owner}.{name}" for owner, name, when, *_ in (*STEPS, *ARRAY_STEPS)],
)
def test_a_client_that_is_killed_while_it_takes_back_leaves_one_story(
    config: BatchConfig,
    fake: FakeScheduler,
    tmp_path: Path,
    told: Callable[[str], job_store.StoredJob],
    owner: str,
    name: str,
    when: str,
    remark: str,
    outcome: str,
) -> None:
    count = 1 if owner == "Spool" else 2
    proofs = [Proof(tmp_path / f"proof{index}") for index in range(count)]
    hidden(fake)
    ids = killed_client(config, [MODULES[owner], owner, name, when], proofs)

    assert {(told(it).status.state, told(it).remark) for it in ids} == {(JobState.NEW, remark)}
    with JobExecutor("toy", config=config) as other:
        if outcome == "found":
            with pytest.raises(jpsi.SubmitException):
                other.recover()
            assert {told(it).status.state for it in ids} == {JobState.NEW}
        fake.faults.clear()
        if outcome == "new":
            with JobExecutor("toy", config=config) as looker:
                # as `jpsi wait`, which tells a person: no program has the job by that
                assert len(looker.recall(ids)) == count
        found = other.recover()
        if outcome == "left":
            assert found == []
            found = other.recall(ids)
        states = {job.status.state for job in found}
        assert (len(found), states) == (count, {JobState.QUEUED if outcome == "found" else JobState.NEW})
        assert {told(it).status.state for it in ids} == states
        # what is left of it in the batch system comes and goes
        make_room(fake)
        if outcome != "found":
            assert fake.wait_for(lambda: all(it.state.final for it in fake.jobs), PATIENCE)
            assert {told(it).status.state for it in ids} == {JobState.NEW}
            other.submit_many(found)
        assert {code_of(job) for job in found} == {CODE}
    assert {told(it).status.exit_code for it in ids} == {CODE}
    assert [proof.runs for proof in proofs] == [1] * count


def killed_client(config: BatchConfig, step: Sequence[str], proofs: Sequence[Proof]) -> list[str]:
    """Have a client submit jobs and be killed at a step; returns the ids of the jobs."""
    client = subprocess.run(
        [sys.executable, "-c", CLIENT, *step, str(len(proofs))],
        input=pickle.dumps((config, [proof.job(CODE) for proof in proofs])),
        stdout=subprocess.PIPE,
        check=False,
        timeout=PATIENCE,
    )
    assert client.returncode == -9
    return client.stdout.decode().split()


def test_what_an_older_version_called_cancelled_is_new(
    executor: JobExecutor,
    config: BatchConfig,
    fake: FakeScheduler,
    told: Callable[[str], job_store.StoredJob],
) -> None:
    job = Job(shell_spec("exit 3"))
    hidden(fake)
    with pytest.raises(jpsi.SubmitException):
        executor.submit(job)
    spool = Spool(told(job.id).origin.path)
    os.unlink(f"{spool.folder(job.id)}/unsent.1")  # noqa: PTH108
    spool.finish(job.id, 1, encode_status(never_ran_status()))

    assert (told(job.id).status.state, told(job.id).remark) == (JobState.NEW, NEVER)
    with JobExecutor("toy", config=config) as other:
        assert other.recover() == []
        assert [it.status.state for it in other.recall([job.id])] == [JobState.NEW]
