"""Jobs in asyncio: submit, wait and receive statuses without a thread for each job.

Everything in this module belongs to the event loop that it is called in. The jobs and executors are the
ordinary ones, and threads may use them at the same time.
"""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Self, overload

from jpsi.api import Batching, by_id, check_job, failure
from jpsi.executor import JobExecutor
from jpsi.job import Job, States, parse_wait_arguments
from jpsi.model import JobStatus


async def submit(job: Job, executor: JobExecutor) -> None:
    """Submit a job to the backend, as `JobExecutor.submit` does.

    Jobs that several tasks submit at about the same time, or while another submission is under way, become
    one request, as with `submit_many`; each task learns the outcome of its own jobs.

    A task that is cancelled meanwhile ends once it is clear whether the backend has its job, which
    `job.status` then shows. A job that the backend did not get yet, as it waits for the quota, is dropped.

    Raises:
        InvalidJobException: the job can never run on this backend as it is.
        SubmitException: the job did not reach the backend for another reason; it is still NEW.
    """
    check_job(job)
    error = (await _submitted([job], executor))[job]
    if error is not None:
        raise error


async def submit_many(jobs: Iterable[Job], executor: JobExecutor) -> None:
    """Submit many jobs to the backend, as `JobExecutor.submit_many` does; raises the same errors."""
    error = failure("submitted", await _submitted(list(by_id(jobs).values()), executor))
    if error is not None:
        raise error


async def _submitted(jobs: Sequence[Job], executor: JobExecutor) -> Mapping[Job, BaseException | None]:
    """Submit jobs, and return the error of each, or None for those that the backend accepted."""
    submitter = executor._submitter  # noqa: SLF001  internal to jpsi
    submitter.check_open()
    if not jobs:
        return {}
    batch = Batching.of(submitter, asyncio.get_running_loop())
    outcomes = {job: batch.put(job) for job in jobs}
    try:
        await asyncio.wait(outcomes.values())
    except asyncio.CancelledError:
        batch.give_up(outcomes)
        await asyncio.wait(outcomes.values())
        raise
    return {job: outcome.result() for job, outcome in outcomes.items()}


async def wait(
    job: Job,
    *waited: float | timedelta | States | None,
    timeout: float | timedelta | None = None,  # noqa: ASYNC109  the arguments of Job.wait
    target_states: States | None = None,
) -> JobStatus | None:
    """Wait until the job enters a state, or has passed through it; the asyncio form of `Job.wait`.

    Raises:
        UnreachableStateException: the caller gave states and the job can reach none of them any more.
    """
    limit, targets = parse_wait_arguments(waited, timeout, target_states)
    job._note_deadline(limit)  # noqa: SLF001
    try:
        with _change_event(job) as changed:
            async with asyncio.timeout(limit):
                while (status := job._peek(targets)) is None:  # noqa: SLF001  internal to jpsi
                    await changed.wait()
                    changed.clear()
                return status
    except TimeoutError:
        return None


@overload
def events(of: Job) -> AsyncIterator[JobStatus]: ...
@overload
def events(of: JobExecutor) -> AsyncIterator[tuple[Job, JobStatus]]: ...
def events(of: Job | JobExecutor) -> AsyncIterator[JobStatus] | AsyncIterator[tuple[Job, JobStatus]]:
    """Iterate over the statuses of a job, or of all jobs of an executor, in order, as they arrive.

    For a job: every status since its submission, including those before this call; the final one is the last.
    A status arrives once the callbacks for it, of the job and of its executor, have returned.

    For an executor: each job with its status, for every status after this call, which must be made in the
    event loop. The iteration has no end; leave the loop over it to stop.
    """
    return _ExecutorEvents(of) if isinstance(of, JobExecutor) else _job_events(of)


async def _job_events(job: Job) -> AsyncIterator[JobStatus]:
    seen = 1  # the initial NEW is not reported
    with _change_event(job) as changed:
        while True:
            changed.clear()
            statuses = job._delivered_statuses()  # noqa: SLF001
            for status in statuses[seen:]:
                yield status
                if status.final:
                    return
            seen = len(statuses)
            await changed.wait()


@contextlib.contextmanager
def _change_event(job: Job) -> Iterator[asyncio.Event]:
    """Provide an event of this loop that is set whenever the status of a job may have changed."""
    loop, changed = asyncio.get_running_loop(), asyncio.Event()

    def watcher() -> None:
        with contextlib.suppress(RuntimeError):  # the loop was closed, so that no task waits
            loop.call_soon_threadsafe(changed.set)

    job._watch(watcher)  # noqa: SLF001  internal to jpsi
    try:
        yield changed
    finally:
        job._unwatch(watcher)  # noqa: SLF001


class _ExecutorEvents:
    """The statuses of an executor's jobs; it receives them for as long as a reference to it exists."""

    def __init__(self, executor: JobExecutor) -> None:
        self._queue: asyncio.Queue[tuple[Job, JobStatus]] = asyncio.Queue()
        loop, queue = asyncio.get_running_loop(), weakref.ref(self._queue)

        def watcher(job: Job, status: JobStatus) -> bool:
            found = queue()
            if found is None or loop.is_closed():
                return False
            with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
                loop.call_soon_threadsafe(found.put_nowait, (job, status))
            return True

        executor._watch(watcher)  # noqa: SLF001  internal to jpsi

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> tuple[Job, JobStatus]:
        return await self._queue.get()
