"""A batch system with limits: it never has more jobs than that, and every job gets there in the end."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import attrs
import pytest

import jpsi
from jpsi import BulkException, Job, JobExecutor, JobSpec, JobState, JobStatus, SubmitException, aio
from jpsi.contract.config import BatchConfig
from jpsi_testing import PluginDirectory
from jpsi_testing.fake import FakeJob, FakeScheduler, on_path
from manual_executor import PATIENCE
from toys import QUICK, install_toy


@pytest.fixture
def batch(state_home: Path, plugin_directory: PluginDirectory) -> BatchConfig:
    install_toy(plugin_directory)
    return attrs.evolve(QUICK, work_directory=state_home / "work")


@pytest.fixture
def fake(batch: BatchConfig) -> Iterator[FakeScheduler]:
    with FakeScheduler(kill_delay=0.5, slots=8) as scheduler, on_path("toy", scheduler):
        yield scheduler


def executor(batch: BatchConfig, **limits: int) -> JobExecutor:
    return JobExecutor("toy", config=attrs.evolve(batch, **limits))  # type: ignore[arg-type]  # numbers all


def make_jobs(count: int, *, alike: bool = True) -> list[Job]:
    specs = [JobSpec("/bin/true", name="it" if alike else f"it-{number}") for number in range(count)]
    return [Job(spec) for spec in specs]


def state(job: Job) -> str:
    return job.status.state.value


def submissions(fake: FakeScheduler) -> int:
    return sum(call.invocation.argv[0].endswith("tsubmit") for call in fake.log)


def ended(fake: FakeScheduler) -> list[FakeJob]:
    """Return the jobs of jpsi that have ended: markers show that before the batch system reports it."""
    jobs = [it for it in fake.jobs if it.tag]
    assert fake.wait_for(lambda: all(it.ended is not None for it in jobs))
    return jobs


def max_overlap(spans: Iterable[tuple[float | None, float | None]]) -> int:
    """Return the greatest number of these spans of time that overlap."""
    changes = [(time or 0.0, change) for span in spans for time, change in zip(span, (1, -1), strict=True)]
    count, highest = 0, 0
    for _, change in sorted(changes):
        count += change
        highest = max(highest, count)
    return highest


def all_complete(jobs: list[Job]) -> None:
    states = [status and status.state for status in jpsi.wait_all(jobs, PATIENCE)]
    assert states == [JobState.COMPLETED] * len(jobs)


def submit_by_hand(fake: FakeScheduler, count: int) -> list[str]:
    """Submit jobs by hand, which stay queued."""
    names = [str(fake.next_number()) for _ in range(count)]
    for name in names:
        fake.submit(FakeJob(name))
        fake.hold(name)
    return names


@pytest.mark.parametrize("alike", [True, False], ids=["arrays", "alone"])
def test_the_batch_system_never_has_more_jobs_than_max_queued(
    batch: BatchConfig, fake: FakeScheduler, alike: bool
) -> None:
    fake.slots = 0
    submit_by_hand(fake, 3)
    fake.slots = 2
    jobs = make_jobs(12, alike=alike)

    with executor(batch, max_queued=7) as toys:
        toys.submit_many(jobs)
        all_complete(jobs)

    ours = ended(fake)
    assert len(ours) == 12
    assert max_overlap((it.submitted, it.ended) for it in ours) <= 4


def test_jobs_of_others_that_end_make_room(batch: BatchConfig, fake: FakeScheduler) -> None:
    fake.slots = 0
    theirs = submit_by_hand(fake, 2)
    (job,) = make_jobs(1)

    with executor(batch, max_queued=2) as toys:
        thread = threading.Thread(target=toys.submit, args=[job])
        thread.start()
        wait_until_queued(toys)
        assert state(job) == "NEW"
        assert not [it for it in fake.jobs if it.tag]
        fake.cancel(theirs[0])
        thread.join(PATIENCE)
        assert state(job) == "QUEUED"


def test_no_more_elements_of_an_array_run_than_max_active(batch: BatchConfig, fake: FakeScheduler) -> None:
    jobs = make_jobs(9)

    with executor(batch, max_active=2) as toys:
        toys.submit_many(jobs)
        assert submissions(fake) == 1
        all_complete(jobs)

    assert max_overlap((it.started, it.ended) for it in ended(fake)) <= 2


def test_no_more_jobs_run_than_max_active_in_arrays_and_alone(
    batch: BatchConfig, fake: FakeScheduler
) -> None:
    jobs = make_jobs(5) + make_jobs(3, alike=False)

    with executor(batch, max_active=3) as toys:
        toys.submit_many(jobs)
        all_complete(jobs)

    assert len(fake.jobs) == 8
    assert max_overlap((it.started, it.ended) for it in ended(fake)) <= 3


def test_slots_that_an_array_cannot_use_go_to_others(
    batch: BatchConfig, fake: FakeScheduler, tmp_path: Path
) -> None:
    waits = 'until [ -e "$0" ]; do sleep 0.01; done'
    first, *alike, last = [
        Job(JobSpec("/bin/sh", ["-c", waits, str(tmp_path / name)], name=name))
        for name in ("first", *["array"] * 6, "last")
    ]

    with executor(batch, max_active=3) as toys:
        toys.submit(first)
        toys.submit_many(alike)
        (tmp_path / "first").touch()
        assert first.wait(PATIENCE) is not None
        toys.submit(last)
        assert not any(job.status.final for job in alike)
        for name in ("array", "last"):
            (tmp_path / name).touch()
        all_complete([*alike, last])

    assert max_overlap((it.started, it.ended) for it in ended(fake)) <= 3


def test_no_query_counts_jobs_without_limits(batch: BatchConfig, fake: FakeScheduler) -> None:
    fake.slots = 0

    with executor(batch) as toys:
        toys.submit_many(make_jobs(3))

    assert not [call for call in fake.log if "--all" in call.invocation.argv]


def wait_until_queued(toys: JobExecutor, count: int = 1) -> None:
    """Wait until so many submissions are in the submit queue."""
    entries = toys._engine._throttle._submit_queue._entries  # type: ignore[attr-defined]
    deadline = time.monotonic() + PATIENCE
    while len(entries) < count or not entries[0].is_logged:
        assert time.monotonic() < deadline, "nothing waits"
        threading.Event().wait(0.005)


@pytest.mark.parametrize("is_bulk", [False, True])
def test_a_job_that_has_ended_counts_until_the_batch_system_says_so(
    batch: BatchConfig, fake: FakeScheduler, *, is_bulk: bool
) -> None:
    """Its marker shows its end before the batch system has released what it used."""
    first, second = make_jobs(2)

    with executor(attrs.evolve(batch, shortest_interval=timedelta(hours=1)), max_queued=1) as toys:
        if is_bulk:
            toys.submit_many([first])
        else:
            toys.submit(first)
        all_complete([first])
        with ThreadPoolExecutor() as pool:
            waiting = pool.submit(toys.submit, second)
            wait_until_queued(toys)
            toys.close()
            with pytest.raises(SubmitException):
                waiting.result()

    assert submissions(fake) == 1


def test_a_job_that_waits_for_room_is_new_after_an_interrupt_and_can_be_submitted(
    batch: BatchConfig, fake: FakeScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.slots = 0
    theirs = submit_by_hand(fake, 1)
    (job,) = make_jobs(1)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with executor(batch, max_queued=1) as toys:
        with monkeypatch.context() as patch:
            patch.setattr(toys._engine._throttle._submit_queue, "_wait", interrupted)  # type: ignore[attr-defined]
            with pytest.raises(KeyboardInterrupt):
                toys.submit(job)
            with pytest.raises(KeyboardInterrupt):
                toys.submit_many([job, *make_jobs(2)])
        assert state(job) == "NEW"
        assert toys.recover() == []
        fake.cancel(theirs[0])
        toys.submit(job)

    assert state(job) == "QUEUED"


def test_closing_an_executor_ends_waiting_submissions(batch: BatchConfig, fake: FakeScheduler) -> None:
    fake.slots = 0
    jobs = make_jobs(5)
    errors: list[BulkException] = []
    toys = executor(batch, max_queued=2)

    def submit() -> None:
        try:
            toys.submit_many(jobs)
        except BulkException as e:
            errors.append(e)

    thread = threading.Thread(target=submit)
    thread.start()
    wait_until_queued(toys)
    toys.close()
    thread.join(PATIENCE)

    assert errors[0].done == tuple(jobs[:2])
    assert {str(it).partition("was")[2] for it in errors[0].failed.values()} == {
        " cancelled while it waited to be submitted"
    }
    assert [job.status.state for job in jobs] == [JobState.QUEUED] * 2 + [JobState.NEW] * 3


def test_tasks_submit_their_jobs_as_the_quota_allows(batch: BatchConfig, fake: FakeScheduler) -> None:
    fake.slots = 0
    first, second, third = make_jobs(3)

    async def main(toys: JobExecutor) -> None:
        tasks = [asyncio.create_task(aio.submit(job, toys)) for job in (first, second, third)]
        await tasks[0]
        await asyncio.to_thread(wait_until_queued, toys)
        assert [task.done() for task in tasks[1:]] == [False, False]
        tasks[1].cancel()
        await asyncio.wait(tasks[1:2])
        assert first.native_id is not None
        fake.cancel(first.native_id)
        await tasks[2]

    with executor(batch, max_queued=1) as toys:
        asyncio.run(asyncio.wait_for(main(toys), PATIENCE))

    assert [job.status.state for job in (second, third)] == [JobState.NEW, JobState.QUEUED]


def test_a_callback_may_submit_though_the_quota_is_reached(batch: BatchConfig, fake: FakeScheduler) -> None:
    """The next job waits for the end of the job of the callback, which the callback itself delays."""
    jobs = make_jobs(4)
    submitted = threading.Event()

    def callback(job: Job, status: JobStatus) -> None:
        if status.state is JobState.QUEUED and job is not jobs[-1]:
            toys.submit(jobs[jobs.index(job) + 1])
        elif job is jobs[-1]:
            submitted.set()

    with executor(batch, max_queued=1) as toys:
        toys.set_job_status_callback(callback)
        toys.submit(jobs[0])
        assert submitted.wait(PATIENCE)
        all_complete(jobs)


def test_an_outage_refuses_new_submissions(batch: BatchConfig, fake: FakeScheduler) -> None:
    jobs = make_jobs(2)
    fake.faults.fail("tstat", times=None)

    with executor(batch, max_queued=1) as toys:
        with pytest.raises(SubmitException):
            toys.submit(jobs[0])
        with pytest.raises(BulkException) as caught:
            toys.submit_many(jobs)
        assert list(caught.value.failed) == jobs
        fake.faults.clear()
        toys.submit(jobs[0])

    assert submissions(fake) == 1


def test_the_log_names_the_jobs_that_fill_the_quota(
    batch: BatchConfig, fake: FakeScheduler, caplog: pytest.LogCaptureFixture
) -> None:
    fake.slots = 0
    submit_by_hand(fake, 2)
    caplog.set_level(logging.INFO, "jpsi_engine.scheduler.submit_queue")

    def submit() -> None:
        with pytest.raises(SubmitException, match="cancelled while it waited"):
            toys.submit(*make_jobs(1))

    with executor(batch, max_queued=2) as toys:
        thread = threading.Thread(target=submit)
        thread.start()
        wait_until_queued(toys)
        toys.close()
        thread.join(PATIENCE)

    why = "toy has 2 jobs of yours (max_queued is 2), 2 of which are not of this program"
    # executors of other tests may still follow jobs, and poll this fake
    messages = [it.getMessage() for it in caplog.records if it.name == "jpsi_engine.scheduler.submit_queue"]
    assert messages == [f"jobs wait to be submitted: {why}"]
