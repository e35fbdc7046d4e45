"""Jobs in asyncio: submit, wait and hear of states without a thread for each.

Everything here belongs to the event loop that it is called in; jobs and executors are the same objects as
everywhere, and may be used by threads besides.
"""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Self, overload

from jpsi.api import Combining, by_id, check_job, not_done
from jpsi.executor import JobExecutor
from jpsi.job import Job, States, asked
from jpsi.model import JobStatus


async def submit(job: Job, executor: JobExecutor) -> None:
    """Hand a job to the backend, as `JobExecutor.submit`.

    What several tasks submit within a moment, or while another submission is under way, is one request, as of
    `submit_many`; each task hears of its own jobs.

    A task that is cancelled meanwhile ends once it is clear whether the backend has its job, as `job.status`
    tells. A job that the backend was not given yet, such as one that waits for room, is not submitted.

    Raises:
        InvalidJobException: the job can never run here as it is.
        SubmitException: the job did not reach the backend for another reason; it is still NEW.
    """
    check_job(job)
    error = (await _submitted([job], executor))[job]
    if error is not None:
        raise error


async def submit_many(jobs: Iterable[Job], executor: JobExecutor) -> None:
    """Hand many jobs to the backend, as `JobExecutor.submit_many`; raises what it raises."""
    given = list(by_id(jobs).values())
    error = not_done("submitted", await _submitted(given, executor))
    if error is not None:
        raise error


async def _submitted(jobs: Sequence[Job], executor: JobExecutor) -> Mapping[Job, BaseException | None]:
    """What came of each of some jobs."""
    executor._check_open()  # noqa: SLF001  a door of it
    if not jobs:
        return {}
    combining = Combining.of(executor)
    outcomes = {job: combining.put(job) for job in jobs}
    try:
        await asyncio.wait(outcomes.values())
    except asyncio.CancelledError:
        combining.give_up(outcomes)
        await asyncio.wait(outcomes.values())
        raise
    return {job: outcome.result() for job, outcome in outcomes.items()}


async def wait(
    job: Job,
    *waited: float | timedelta | States | None,
    timeout: float | timedelta | None = None,  # noqa: ASYNC109  the arguments of Job.wait
    target_states: States | None = None,
) -> JobStatus | None:
    """Wait for the job to enter a state, or to have passed through it; all as `Job.wait`.

    Raises:
        UnreachableStateException: states were given and none can be reached any more.
    """
    limit, targets = asked(waited, timeout, target_states)
    try:
        with _news(job) as news:
            async with asyncio.timeout(limit):
                while (status := job._peek(targets)) is None:  # noqa: SLF001  a door of it
                    await news.wait()
                    news.clear()
                return status
    except TimeoutError:
        return None


@overload
def events(of: Job) -> AsyncIterator[JobStatus]: ...
@overload
def events(of: JobExecutor) -> AsyncIterator[tuple[Job, JobStatus]]: ...
def events(of: Job | JobExecutor) -> AsyncIterator[JobStatus] | AsyncIterator[tuple[Job, JobStatus]]:
    """The statuses of a job, or of all jobs of an executor, in order, as they come.

    Of a job: every status since its submission, those that came before this call too; the last is the
    final one. A status comes once the callbacks of the job for it have returned.

    Of an executor: each job with its status, for everything from this call on, which is made in the event
    loop. It goes on until you leave the loop over it.
    """
    return _OfExecutor(of) if isinstance(of, JobExecutor) else _of_job(of)


async def _of_job(job: Job) -> AsyncIterator[JobStatus]:
    seen = 1  # that it is NEW is no news
    with _news(job) as news:
        while True:
            news.clear()
            told = job._told()  # noqa: SLF001  a door of it
            for status in told[seen:]:
                yield status
                if status.final:
                    return
            seen = len(told)
            await news.wait()


@contextlib.contextmanager
def _news(job: Job) -> Iterator[asyncio.Event]:
    """An event of this loop that is set whenever there may be more to say about a job."""
    loop, news = asyncio.get_running_loop(), asyncio.Event()

    def watcher() -> None:
        with contextlib.suppress(RuntimeError):  # the loop was closed, so that nobody waits
            loop.call_soon_threadsafe(news.set)

    job._watch(watcher)  # noqa: SLF001  a door of it
    try:
        yield news
    finally:
        job._unwatch(watcher)  # noqa: SLF001


class _OfExecutor:
    """What happens on an executor, for as long as somebody holds this."""

    def __init__(self, executor: JobExecutor) -> None:
        self._queue: asyncio.Queue[tuple[Job, JobStatus]] = asyncio.Queue()
        loop, queue = asyncio.get_running_loop(), weakref.ref(self._queue)

        def watcher(job: Job, status: JobStatus) -> bool:
            found = queue()
            if found is None or loop.is_closed():
                return False
            with contextlib.suppress(RuntimeError):  # closed meanwhile
                loop.call_soon_threadsafe(found.put_nowait, (job, status))
            return True

        executor._watch(watcher)  # noqa: SLF001  a door of it

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> tuple[Job, JobStatus]:
        return await self._queue.get()
