"""Jobs in asyncio: the same guarantees as without, and the loop is never blocked."""

from __future__ import annotations

import asyncio
import gc
import threading
from datetime import timedelta

import pytest

import jpsi
from jpsi import Job, JobExecutor, JobSpec, JobState, JobStatus, aio
from manual_executor import PATIENCE, ManualExecutor

QUEUED, ACTIVE, COMPLETED = JobState.QUEUED, JobState.ACTIVE, JobState.COMPLETED


def in_a_thread(manual: ManualExecutor, *states: JobState) -> None:
    thread = threading.Thread(target=manual.publish, args=states)
    thread.start()
    thread.join()


def test_wait_returns_the_final_status_that_comes_from_another_thread() -> None:
    async def main() -> JobStatus | None:
        job = Job()
        manual = ManualExecutor(job)
        waiting = asyncio.create_task(aio.wait(job))
        await asyncio.sleep(0)
        in_a_thread(manual, QUEUED, ACTIVE)
        in_a_thread(manual, COMPLETED)
        return await asyncio.wait_for(waiting, PATIENCE)

    status = asyncio.run(main())

    assert status is not None
    assert status.state is COMPLETED


def test_wait_returns_the_status_of_a_state_that_was_passed() -> None:
    job = Job()
    ManualExecutor(job).publish(QUEUED, ACTIVE, COMPLETED)

    status = asyncio.run(aio.wait(job, ACTIVE))

    assert status is not None
    assert status.state is ACTIVE


@pytest.mark.parametrize("timeout", [0, 0.001, timedelta(milliseconds=1)])
def test_a_wait_whose_time_runs_out_returns_none(timeout: float | timedelta) -> None:
    job = Job()
    ManualExecutor(job).publish(QUEUED)

    assert asyncio.run(aio.wait(job, timeout)) is None
    assert job._watchers == ()


def test_a_wait_for_a_state_that_cannot_be_reached_raises() -> None:
    job = Job()
    ManualExecutor(job).publish(QUEUED, JobState.FAILED)

    with pytest.raises(jpsi.UnreachableStateException, match="cannot become COMPLETED"):
        asyncio.run(aio.wait(job, COMPLETED))


def test_a_canceled_wait_leaves_no_watcher_at_the_job() -> None:
    job = Job()
    ManualExecutor(job).publish(QUEUED)

    async def main() -> None:
        waiting = asyncio.create_task(aio.wait(job))
        await asyncio.sleep(0)
        assert len(job._watchers) == 1
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(main())

    assert job._watchers == ()


def test_a_status_after_the_loop_was_closed_is_ignored() -> None:
    job = Job()
    manual = ManualExecutor(job)
    loop = asyncio.new_event_loop()
    waiting = loop.create_task(aio.wait(job))
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()

    manual.publish(QUEUED, COMPLETED)

    assert job.status.state is COMPLETED
    waiting._log_destroy_pending = False  # type: ignore[attr-defined]


def test_the_events_of_a_job_are_all_its_statuses_in_order() -> None:
    async def main() -> list[JobState]:
        job = Job()
        manual = ManualExecutor(job)
        manual.publish(QUEUED)
        states = []
        async for status in aio.events(job):
            states.append(status.state)
            if status.state is QUEUED:
                in_a_thread(manual, ACTIVE, COMPLETED)
        assert job._watchers == ()
        return states

    assert asyncio.run(main()) == [QUEUED, ACTIVE, COMPLETED]


def test_a_status_is_yielded_after_its_callbacks_have_returned() -> None:
    job = Job()
    manual = ManualExecutor(job)
    order: list[str] = []
    go_on = threading.Event()

    def callback(_: Job, status: JobStatus) -> None:
        assert go_on.wait(PATIENCE)
        order.append(status.state.value)

    job.set_job_status_callback(callback)

    async def main() -> None:
        manual.publish(QUEUED, COMPLETED)
        asyncio.get_running_loop().call_later(0.05, go_on.set)
        async for status in aio.events(job):
            order.append(f"event {status.state.value}")  # noqa: PERF401  callbacks append meanwhile

    asyncio.run(main())

    assert order.index("QUEUED") < order.index("event QUEUED")
    assert order.index("COMPLETED") < order.index("event COMPLETED")


def test_the_events_of_an_executor_name_the_job() -> None:
    async def main() -> None:
        executor = JobExecutor.get_instance("local")
        events = aio.events(executor)
        first, second = (Job(JobSpec("/bin/sh", ["-c", f"exit {code}"])) for code in (0, 3))
        executor.submit(first)
        executor.submit(second)
        ends = {}
        async for job, status in events:
            if status.final:
                ends[job] = status.exit_code
            if len(ends) == 2:
                break
        assert ends == {first: 0, second: 3}
        del events
        gc.collect()
        third = Job(JobSpec("/bin/true"))
        executor.submit(third)
        await aio.wait(third, PATIENCE)
        assert executor._watchers == ()

    asyncio.run(main())


def test_a_thousand_waits_take_no_threads() -> None:
    async def main() -> int:
        manual_executors = [ManualExecutor(Job()) for _ in range(1000)]
        waits = [asyncio.create_task(aio.wait(manual.job)) for manual in manual_executors]
        await asyncio.sleep(0)
        threads = threading.active_count()
        for manual in manual_executors:
            manual.publish(QUEUED, COMPLETED)
        await asyncio.wait_for(asyncio.gather(*waits), PATIENCE)
        return threads

    before = threading.active_count()

    assert asyncio.run(main()) <= before
