"""The executor `local` with a limit: no more jobs run than there are slots, and each gets its turn."""

from __future__ import annotations

import asyncio
import contextlib
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
def gate(tmp_path: Path) -> Path:
    """Jobs that `held` makes run until there is this file."""
    return tmp_path / "gate"


def held(gate: Path, cores: int = 1, then: str = ":") -> Job:
    command = f'until [ -e "$0" ]; do sleep 0.01; done; {then}'
    resources = ResourceSpecV1(process_count=1, cpu_cores_per_process=cores)
    return Job(JobSpec("/bin/sh", ["-c", command, str(gate)], resources=resources))


@contextlib.contextmanager
def in_thread(work: Callable[[], object]) -> Iterator[threading.Thread]:
    """Does something on another thread, which must have ended after the block."""
    thread = threading.Thread(target=work)
    thread.start()
    yield thread
    thread.join(PATIENCE)
    assert not thread.is_alive()


def stands(executor: JobExecutor, count: int = 1) -> None:
    """Returns once so many submissions wait."""
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


def test_submit_waits_until_a_slot_is_free(executor: JobExecutor, gate: Path) -> None:
    first, last = [held(gate), held(gate)], held(gate)
    executor.submit_many(first)

    with in_thread(lambda: executor.submit(last)):
        stands(executor)
        assert last.status.state is JobState.NEW
        gate.touch()

    assert last.wait(PATIENCE) is not None


