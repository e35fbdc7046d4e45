"""Submission in asyncio: few requests, and each task gets the outcome of its own jobs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from jpsi import BulkException, InvalidJobException, Job, JobExecutor, JobSpec, JobState, SubmitException, aio
from jpsi.api import batching
from jpsi.contract.engine import Engine, Outcomes, Submission
from manual_executor import PATIENCE


class Counter(Engine):
    """An engine that records the submissions of each call, and can be made to wait or to refuse."""

    is_bulk = True

    def __init__(self) -> None:
        self.requests: list[list[str]] = []
        self.cancelled: list[str] = []
        self.refused: set[str] = set()
        self.error: BaseException | None = None
        self.began = threading.Semaphore(0)
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self.given_up: list[Sequence[str] | None] = []

    def submit_many(self, submissions: Sequence[Submission], report: Callable[[Outcomes], None]) -> None:
        self.requests.append([it.job_id for it in submissions])
        refused = {it.job_id for it in submissions if it.job_id in self.refused}
        report(dict.fromkeys(refused, SubmitException("no")))
        self.began.release()
        assert self.may_go_on.wait(PATIENCE)
        if self.error is not None:
            raise self.error
        for it in submissions:
            if it.job_id not in refused:
                is_refused = it.job_id in self.refused
                report({it.job_id: SubmitException("no") if is_refused else f"n-{it.job_id}"})

    def give_up(self, job_ids: Sequence[str] | None) -> None:
        self.given_up.append(job_ids)
        self.refused.update(job_ids or ())
        self.may_go_on.set()

    def submit(self, submission: Submission) -> str:
        raise NotImplementedError

    def track(self, job_id: str) -> None:
        pass

    def track_many(self, job_ids: Sequence[str]) -> None:
        pass

    def cancel(self, job_id: str) -> None:
        self.cancelled.append(job_id)


@pytest.fixture
def engine() -> Counter:
    return Counter()


@pytest.fixture
def executor(engine: Counter, monkeypatch: pytest.MonkeyPatch) -> JobExecutor:
    executor = JobExecutor.get_instance("local")
    for part in (executor, executor._submitter):
        monkeypatch.setattr(part, "_engine", engine)
    return executor


def make_job() -> Job:
    return Job(JobSpec("/bin/true"))


def make_jobs(count: int) -> list[Job]:
    return [make_job() for _ in range(count)]


async def wait_for_request(engine: Counter) -> None:
    """Wait until the next request runs."""
    await asyncio.to_thread(engine.began.acquire, timeout=PATIENCE)


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(main, PATIENCE))
    assert not batching._all


def test_concurrent_submissions_are_one_request(engine: Counter, executor: JobExecutor) -> None:
    jobs = make_jobs(50)

    async def main() -> None:
        await asyncio.gather(*(aio.submit(job, executor) for job in jobs))
        assert {job.status.state for job in jobs} == {JobState.QUEUED}

    run(main())

    assert engine.requests == [[job.id for job in jobs]]
    assert [job.native_id for job in jobs] == [f"n-{job.id}" for job in jobs]


def test_submissions_during_a_request_are_the_next_request(engine: Counter, executor: JobExecutor) -> None:
    first, *others = jobs = make_jobs(4)
    engine.may_go_on.clear()

    async def main() -> None:
        tasks = [asyncio.create_task(aio.submit(first, executor))]
        await wait_for_request(engine)
        for job in others:
            tasks.append(asyncio.create_task(aio.submit(job, executor)))
            await asyncio.sleep(0)
        engine.may_go_on.set()
        await asyncio.gather(*tasks)

    run(main())

    assert engine.requests == [[first.id], [job.id for job in others]]
    assert {job.status.state for job in jobs} == {JobState.QUEUED}


def test_a_submission_between_the_last_outcome_and_the_end_of_a_request_is_not_lost(
    engine: Counter, executor: JobExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is in the next request, and no timer begins another one while that one runs."""
    first, second, third = make_jobs(3)
    may_end, submit_many = threading.Event(), engine.submit_many

    def slow_to_end(submissions: Sequence[Submission], report: Callable[[Outcomes], None]) -> None:
        submit_many(submissions, report)
        assert may_end.wait(PATIENCE)

    monkeypatch.setattr(engine, "submit_many", slow_to_end)

    async def main() -> None:
        engine.may_go_on.clear()
        tasks = [asyncio.create_task(aio.submit(first, executor))]
        await wait_for_request(engine)
        tasks.append(asyncio.create_task(aio.submit(second, executor)))
        await asyncio.sleep(0)
        engine.may_go_on.set()
        await tasks[0]
        engine.may_go_on.clear()
        tasks.append(asyncio.create_task(aio.submit(third, executor)))
        await asyncio.sleep(0)
        may_end.set()
        await wait_for_request(engine)
        # the timer of the third job
        await asyncio.sleep(2 * batching.WINDOW_SECONDS)
        engine.may_go_on.set()
        await asyncio.gather(*tasks)

    run(main())

    assert engine.requests == [[first.id], [second.id, third.id]]


