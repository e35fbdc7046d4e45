"""Functions that wait for many jobs, and jobs as the futures of `concurrent.futures`."""

from __future__ import annotations

import contextlib
import functools
import queue
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from datetime import timedelta
from typing import Any

from jpsi import notifier
from jpsi.api import check_job
from jpsi.job import FINAL, Job, seconds
from jpsi.model import JobStatus
from jpsi.registry import BARS

#: The progress bar of jpsi-cli, a distribution in a higher layer.
Bar = Any


def as_future(job: Job) -> Future[JobStatus]:
    """Return a future whose result is the final status of a job, set once the callbacks for it have returned.

    In a callback it does not wait for them, since that would be a deadlock.

    Like `Job.wait` it does not raise for a failed job: `result()` returns the status, which shows the
    failure. To end the job, cancel the job: the future itself cannot be cancelled. Functions that are added
    with `add_done_callback` are called on a thread of jpsi.
    """
    future: Future[JobStatus] = Future()
    future.set_running_or_notify_cancel()
    once, is_in_callback = threading.Lock(), notifier.is_delivering()

    def watcher() -> None:
        # posted, since a watcher must not use the job, and since setting a result calls the users' functions
        notifier.shared().post(notifier.Lane(), look)

    def look() -> None:
        settle(job.status if is_in_callback else job._delivered_statuses()[-1])  # noqa: SLF001

    def settle(status: JobStatus | None) -> None:
        if status is not None and status.final and once.acquire(blocking=False):
            job._unwatch(watcher)  # noqa: SLF001
            future.set_result(status)

    job._watch(watcher)  # noqa: SLF001
    settle(job._peek(FINAL))  # noqa: SLF001
    return future


def as_completed(jobs: Iterable[Job], timeout: float | timedelta | None = None) -> Iterator[Job]:
    """Yield each job once it is final, in the order in which they end; jobs that have ended come first.

    The jobs may be of any executors; one that is given twice is yielded once. The timeout, in seconds or as a
    timedelta, is for all jobs together; None waits for ever.

    Raises:
        TimeoutError: the timeout expired before all jobs were final; the message says how many are left.
    """
    left = _each_once(jobs)
    yield from _completed(left, timeout)
    if left:
        raise TimeoutError(f"{len(left)} jobs are not final yet")


def wait_all(
    jobs: Iterable[Job], timeout: float | timedelta | None = None, *, progress: bool = False
) -> Sequence[JobStatus | None]:
    """Wait until all jobs, of any executors, are final.

    The timeout, in seconds or as a timedelta, is for all jobs together; None waits for ever. With `progress`,
    a bar of jpsi-cli shows on standard error how many jobs are in which state, if it is a terminal or a
    notebook. The results are the final statuses in the order of `jobs`; None for a job that is not final.

    Raises:
        PluginError: `progress` is true, and jpsi-cli, which provides the bar, is not installed.
    """
    jobs = list(jobs)
    left = _each_once(jobs)
    with progress_bar(len(left)) if progress else contextlib.nullcontext() as bar:
        for _ in _completed(left, timeout, bar):
            pass
    return [job._peek(FINAL) for job in jobs]  # noqa: SLF001


def _each_once(jobs: Iterable[Job]) -> dict[Job, None]:
    jobs = list(jobs)
    for job in jobs:
        check_job(job)
    return dict.fromkeys(jobs)


def _completed(
    left: dict[Job, None], timeout: float | timedelta | None, bar: Bar | None = None
) -> Iterator[Job]:
    """Remove each job from `left` once it is final, and yield it, until the timeout expires."""
    limit = seconds(timeout)
    deadline = None if limit is None else time.monotonic() + limit
    # the jobs whose status may have changed: all of them at first
    changes: queue.SimpleQueue[Job] = queue.SimpleQueue()
    watchers = {job: functools.partial(changes.put, job) for job in left}
    try:
        for job, watcher in watchers.items():
            job._watch(watcher)  # noqa: SLF001
            changes.put(job)
            job._note_deadline(limit)  # noqa: SLF001
        while left:
            wait = None if deadline is None else max(deadline - time.monotonic(), 0)
            try:
                job = changes.get(timeout=None if wait is None else min(wait, threading.TIMEOUT_MAX))
            except queue.Empty:
                return
            if bar is not None:
                bar.show(job.id, job.status.state)
            if job in left and job._peek(FINAL) is not None:  # noqa: SLF001
                del left[job]
                yield job
    finally:
        for job, watcher in watchers.items():
            job._unwatch(watcher)  # noqa: SLF001


def progress_bar(jobs: int) -> contextlib.AbstractContextManager[Bar]:
    """Return the progress bar of the plugin that is installed for it."""
    from jpsi.registry import installed, load_plugin  # noqa: PLC0415  few programs show a bar

    bar: contextlib.AbstractContextManager[Bar] = load_plugin(installed().find(BARS, "progress"))(jobs)
    return bar