def test_who_waits_hears_at_once_that_an_own_job_has_ended(
    executor: JobExecutor, gate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jpsi_engine.local.slots._CHECK_SECONDS", 2 * PATIENCE)
    job = held(gate)
    executor.submit(held(gate, cores=2))

    with in_thread(lambda: executor.submit(job)):
        stands(executor)
        gate.touch()

    assert job.wait(PATIENCE) is not None


def test_a_job_takes_as_many_slots_as_it_has_cores(executor: JobExecutor, gate: Path) -> None:
    small, large = held(gate), held(gate, cores=2)
    executor.submit(small)

    with in_thread(lambda: executor.submit(large)):
        stands(executor)
        gate.touch()

    assert large.wait(PATIENCE) is not None


def test_who_comes_later_does_not_get_before_a_large_job(executor: JobExecutor, gate: Path) -> None:
    small, large, late = held(gate), held(gate, cores=2), held(gate)
    executor.submit(small)

    with in_thread(lambda: executor.submit(large)):
        stands(executor)
        with in_thread(lambda: executor.submit(late)):
            stands(executor, 2)
            gate.touch()

    first, second = (job.wait(PATIENCE, [JobState.ACTIVE]) for job in (large, late))
    assert first is not None
    assert second is not None
    assert first.time < second.time
    jpsi.wait_all([large, late], PATIENCE)


def test_the_cores_of_all_components_are_counted(executor: JobExecutor) -> None:
    kinds = HeterogeneousResources([ResourceSpecV1(cpu_cores_per_process=2), ResourceSpecV1()])

    with pytest.raises(InvalidJobException, match="it needs 3 cores, and max_active of this executor is 2"):
        executor.submit(Job(JobSpec("/bin/true", resources=kinds, launcher="single")))


def test_a_job_that_needs_more_than_there_are_is_refused(executor: JobExecutor, gate: Path) -> None:
    with pytest.raises(InvalidJobException, match="it needs 3 cores, and max_active of this executor is 2"):
        executor.submit(held(gate, cores=3))


def test_slots_are_those_of_all_programs_of_the_user(limited: jpsi.ExecutorConfig, gate: Path) -> None:
    client = (
        "import sys, jpsi; "
        "config = jpsi.ExecutorConfig(work_directory=sys.argv[1], max_active=2); "
        "executor = jpsi.JobExecutor.get_instance('local', config=config); "
        "resources = jpsi.ResourceSpecV1(cpu_cores_per_process=2); "
        "arguments = ['-c', 'until [ -e \"$0\" ]; do sleep 0.01; done', sys.argv[2]]; "
        "executor.submit(jpsi.Job(jpsi.JobSpec('/bin/sh', arguments, resources=resources))); "
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    )
    words = [sys.executable, "-c", client, str(limited.work_directory), str(gate)]
    assert subprocess.run(words, check=False, timeout=PATIENCE).returncode == -signal.SIGKILL

    with JobExecutor.get_instance("local", config=limited) as executor:
        job = held(gate)
        with in_thread(lambda: executor.submit(job)):
            stands(executor)
            assert job.status.state is JobState.NEW
            gate.touch()
        assert job.wait(PATIENCE) is not None


def test_slots_of_a_program_that_was_killed_before_it_started_a_job_are_free(
    executor: JobExecutor, limited: jpsi.ExecutorConfig, gate: Path
) -> None:
    gate.touch()
    executor.submit(held(gate, cores=2))
    assert limited.work_directory is not None
    (slots,) = limited.work_directory.rglob("slots")
    for number, process in enumerate(["1.1.abcdef01", f"{os.getpid()}.1", "99999999.77.abcdef01"]):
        (slots / f"{process}.2.ab{number}").touch()

    executor.submit(held(gate, cores=2))


def test_a_job_that_could_not_be_started_takes_no_slot(
    executor: JobExecutor, limited: jpsi.ExecutorConfig, gate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate.touch()
    with monkeypatch.context() as patch:
        patch.setattr("jpsi_engine.local.local_engine.spawn", _no_process)
        with pytest.raises(SubmitException, match="no more processes"):
            executor.submit(held(gate, cores=2))

    assert slots_taken(limited) == []
    executor.submit(held(gate, cores=2))


def _no_process(*_: object) -> int:
    raise BlockingIOError(11, "no more processes")


def test_a_callback_may_submit_though_there_is_no_slot(executor: JobExecutor, gate: Path) -> None:
    """The job that the callback is about ends meanwhile, though that is not told before it returns."""
    jobs = [held(gate, cores=2), held(gate, cores=2)]
    submitted = threading.Event()

    def callback(job: Job, status: JobStatus) -> None:
        if job is jobs[0] and status.state is ACTIVE:
            executor.submit(jobs[1])
            submitted.set()

    executor.set_job_status_callback(callback)
    jobs[0].set_job_status_callback(lambda _, __: None)
    executor.submit(jobs[0])
    stands(executor)
    gate.touch()

    assert submitted.wait(PATIENCE)
    assert [status and status.state for status in jpsi.wait_all(jobs, PATIENCE)] == [JobState.COMPLETED] * 2


def test_closing_an_executor_ends_what_waits(executor: JobExecutor, gate: Path) -> None:
    jobs = [held(gate) for _ in range(8)]
    errors: list[BulkException] = []

    def submit() -> None:
        try:
            executor.submit_many(jobs)
        except BulkException as e:
            errors.append(e)

    with in_thread(submit):
        stands(executor, 4)
        executor.close()

    gate.touch()
    assert [len(it.done) for it in errors] == [2]
    assert {str(it).partition("was")[2] for it in errors[0].failed.values()} == {
        " given up while it waited to be submitted"
    }
    assert {job.status.state for job in errors[0].failed} == {JobState.NEW}
    jpsi.wait_all(errors[0].done, PATIENCE)


def test_an_interrupt_ends_what_waits(limited: jpsi.ExecutorConfig, gate: Path) -> None:
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
    words = [sys.executable, "-c", client, str(limited.work_directory), str(gate)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "go\n"
        while len(slots_taken(limited)) < 2:
            threading.Event().wait(0.01)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=PATIENCE)

    gate.touch()
    assert output == "6\n"


def test_a_task_that_is_cancelled_gives_up_its_slot_in_the_line(executor: JobExecutor, gate: Path) -> None:
    first, waiting, last = held(gate, cores=2), held(gate), held(gate)

    async def main() -> None:
        await aio.submit(first, executor)
        tasks = [asyncio.create_task(aio.submit(job, executor)) for job in (waiting, last)]
        await asyncio.to_thread(stands, executor, 2)
        tasks[0].cancel()
        await asyncio.wait(tasks[:1])
        assert tasks[0].cancelled()
        assert not tasks[1].done()
        await asyncio.to_thread(gate.touch)
        await tasks[1]

    asyncio.run(asyncio.wait_for(main(), PATIENCE))

    assert waiting.status.state is JobState.NEW
    assert last.wait(PATIENCE) is not None


def test_without_a_limit_nothing_is_counted(config: jpsi.ExecutorConfig, gate: Path) -> None:
    gate.touch()
    with JobExecutor.get_instance("local", config=config) as executor:
        job = held(gate, cores=99)
        executor.submit(job)
        assert job.wait(PATIENCE) is not None

    assert slots_taken(config) == []