def test_each_task_gets_the_outcome_of_its_own_job(engine: Counter, executor: JobExecutor) -> None:
    good, refused, invalid = Job(JobSpec("/bin/true")), Job(JobSpec("/bin/true")), Job(JobSpec())
    engine.refused = {refused.id}
    outcomes: list[BaseException | None] = []

    async def main() -> None:
        jobs = [good, refused, invalid]
        outcomes.extend(
            await asyncio.gather(*(aio.submit(job, executor) for job in jobs), return_exceptions=True)
        )

    run(main())

    assert list(map(type, outcomes)) == [type(None), SubmitException, InvalidJobException]
    assert [job.status.state for job in (good, refused, invalid)] == [
        JobState.QUEUED,
        JobState.NEW,
        JobState.NEW,
    ]


def test_a_refused_job_can_be_submitted_again_during_the_submission_of_others(
    engine: Counter, executor: JobExecutor
) -> None:
    job, other = make_jobs(2)
    engine.refused = {job.id}
    engine.may_go_on.clear()

    async def main() -> None:
        tasks = [asyncio.create_task(aio.submit(it, executor)) for it in (job, other)]
        with pytest.raises(SubmitException, match="no"):
            await tasks[0]
        await wait_for_request(engine)
        engine.refused.clear()
        again = asyncio.create_task(asyncio.to_thread(executor.submit_many, [job]))
        await wait_for_request(engine)
        engine.may_go_on.set()
        await asyncio.gather(tasks[1], again)

    run(main())

    assert {it.status.state for it in (job, other)} == {JobState.QUEUED}


def test_a_job_in_submission_is_not_submitted_twice(engine: Counter, executor: JobExecutor) -> None:
    job = make_job()

    async def main() -> None:
        first, second = await asyncio.gather(
            aio.submit(job, executor), aio.submit(job, executor), return_exceptions=True
        )
        assert first is None
        assert isinstance(second, InvalidJobException)

    run(main())

    assert engine.requests == [[job.id]]


