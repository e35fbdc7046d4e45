"""Attached jobs: no status is published before the backend has confirmed the job."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from jpsi import (
    InvalidJobException,
    Job,
    JobExecutor,
    JobSpec,
    JobState,
    JobStatus,
    Reason,
    ResourceSpecV1,
    UnreachableStateException,
)
from jpsi_testing import PluginDirectory
from jpsi_testing.fake import FakeJob, FakeScheduler, Outcome, on_path
from toys import QUICK, install_toy

PATIENCE = 60.0


@pytest.fixture
def fake() -> Iterator[FakeScheduler]:
    with FakeScheduler() as scheduler, on_path("toy", scheduler):
        yield scheduler


@pytest.fixture
def toys(state_home: Path, plugin_directory: PluginDirectory, fake: FakeScheduler) -> Iterator[JobExecutor]:
    install_toy(plugin_directory)
    config = attrs.evolve(QUICK, work_directory=state_home / "work")
    with JobExecutor("toy", config=config) as executor:
        yield executor


def collect_statuses(job: Job) -> list[JobStatus]:
    """Return a list to which the callback of a job appends its statuses."""
    statuses: list[JobStatus] = []
    job.set_job_status_callback(lambda _, status: statuses.append(status))
    return statuses


def foreign_job(fake: FakeScheduler) -> str:
    """Submit a job without jpsi, and return its native id."""
    return fake.submit(FakeJob(str(fake.next_number()), name="foreign")).native_id


def described(job: Job) -> tuple[JobState, str | None]:
    return job.status.state, job.native_id


@pytest.mark.clause("attach-callback", "attach-returns", "job-native-id")
def test_no_status_is_published_before_the_batch_system_reports_the_job(
    toys: JobExecutor, fake: FakeScheduler
) -> None:
    fake.outcome = Outcome(seconds=300)
    native_id = foreign_job(fake)
    fake.faults.down()
    job = Job()
    calls: list[tuple[JobState, str | None]] = []
    is_called = threading.Event()

    def callback(it: Job, status: JobStatus) -> None:
        calls.append((status.state, it.native_id))
        is_called.set()

    job.set_job_status_callback(callback)
    toys.attach(job, native_id)
    assert fake.wait_for(lambda: fake.log.count("tstat") >= 3, PATIENCE)

    assert (described(job), calls, toys.list()) == ((JobState.NEW, None), [], [])
    fake.faults.up()
    assert is_called.wait(PATIENCE)
    assert calls[0] == (JobState.QUEUED, native_id)
    assert toys.list() == [native_id]


@pytest.mark.clause("attach-callback", "attach-fails", "list-attachable")
def test_an_unknown_id_has_one_status_that_calls_it_unknown(toys: JobExecutor) -> None:
    job = Job()
    statuses = collect_statuses(job)

    toys.attach(job, "999")
    assert toys.list() == []
    job.wait(PATIENCE)

    assert [(it.state, it.reason) for it in statuses] == [(JobState.FAILED, Reason.ATTACH_UNVERIFIED)]
    with pytest.raises(UnreachableStateException):
        job.wait(target_states=JobState.QUEUED)


@pytest.mark.clause("list-unique")
@pytest.mark.parametrize("name", ["toy", "local"])
def test_a_job_that_is_attached_to_twice_is_listed_once(
    name: str, toys: JobExecutor, executor: JobExecutor, fake: FakeScheduler
) -> None:
    fake.outcome = Outcome(seconds=300)
    process = subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE)
    who, native_id = (toys, foreign_job(fake)) if name == "toy" else (executor, str(process.pid))
    jobs = [Job(), Job()]

    for job in jobs:
        who.attach(job, native_id)
        assert job.wait(JobState.QUEUED, PATIENCE)

    assert who.list() == [jobs[0].native_id]
    assert jobs[0].native_id == jobs[1].native_id
    process.communicate(b"")
    jobs[0].cancel()
    assert [job.wait(PATIENCE) is not None for job in jobs] == [True, True]


def test_the_id_of_a_process_differs_from_that_of_a_later_one(executor: JobExecutor) -> None:
    """This holds for a submitted and for an attached process."""
    own, same = Job(JobSpec("/bin/sleep", ["1000"])), Job()
    executor.submit(own)
    assert own.wait(JobState.ACTIVE, PATIENCE)

    executor.attach(same, (own.native_id or "").partition(".")[0])

    assert same.native_id == own.native_id
    assert executor.list() == [own.native_id]
    own.cancel()
    assert [job.wait(PATIENCE) is not None for job in (own, same)] == [True, True]


@pytest.mark.clause("attach-discards")
@pytest.mark.parametrize("name", ["toy", "local"])
def test_attach_discards_the_spec_of_the_job(
    name: str, toys: JobExecutor, executor: JobExecutor, fake: FakeScheduler
) -> None:
    fake.outcome = Outcome(seconds=300)
    process = subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE)
    who, native_id = (toys, foreign_job(fake)) if name == "toy" else (executor, str(process.pid))
    job = Job(JobSpec("/discarded", resources=ResourceSpecV1(node_count=7)))

    who.attach(job, native_id)
    status = job.wait(JobState.ACTIVE, PATIENCE)

    assert job.spec is None
    assert status is not None
    process.communicate(b"")
    job.cancel()
    assert job.wait(PATIENCE)


@pytest.mark.clause("attach-fails")
@pytest.mark.parametrize("native_id", ["", "--all", "two words", "x\x1b[31m"])
@pytest.mark.parametrize("is_many", [False, True], ids=["one", "many"])
def test_text_that_cannot_be_an_id_fails_and_reaches_no_command(
    toys: JobExecutor, fake: FakeScheduler, native_id: str, *, is_many: bool
) -> None:
    job = Job()
    statuses = collect_statuses(job)

    if is_many:
        toys.attach_many([(job, native_id)])
    else:
        toys.attach(job, native_id)
    status = job.wait(PATIENCE)

    assert status is not None
    assert [(it.state, it.reason) for it in statuses] == [(JobState.FAILED, Reason.ATTACH_UNVERIFIED)]
    assert "cannot be the native id of a job" in (status.message or "")
    assert (status.message or "").isprintable()
    assert toys.list() == []
    assert all(native_id not in call.invocation.argv for call in fake.log)


@pytest.mark.clause("attach-callback", "attach-fails")
def test_a_missing_process_has_one_status_that_says_so(executor: JobExecutor) -> None:
    process = subprocess.run(["/bin/true"], check=True)
    assert process.returncode == 0
    job = Job()
    statuses = collect_statuses(job)

    executor.attach(job, f"{os.getpid()}.1")
    job.wait(PATIENCE)

    assert [(it.state, it.reason) for it in statuses] == [(JobState.FAILED, Reason.ATTACH_UNVERIFIED)]


@pytest.mark.clause("attach-new")
def test_a_job_that_is_being_attached_to_cannot_be_attached_again(
    toys: JobExecutor, fake: FakeScheduler
) -> None:
    fake.faults.down()
    job = Job()
    toys.attach(job, "999")

    with pytest.raises(InvalidJobException, match="attached"):
        toys.attach(job, "998")
