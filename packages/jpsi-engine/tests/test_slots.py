"""The executor `local` with a limit: no more jobs run than it has slots, in the order of submission."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pytest

import jpsi
from jpsi import (
    BulkException,
    HeterogeneousResources,
    InvalidJobException,
    Job,
    JobExecutor,
    JobSpec,
    JobState,
    JobStatus,
    ResourceSpecV1,
    SubmitException,
    aio,
)
from jpsi_engine.local.slots import ArrayLimit, Slots, SlotsTaken
from jpsi_engine.scheduler import QuotaReached
from manual_executor import PATIENCE

ACTIVE = JobState.ACTIVE


@pytest.fixture
def limited(config: jpsi.ExecutorConfig) -> jpsi.ExecutorConfig:
    return attrs.evolve(config, max_active=2)


@pytest.fixture
def executor(limited: jpsi.ExecutorConfig) -> Iterator[JobExecutor]:
    with JobExecutor.get_instance("local", config=limited) as executor:
        yield executor


@pytest.fixture
def release_file(tmp_path: Path) -> Path:
    """Return the file that releases the jobs of `held_job`."""
    return tmp_path / "release"


def held_job(release_file: Path, cores: int = 1, then: str = ":") -> Job:
    command = f'until [ -e "$0" ]; do sleep 0.01; done; {then}'
    resources = ResourceSpecV1(process_count=1, cpu_cores_per_process=cores)
    return Job(JobSpec("/bin/sh", ["-c", command, str(release_file)], resources=resources))


@contextlib.contextmanager
def in_thread(work: Callable[[], object]) -> Iterator[threading.Thread]:
    """Run a function in another thread, which must end with the block."""
    thread = threading.Thread(target=work)
    thread.start()
    yield thread
    thread.join(PATIENCE)
    assert not thread.is_alive()


def wait_until_queued(executor: JobExecutor, count: int = 1) -> None:
    """Wait until so many submissions are in the submit queue."""
    submit_queue = executor._engine._submit_queue  # type: ignore[attr-defined]
    while len(submit_queue._entries) < count:
        threading.Event().wait(0.005)


def slots_taken(config: jpsi.ExecutorConfig) -> list[str]:
    assert config.work_directory is not None
    return [it.name for it in config.work_directory.rglob("slots/*.*")]


def test_no_more_jobs_run_than_there_are_slots(executor: JobExecutor, tmp_path: Path) -> None:
    count = 'echo >"$0/$$"; ls "$0" | wc -l; sleep 0.02; rm "$0/$$"'
    running, outputs = tmp_path / "running", [tmp_path / f"{number}" for number in range(8)]
    running.mkdir()
    jobs = [Job(JobSpec("/bin/sh", ["-c", count, str(running)], stdout_path=path)) for path in outputs]

    executor.submit_many(jobs)

    assert [status and status.exit_code for status in jpsi.wait_all(jobs, PATIENCE)] == [0] * 8
    assert max(int(path.read_text()) for path in outputs) <= 2


def test_submit_waits_until_a_slot_is_free(executor: JobExecutor, release_file: Path) -> None:
    first, last = [held_job(release_file), held_job(release_file)], held_job(release_file)
    executor.submit_many(first)

    with in_thread(lambda: executor.submit(last)):
        wait_until_queued(executor)
        assert last.status.state is JobState.NEW
        release_file.touch()

    assert last.wait(PATIENCE) is not None


def test_the_end_of_an_own_job_wakes_a_waiting_submission_at_once(
    executor: JobExecutor, release_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jpsi_engine.local.slots._CHECK_SECONDS", 2 * PATIENCE)
    job = held_job(release_file)
    executor.submit(held_job(release_file, cores=2))

    with in_thread(lambda: executor.submit(job)):
        wait_until_queued(executor)
        release_file.touch()

    assert job.wait(PATIENCE) is not None


def test_a_job_takes_as_many_slots_as_it_has_cores(executor: JobExecutor, release_file: Path) -> None:
    small, large = held_job(release_file), held_job(release_file, cores=2)
    executor.submit(small)

    with in_thread(lambda: executor.submit(large)):
        wait_until_queued(executor)
        release_file.touch()

    assert large.wait(PATIENCE) is not None


def test_a_later_small_job_does_not_overtake_a_large_one(executor: JobExecutor, release_file: Path) -> None:
    small, large, late = held_job(release_file), held_job(release_file, cores=2), held_job(release_file)
    executor.submit(small)

    with in_thread(lambda: executor.submit(large)):
        wait_until_queued(executor)
        with in_thread(lambda: executor.submit(late)):
            wait_until_queued(executor, 2)
            release_file.touch()

    first, second = (job.wait(PATIENCE, [JobState.ACTIVE]) for job in (large, late))
    assert first is not None
    assert second is not None
    assert first.time < second.time
    jpsi.wait_all([large, late], PATIENCE)


def test_the_cores_of_all_components_are_counted(executor: JobExecutor) -> None:
    kinds = HeterogeneousResources([ResourceSpecV1(cpu_cores_per_process=2), ResourceSpecV1()])

    with pytest.raises(InvalidJobException, match="it needs 3 cores, and max_active of this executor is 2"):
        executor.submit(Job(JobSpec("/bin/true", resources=kinds, launcher="single")))


def test_a_job_that_needs_more_slots_than_the_limit_is_refused(
    executor: JobExecutor, release_file: Path
) -> None:
    with pytest.raises(InvalidJobException, match="it needs 3 cores, and max_active of this executor is 2"):
        executor.submit(held_job(release_file, cores=3))


def test_all_programs_of_the_user_share_the_slots(limited: jpsi.ExecutorConfig, release_file: Path) -> None:
    client = (
        "import sys, jpsi; "
        "config = jpsi.ExecutorConfig(work_directory=sys.argv[1], max_active=2); "
        "executor = jpsi.JobExecutor.get_instance('local', config=config); "
        "resources = jpsi.ResourceSpecV1(cpu_cores_per_process=2); "
        "arguments = ['-c', 'until [ -e \"$0\" ]; do sleep 0.01; done', sys.argv[2]]; "
        "executor.submit(jpsi.Job(jpsi.JobSpec('/bin/sh', arguments, resources=resources))); "
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    )
    words = [sys.executable, "-c", client, str(limited.work_directory), str(release_file)]
    assert subprocess.run(words, check=False, timeout=PATIENCE).returncode == -signal.SIGKILL

    with JobExecutor.get_instance("local", config=limited) as executor:
        job = held_job(release_file)
        with in_thread(lambda: executor.submit(job)):
            wait_until_queued(executor)
            assert job.status.state is JobState.NEW
            release_file.touch()
        assert job.wait(PATIENCE) is not None


def test_slots_of_a_program_that_was_killed_before_it_started_a_job_are_free(
    executor: JobExecutor, limited: jpsi.ExecutorConfig, release_file: Path
) -> None:
    release_file.touch()
    executor.submit(held_job(release_file, cores=2))
    assert limited.work_directory is not None
    (slots,) = limited.work_directory.rglob("slots")
    for number, process in enumerate(["1.1.abcdef01", f"{os.getpid()}.1", "99999999.77.abcdef01"]):
        (slots / f"{process}.2.ab{number}").touch()

    executor.submit(held_job(release_file, cores=2))


def test_a_job_that_could_not_be_started_takes_no_slot(
    executor: JobExecutor, limited: jpsi.ExecutorConfig, release_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release_file.touch()
    with monkeypatch.context() as patch:
        patch.setattr("jpsi_engine.local.starter._JOBS_BEFORE", math.inf)
        patch.setattr("jpsi_engine.local.local_engine.spawn", _no_process)
        with pytest.raises(SubmitException, match="no more processes"):
            executor.submit(held_job(release_file, cores=2))

    assert slots_taken(limited) == []
    executor.submit(held_job(release_file, cores=2))


def _no_process(*_: object) -> int:
    raise BlockingIOError(11, "no more processes")


def test_a_callback_may_submit_though_there_is_no_slot(executor: JobExecutor, release_file: Path) -> None:
    """The job of the callback ends meanwhile, though jpsi publishes that only after the callback returned."""
    jobs = [held_job(release_file, cores=2), held_job(release_file, cores=2)]
    submitted = threading.Event()

    def callback(job: Job, status: JobStatus) -> None:
        if job is jobs[0] and status.state is ACTIVE:
            executor.submit(jobs[1])
            submitted.set()

    executor.set_job_status_callback(callback)
    jobs[0].set_job_status_callback(lambda _, __: None)
    executor.submit(jobs[0])
    wait_until_queued(executor)
    release_file.touch()

    assert submitted.wait(PATIENCE)
    assert [status and status.state for status in jpsi.wait_all(jobs, PATIENCE)] == [JobState.COMPLETED] * 2


def test_closing_an_executor_ends_waiting_submissions(executor: JobExecutor, release_file: Path) -> None:
    jobs = [held_job(release_file) for _ in range(8)]
    errors: list[BulkException] = []

    def submit() -> None:
        try:
            executor.submit_many(jobs)
        except BulkException as e:
            errors.append(e)

    with in_thread(submit):
        wait_until_queued(executor, 4)
        executor.close()

    release_file.touch()
    assert [len(it.done) for it in errors] == [2]
    assert {str(it).partition("was")[2] for it in errors[0].failed.values()} == {
        " cancelled while it waited to be submitted"
    }
    assert {job.status.state for job in errors[0].failed} == {JobState.NEW}
    jpsi.wait_all(errors[0].done, PATIENCE)


def test_an_interrupt_ends_a_waiting_submission(limited: jpsi.ExecutorConfig, release_file: Path) -> None:
    client = (
        "import sys, jpsi; "
        "config = jpsi.ExecutorConfig(work_directory=sys.argv[1], max_active=2); "
        "executor = jpsi.JobExecutor.get_instance('local', config=config)\n"
        "arguments = ['-c', 'until [ -e \"$0\" ]; do sleep 0.01; done', sys.argv[2]]\n"
        "jobs = [jpsi.Job(jpsi.JobSpec('/bin/sh', arguments)) for _ in range(8)]\n"
        "print('go', flush=True)\n"
        "try:\n"
        "    executor.submit_many(jobs)\n"
        "except KeyboardInterrupt:\n"
        "    print(sorted(job.status.state.value for job in jobs).count('NEW'), flush=True)\n"
    )
    words = [sys.executable, "-c", client, str(limited.work_directory), str(release_file)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "go\n"
        while len(slots_taken(limited)) < 2:
            threading.Event().wait(0.01)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=PATIENCE)

    release_file.touch()
    assert output == "6\n"


def test_a_canceled_task_leaves_the_submit_queue(executor: JobExecutor, release_file: Path) -> None:
    first, waiting, last = held_job(release_file, cores=2), held_job(release_file), held_job(release_file)

    async def main() -> None:
        await aio.submit(first, executor)
        tasks = [asyncio.create_task(aio.submit(job, executor)) for job in (waiting, last)]
        await asyncio.to_thread(wait_until_queued, executor, 2)
        tasks[0].cancel()
        await asyncio.wait(tasks[:1])
        assert tasks[0].cancelled()
        assert not tasks[1].done()
        await asyncio.to_thread(release_file.touch)
        await tasks[1]

    asyncio.run(asyncio.wait_for(main(), PATIENCE))

    assert waiting.status.state is JobState.NEW
    assert last.wait(PATIENCE) is not None


def test_without_a_limit_nothing_is_counted(config: jpsi.ExecutorConfig, release_file: Path) -> None:
    release_file.touch()
    with JobExecutor.get_instance("local", config=config) as executor:
        job = held_job(release_file, cores=99)
        executor.submit(job)
        assert job.wait(PATIENCE) is not None

    assert slots_taken(config) == []


def test_any_random_name_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of digits alone is not taken for a number of slots."""
    monkeypatch.setattr(os, "urandom", lambda count: b"\x12" * count)
    slots = Slots(str(tmp_path), 2)

    assert isinstance(slots.acquire(1, ArrayLimit("deadbeef", 1)), SlotsTaken)
    assert isinstance(slots.acquire(1, ArrayLimit("deadbeef", 1)), QuotaReached)


def test_each_array_has_its_own_limit(config: jpsi.ExecutorConfig, release_file: Path) -> None:
    """The elements of one array do not wait for those of another."""

    def element(array: str) -> Job:
        job = held_job(release_file)
        assert job.spec is not None
        job.spec.attributes.set_custom_attribute("jpsi.array_id", array)
        job.spec.attributes.set_custom_attribute("jpsi.at_a_time", 1)
        return job

    first, second, third = element("../a"), element("b"), element("b")
    with JobExecutor.get_instance("local", config=config) as executor:
        executor.submit(first)
        executor.submit(second)
        with in_thread(lambda: executor.submit(third)):
            wait_until_queued(executor)
            assert third.status.state is JobState.NEW
            release_file.touch()

        assert third.wait(PATIENCE) is not None