def test_a_task_cancelled_before_its_job_was_handed_over_leaves_it_new(
    engine: Counter, executor: JobExecutor
) -> None:
    kept, given_up = make_jobs(2)

    async def main() -> None:
        tasks = [asyncio.create_task(aio.submit(job, executor)) for job in (kept, given_up)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        await asyncio.wait(tasks)
        assert tasks[1].cancelled()

    run(main())

    assert engine.requests == [[kept.id]]
    assert given_up.status.state is JobState.NEW
    executor.submit_many([given_up])


def test_a_task_cancelled_later_ends_once_the_outcome_of_its_job_is_known(
    engine: Counter, executor: JobExecutor
) -> None:
    job = make_job()
    engine.may_go_on.clear()
    engine.give_up = lambda job_ids: None  # type: ignore[method-assign]  # it was handed over already

    async def main() -> None:
        task = asyncio.create_task(aio.submit(job, executor))
        await wait_for_request(engine)
        task.cancel()
        await asyncio.sleep(0.01)
        assert not task.done()
        engine.may_go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert job.status.state is JobState.QUEUED

    run(main())


def test_a_task_cancelled_while_its_job_waits_for_the_quota_cancels_its_submission(
    engine: Counter, executor: JobExecutor
) -> None:
    given_up, other = make_jobs(2)
    engine.may_go_on.clear()

    async def main() -> None:
        tasks = [asyncio.create_task(aio.submit(job, executor)) for job in (given_up, other)]
        await wait_for_request(engine)
        tasks[0].cancel()
        await asyncio.wait(tasks)
        assert tasks[0].cancelled()
        assert given_up.status.state is JobState.NEW
        await tasks[1]

    run(main())

    assert engine.given_up == [[given_up.id]]


def test_a_submission_cancelled_before_its_wait_for_the_quota_ends_with_the_wait(
    engine: Counter, executor: JobExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batching, "_GIVE_UP_SECONDS", 0.01)
    job, give_up = make_job(), engine.give_up
    engine.may_go_on.clear()

    def at_the_second_time(job_ids: Sequence[str] | None) -> None:
        engine.give_up = give_up  # type: ignore[method-assign]

    engine.give_up = at_the_second_time  # type: ignore[method-assign]

    async def main() -> None:
        task = asyncio.create_task(aio.submit(job, executor))
        await wait_for_request(engine)
        task.cancel()
        await asyncio.wait([task])

    run(main())

    assert engine.given_up == [[job.id]]
    assert job.status.state is JobState.NEW


def test_a_task_that_is_cancelled_twice_ends_at_once(engine: Counter, executor: JobExecutor) -> None:
    job = make_job()
    engine.may_go_on.clear()
    engine.give_up = lambda job_ids: None  # type: ignore[method-assign]

    async def main() -> None:
        task = asyncio.create_task(aio.submit(job, executor))
        await wait_for_request(engine)
        for _ in range(2):
            task.cancel()
            await asyncio.sleep(0.01)
        assert task.cancelled()
        engine.may_go_on.set()
        await aio.wait(job, target_states=JobState.QUEUED)

    run(main())


def test_jobs_are_submitted_though_the_loop_was_closed_meanwhile(
    engine: Counter, executor: JobExecutor
) -> None:
    job = make_job()
    engine.may_go_on.clear()
    loop = asyncio.new_event_loop()
    task = loop.create_task(aio.submit(job, executor))
    loop.run_until_complete(wait_for_request(engine))
    loop.close()

    engine.may_go_on.set()

    assert job.wait(PATIENCE, JobState.QUEUED) is not None
    assert len(batching._all) == 1
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    asyncio.run(aio.submit(make_job(), executor))
    assert not batching._all


def test_jobs_of_a_loop_that_is_closed_before_they_are_handed_over_stay_new(
    engine: Counter, executor: JobExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = make_job()
    loop = asyncio.new_event_loop()
    task = loop.create_task(aio.submit(job, executor))
    with monkeypatch.context() as patch:
        # a busy machine may take longer than that to close the loop
        patch.setattr(batching, "WINDOW_SECONDS", PATIENCE)
        loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    task._log_destroy_pending = False  # type: ignore[attr-defined]

    executor.submit_many([job])

    assert engine.requests == [[job.id]]
    asyncio.run(aio.submit(make_job(), executor))


@pytest.mark.parametrize("submit", [aio.submit, lambda job, on: aio.submit_many([job], on)])
def test_a_closed_executor_refuses_jobs(engine: Counter, executor: JobExecutor, submit: Any) -> None:
    executor.close()

    with pytest.raises(SubmitException, match="was closed"):
        asyncio.run(submit(make_job(), executor))

    assert engine.requests == []
    assert engine.given_up == [None]


def test_an_executor_that_is_closed_while_jobs_gather_refuses_each(
    engine: Counter, executor: JobExecutor
) -> None:
    jobs = make_jobs(2)

    async def main() -> None:
        tasks = [asyncio.create_task(aio.submit(job, executor)) for job in jobs]
        await asyncio.sleep(0)
        executor.close()
        errors = await asyncio.gather(*tasks, return_exceptions=True)
        assert ["was closed" in str(error) for error in errors] == [True, True]

    run(main())

    assert {job.status.state for job in jobs} == {JobState.NEW}


def test_an_error_of_a_whole_request_is_raised_in_every_task(engine: Counter, executor: JobExecutor) -> None:
    engine.error = MemoryError("all of it")

    async def main() -> None:
        errors = await asyncio.gather(
            *(aio.submit(job, executor) for job in make_jobs(2)), return_exceptions=True
        )
        assert list(map(type, errors)) == [MemoryError, MemoryError]
        engine.error = None
        await aio.submit(make_job(), executor)

    run(main())


def test_submit_many_names_the_jobs_that_were_not_submitted(engine: Counter, executor: JobExecutor) -> None:
    jobs = make_jobs(3)
    engine.refused = {jobs[1].id}

    async def main() -> None:
        with pytest.raises(BulkException, match="1 of 3 jobs could not be submitted: no") as caught:
            await aio.submit_many(jobs, executor)
        assert caught.value.done == (jobs[0], jobs[2])
        assert list(caught.value.failed) == [jobs[1]]

    run(main())


def test_submit_many_of_none_does_nothing(engine: Counter, executor: JobExecutor) -> None:
    run(aio.submit_many([], executor))

    assert engine.requests == []


@pytest.mark.parametrize(
    ("jobs", "error"), [(["it"], TypeError), ([Job()] * 2, ValueError)], ids=["no job", "twice"]
)
def test_misuse_is_an_error_before_any_submission(
    engine: Counter, executor: JobExecutor, jobs: Any, error: type[Exception]
) -> None:
    with pytest.raises(error):
        asyncio.run(aio.submit_many(jobs, executor))

    assert engine.requests == []


def test_a_thousand_tasks_take_one_thread(engine: Counter, executor: JobExecutor) -> None:
    jobs = make_jobs(1000)
    engine.may_go_on.clear()
    # those of earlier tests may end meanwhile
    before = set(threading.enumerate())

    async def main() -> None:
        tasks = [asyncio.create_task(aio.submit(job, executor)) for job in jobs]
        await wait_for_request(engine)
        assert len(set(threading.enumerate()) - before) == 2  # one of them waits for the other
        engine.may_go_on.set()
        await asyncio.gather(*tasks)

    run(main())

    assert [len(it) for it in engine.requests] == [1000]


def test_jobs_of_local_run(tmp_path: Path) -> None:
    jobs = [Job(JobSpec("/bin/sh", ["-c", f"exit {code}"])) for code in range(3)]

    async def main() -> None:
        executor = JobExecutor.get_instance("local")
        await asyncio.gather(*(aio.submit(job, executor) for job in jobs))
        ends = [await aio.wait(job) for job in jobs]
        assert [end and end.exit_code for end in ends] == [0, 1, 2]

    run(main())


@pytest.fixture(autouse=True)
def _no_leftovers() -> Iterator[None]:
    yield
    for thread in [it for it in threading.enumerate() if it.name == "jpsi-batching"]:
        thread.join(PATIENCE)
        assert not thread.is_alive()
