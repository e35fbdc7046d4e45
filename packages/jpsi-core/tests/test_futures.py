"""Jobs as futures, and waiting for many of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from datetime import timedelta
from typing import Any

import pytest

import jpsi
from jpsi import Job, JobState, JobStatus
from jpsi.futures import as_completed, as_future, wait_all
from jpsi.model import PluginError
from jpsi.registry import Plugins
from manual_executor import PATIENCE, ManualExecutor

QUEUED, ACTIVE, COMPLETED, FAILED = JobState.QUEUED, JobState.ACTIVE, JobState.COMPLETED, JobState.FAILED


def manual_executors(count: int) -> Sequence[ManualExecutor]:
    return [ManualExecutor(Job()) for _ in range(count)]


# ------------------------------------------------------------------------------------------ one future


def test_a_future_becomes_the_final_status() -> None:
    (manual,) = manual_executors(1)
    future = as_future(manual.job)
    assert not future.done()

    manual.publish(QUEUED, ACTIVE, FAILED)

    assert future.result(PATIENCE).state is FAILED
    assert manual.job._watchers == ()


def test_the_future_of_a_job_that_has_ended_is_done() -> None:
    (manual,) = manual_executors(1)
    manual.publish(QUEUED, COMPLETED)

    assert as_future(manual.job).done()


def test_a_future_is_not_done_before_the_callbacks_have_returned() -> None:
    (manual,) = manual_executors(1)
    is_released = threading.Event()
    manual.job.set_job_status_callback(
        lambda *_: None if is_released.wait(PATIENCE) else pytest.fail("too late")
    )
    future = as_future(manual.job)

    manual.publish(QUEUED, COMPLETED)

    with pytest.raises(TimeoutError):
        future.result(0.2)
    is_released.set()
    assert future.result(PATIENCE).state is COMPLETED


def test_a_future_cannot_be_cancelled_in_the_place_of_its_job() -> None:
    (manual,) = manual_executors(1)
    future = as_future(manual.job)

    assert not future.cancel()
    manual.publish(QUEUED, COMPLETED)
    assert future.result(PATIENCE).state is COMPLETED


def test_a_done_callback_may_read_and_wait_for_the_job() -> None:
    (manual,) = manual_executors(1)
    found: list[JobStatus | None] = []
    done = threading.Event()
    future = as_future(manual.job)
    future.add_done_callback(lambda _: (found.append(manual.job.wait(PATIENCE)), done.set()))

    manual.publish(QUEUED, COMPLETED)

    assert done.wait(PATIENCE)
    assert found == [manual.job.status]


def test_futures_of_jobs_mix_with_others() -> None:
    first, second = manual_executors(2)
    futures = [as_future(manual.job) for manual in (first, second)]

    second.publish(QUEUED, COMPLETED)
    done, _ = wait(futures, PATIENCE, FIRST_COMPLETED)

    assert done == {futures[1]}


# ------------------------------------------------------------------------------------------- many jobs


def test_as_completed_yields_jobs_in_the_order_of_their_ends() -> None:
    first, second, third = manual_executors(3)
    third.publish(QUEUED, COMPLETED)
    completed = as_completed([first.job, second.job, third.job], PATIENCE)

    assert next(completed) is third.job
    second.publish(QUEUED, FAILED)
    assert next(completed) is second.job
    first.publish(QUEUED, ACTIVE)
    threading.Thread(target=first.publish, args=(COMPLETED,)).start()
    assert next(completed) is first.job
    assert list(completed) == []
    assert {manual.job._watchers for manual in (first, second, third)} == {()}


def test_as_completed_yields_a_repeated_job_once() -> None:
    (manual,) = manual_executors(1)
    manual.publish(QUEUED, COMPLETED)

    assert list(as_completed([manual.job, manual.job])) == [manual.job]


@pytest.mark.parametrize("timeout", [0, 0.001, timedelta(milliseconds=1)])
def test_jobs_that_are_not_final_in_time_are_counted(timeout: float | timedelta) -> None:
    first, second, third = manual_executors(3)
    second.publish(QUEUED, COMPLETED)
    found = []

    with pytest.raises(TimeoutError, match="2 jobs are not final"):
        found.extend(as_completed([first.job, second.job, third.job], timeout))

    assert found in ([], [second.job])


def test_an_abandoned_iteration_leaves_no_watchers_at_the_jobs() -> None:
    first, second = manual_executors(2)
    first.publish(QUEUED, COMPLETED)
    for job in as_completed([first.job, second.job]):
        assert job is first.job
        break

    assert second.job._watchers == ()


def test_a_callback_may_wait_for_its_own_job_and_others() -> None:
    first, second = manual_executors(2)
    found: list[Sequence[JobStatus | None]] = []
    done = threading.Event()

    def callback(job: Job, status: JobStatus) -> None:
        if status.final:
            found.append(wait_all([job, second.job], PATIENCE))
            done.set()

    first.job.set_job_status_callback(callback)
    first.publish(QUEUED, COMPLETED)
    second.publish(QUEUED, FAILED)

    assert done.wait(PATIENCE)
    assert found == [[first.job.status, second.job.status]]


@pytest.mark.parametrize(
    "wait_for",
    [lambda job: as_future(job).result(PATIENCE), lambda job: wait_all([job], PATIENCE)[0]],
    ids=["future", "all"],
)
def test_a_callback_of_an_executor_may_wait_for_a_job_that_it_submits(
    wait_for: Callable[[Job], JobStatus],
) -> None:
    """The calls for that job come behind its own."""
    executor = jpsi.JobExecutor.get_instance("local")
    second, found = Job(jpsi.JobSpec("/bin/true")), list[JobState]()

    def callback(job: Job, status: JobStatus) -> None:
        if status.final and job is not second:
            executor.submit(second)
            found.append(wait_for(second).state)

    executor.set_job_status_callback(callback)
    first = Job(jpsi.JobSpec("/bin/true"))
    executor.submit(first)

    assert first.wait(PATIENCE) is not None
    assert second.wait(PATIENCE) is not None
    assert found == [COMPLETED]


@pytest.mark.parametrize("wait_for", [wait_all, lambda jobs: list(as_completed(jobs))], ids=["all", "each"])
def test_what_is_no_job_is_named(wait_for: Callable[[Any], object]) -> None:
    with pytest.raises(TypeError, match=r"a Job is needed, such as Job\(spec\), not JobSpec"):
        wait_for([jpsi.JobSpec("x")])


def test_wait_all_returns_in_the_order_of_the_jobs() -> None:
    first, second = manual_executors(2)
    second.publish(QUEUED, FAILED)
    first.publish(QUEUED, COMPLETED)

    assert wait_all([first.job, second.job, first.job]) == [
        first.job.status,
        second.job.status,
        first.job.status,
    ]
    assert jpsi.wait_all is wait_all


def test_wait_all_returns_none_for_jobs_that_are_not_final_in_time() -> None:
    first, second = manual_executors(2)
    second.publish(QUEUED, FAILED)

    assert wait_all([first.job, second.job], 0.01) == [None, second.job.status]


def test_waiting_for_no_jobs_returns_at_once() -> None:
    assert wait_all([]) == []
    assert list(as_completed([])) == []


# -------------------------------------------------------------------------------------------- progress


def test_the_bar_that_is_missing_is_named_before_anything_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("jpsi.registry.installed", lambda: Plugins(()))

    with pytest.raises(PluginError, match="install jpsi-cli"):
        wait_all([Job()], progress=True)
