"""The executor of concurrent.futures whose calls are jobs."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from datetime import timedelta
from pathlib import Path
from typing import Any, ParamSpec, TypeVar
from urllib.parse import quote

import platformdirs

from jpsi import (
    ExecutorConfig,
    Job,
    JobAttributes,
    JobExecutor,
    JobSpec,
    JobState,
    ResourceSpec,
    configuration,
)
from jpsi.futures import progress_bar
from jpsi_engine import job_store

from .call_specs import CallSpec, template
from .calls import Call
from .errors import CallError
from .futures import CallFuture
from .payload import Arguments, describe_client, name_of, pickle_arguments, pickle_function
from .records import Outcome, Records
from .sessions import Session, StoredCall, remove_old
from .submit_queue import SubmitQueue, has_started

T = TypeVar("T")
P = ParamSpec("P")

_CHECKPOINT_TIME = timedelta(seconds=30)
# The number of jobs that `map` makes at most, if nothing says how many run at a time.
_MAP_JOBS = 64
# The jobs for each one that runs at a time, as some take longer than others.
_JOBS_PER_WORKER = 4
# How long a submit command may outlive its process.
_POLL_SECONDS = 0.5
_SUBMIT_POLLS = 120


class FunctionExecutor(Executor):
    """An executor of `concurrent.futures` whose calls are jobs of any batch system.

    Args:
        name: the executor or the configured target that runs the jobs; None is the configured default.
        url: the host of the batch system; None is the configured one, or this machine.
        config: the configuration of the executor; None is the configured one.
        cores: cores for each job.
        memory: memory for each job: bytes, or text such as "8GiB".
        gpus: GPUs for each job.
        walltime: the walltime of each job: a timedelta, or text such as "1h".
        attributes: the attributes of each job, such as queue and account; None is those of `spec`.
        resources: the resources of each job; None is those of `spec`.
        spec: what else the jobs have, such as environment and container.
        python: the interpreter that makes the calls, of the same minor version as this one. None is this one,
            or `python3` behind a URL and in a container.
        checkpoint_time: the time before the end of the walltime at which a callable that has a method
            `checkpoint` is asked what to call in the next job; shorter than the walltime. None is 30 seconds,
            or half of the walltime if that is less.
        directory: the working directory of the calls. None is that of `spec`, or else that of this process,
            or the home directory behind a URL.
        max_workers: the largest number of jobs in the batch system at a time. None is no limit; on `local` it
            is the number of cores.
        folder: the directory for the files of calls, which the nodes must see; None is `functions` in the
            executor's work directory.
        with_progress: True to show a bar while `map` and `shutdown` wait, on a terminal or in a notebook.

    Any thread may call its methods.
    """

    def __init__(  # noqa: PLR0913  each by its name
        self,
        name: str | None = None,
        *,
        url: str | None = None,
        config: ExecutorConfig | None = None,
        cores: int | None = None,
        memory: int | str | None = None,
        gpus: int | None = None,
        walltime: timedelta | str | None = None,
        attributes: JobAttributes | None = None,
        resources: ResourceSpec | None = None,
        spec: JobSpec | None = None,
        checkpoint_time: timedelta | None = None,
        python: str | None = None,
        directory: str | Path | None = None,
        max_workers: int | None = None,
        folder: str | Path | None = None,
        with_progress: bool = False,
    ) -> None:
        if max_workers is not None and max_workers <= 0:
            raise ValueError("max_workers must be greater than 0")
        #: The executor of the jobs.
        self.jobs = JobExecutor(name, url=url, config=config)
        is_remote = not self.jobs.files.are_local
        if max_workers is None and self.jobs.name == "local" and not is_remote:
            max_workers = os.cpu_count()
        # dask reads this name
        self._max_workers = max_workers
        self._root = _root(name, self.jobs.name, url, config, folder, is_remote=is_remote)
        work = None if config is None else config.work_directory
        # where the jobs are, besides the places that the configuration names
        self._also = [] if work is None else [Path(work).expanduser()]
        self._keep_time = ExecutorConfig().keep_time if config is None else config.keep_time
        common = template(
            spec,
            attributes=attributes,
            resources=resources,
            cores=cores,
            memory=memory,
            gpus=gpus,
            walltime=walltime,
        )
        where = str(directory or common.directory or ("~" if is_remote else Path.cwd()))
        self._client = describe_client(
            where,
            _checkpoint_after(common.attributes.duration, checkpoint_time),
            shares_files=not is_remote,
            retries=bool(common.attributes.retry),
        )
        self._specs = CallSpec(
            template=common,
            python=python or ("python3" if is_remote or common.container else sys.executable),
            is_remote=is_remote,
            directory=where,
        )
        self._queue = SubmitQueue(self.jobs, max_workers)
        self._with_progress = with_progress
        self._lock = threading.Lock()
        self._is_shut_down = False
        self._session: Session | None = None
        self._recovered: list[Session] = []

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> CallFuture[T]:
        """Have a job call a function; return the future of its result.

        The job is submitted a moment later, with others that wait then. If it cannot be submitted, the future
        raises why.

        Raises:
            TypeError: the function or an argument cannot be pickled; the message names it.
            RuntimeError: the executor was shut down.
        """
        self._check_open()
        calls: list[Arguments] = [(args, kwargs)]
        call = self._stored(fn, pickle_function(fn), pickle_arguments(fn, calls), 1)
        future: CallFuture[T] = self._future(call)
        call.settle = lambda outcomes: future.settle(outcomes[0].get)
        self._queue.put([call])
        return future

    def map(
        self,
        fn: Callable[..., T],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int | None = None,
    ) -> Iterator[T]:
        """Call a function with the items of the iterables; return an iterator over the results, in order.

        Each job makes `chunksize` calls, and the jobs become arrays. Without a chunksize there are four jobs
        for each of `max_workers`, or 64 in all; and one for each call of a callable that has a method
        `checkpoint`. The walltime is that of a job, not of a call.

        The iterator yields a result as soon as it and those before it are there. It raises the exception of a
        call in its place, and TimeoutError if the results take longer than `timeout` seconds. Then, and if it
        is closed, it cancels the jobs that are left.

        Raises:
            TypeError: the function or an argument cannot be pickled; the message names it. Nothing was
                submitted.
            RuntimeError: the executor was shut down.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        self._check_open()
        if chunksize is not None and chunksize < 1:
            raise ValueError("chunksize must be at least 1")
        calls: list[Arguments] = [(arguments, {}) for arguments in zip(*iterables, strict=False)]
        if chunksize is None:
            jobs = _MAP_JOBS if self._max_workers is None else _JOBS_PER_WORKER * self._max_workers
            chunksize = 1 if hasattr(fn, "checkpoint") else max(1, -(-len(calls) // jobs))
        chunks = [calls[start : start + chunksize] for start in range(0, len(calls), chunksize)]
        del calls
        function = pickle_function(fn)
        # all of them, before anything is written
        pickled = [(pickle_arguments(fn, chunk), len(chunk)) for chunk in chunks]
        del chunks
        stored = [self._stored(fn, function, arguments, items) for arguments, items in pickled]
        futures = [self._chunk_future(call) for call in stored]
        self._queue.put(stored)
        return self._results(stored, futures, deadline)

    def recover(self) -> Sequence[CallFuture[Any]]:
        """Return the futures of calls whose process has ended without a `shutdown`, in their order.

        There is one for each call, those of `map` included, of all processes of the user on this executor.
        Calls that were never submitted are submitted now; none runs a second time. `shutdown` removes the
        files of these calls.

        Raises:
            SubmitException: the jobs cannot be read.
            ConfigError: other users could have written the files.
        """
        self._check_open()
        sessions: list[Session] = []
        recovered: list[tuple[Call, Callable[[], None]]] = []
        # nothing is submitted before all futures exist, so that an exception loses no call
        with contextlib.ExitStack() as taken:
            for session in Session.abandoned(self._root):
                taken.callback(session.close)
                sessions.append(session)
                calls = session.calls()
                jobs = self._recall([it.job_id for it in calls])
                recovered += [self._recover(stored, jobs) for stored in calls]
            taken.pop_all()
        with self._lock:
            self._recovered += sessions
        for _, start in recovered:
            start()
        return [future for call, _ in recovered for future in call.futures]

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002  the base's
        """Accept no more calls; wait until all jobs have ended, and remove the files of their calls.

        With `cancel_futures`, the calls whose jobs have not started are cancelled. With `wait` false this
        returns at once: the jobs go on, and `recover` of a later process finds them.
        """
        with self._lock:
            self._is_shut_down = True
        if cancel_futures:
            for call in self._queue.live():
                if not has_started(call):
                    call.cancel()
        if not wait:
            return
        with self._progress(self._queue.live()):
            self._queue.wait()
        with self._lock:
            sessions = [*self._recovered, *([] if self._session is None else [self._session])]
            self._recovered, self._session = [], None
        for session in sessions:
            session.remove()

    def _check_open(self) -> None:
        if self._is_shut_down:
            raise RuntimeError("cannot schedule new futures after shutdown")

    def _stored(self, fn: Callable[..., Any], function: bytes, arguments: bytes, items: int) -> Call:
        """Write the files of a call."""
        with self._lock:
            self._check_open()
            if self._session is None:
                remove_old(self._root, self._keep_time)
                self._session = Session.create(self._root, self._client)
            session = self._session
        job = Job()
        stored = session.add_call(job.id, items, function, arguments)
        job.spec = self._specs.make(stored, name_of(fn))
        return Call(stored, job, name_of(fn), resume=self._resume)

    def _resume(self, call: Call, function: bytes, arguments: bytes) -> None:
        """Give a call another job, which continues it after its checkpoint."""
        with self._lock:
            known = [*self._recovered, *([] if self._session is None else [self._session])]
        session = next(it for it in known if it.folder == call.stored.folder.parents[1])
        job = Job()
        stored = session.continue_call(call.stored, job.id, function, arguments)
        job.spec = self._specs.make(stored, call.function)
        call.stored, call.job = stored, job
        for future in call.futures:
            future.job = job

    def _future(self, call: Call) -> CallFuture[Any]:
        """Add a future to a call, whose job is cancelled with the last of its futures."""

        def on_cancel() -> None:
            if call.is_cancelled:
                self._queue.cancel(call)

        future: CallFuture[Any] = CallFuture(call.job, on_cancel)
        call.futures = [*call.futures, future]
        return future

    def _chunk_future(self, call: Call) -> CallFuture[list[Outcome]]:
        """Return a future of the outcomes of all calls of a job."""
        future: CallFuture[list[Outcome]] = self._future(call)
        call.settle = lambda outcomes: future.settle(lambda: list(outcomes))
        return future

    def _results(
        self, calls: Sequence[Call], futures: list[CallFuture[list[Outcome]]], deadline: float | None
    ) -> Iterator[Any]:
        futures.reverse()
        try:
            with self._progress(calls):
                while futures:
                    left = None if deadline is None else max(0.0, deadline - time.monotonic())
                    outcomes = futures[-1].result(left)
                    futures.pop()
                    outcomes.reverse()
                    while outcomes:
                        # without a name, as the caller alone keeps the result
                        yield outcomes.pop().get()
        finally:
            for future in futures:
                future.cancel()

    def _recall(self, job_ids: Sequence[str]) -> Mapping[str, Job | None]:
        """Return the jobs by their ids: None for one that may run, although it cannot be followed.

        A job that was never handed to the batch system, and so has no files of its own, is left out.
        """
        jobs: dict[str, Job | None] = {job.id: job for job in self.jobs.recall(job_ids)}
        if not self._specs.is_remote or len(jobs) == len(job_ids):
            return jobs
        on_disk = {job.id for job in job_store.jobs(also=self._also)}
        for _ in range(_SUBMIT_POLLS):
            left = [it for it in job_ids if it not in jobs and it in on_disk]
            jobs |= {job.id: job for job in self.jobs.recall(left)}
            if all(it in jobs for it in left):
                break
            # their submit command outlives the process that was killed
            time.sleep(_POLL_SECONDS)
        return {it: jobs.get(it) for it in job_ids if it in jobs or it in on_disk}

    def _recover(self, stored: StoredCall, jobs: Mapping[str, Job | None]) -> tuple[Call, Callable[[], None]]:
        """Return a call that is on disk, and the function with which it goes on."""
        job = jobs.get(stored.job_id)
        is_new = job is None or job.status.state is JobState.NEW
        call = Call(stored, job or Job(), "the function", resume=self._resume)
        futures = [self._future(call) for _ in range(stored.items)]
        call.settle = functools.partial(_settle_each, futures)
        if stored.marked("cancelled") is not None:
            call.cancel()
        if not is_new:
            return call, functools.partial(self._queue.follow, call)
        if call.is_cancelled:
            return call, call.cancel
        failure = stored.marked("failed")
        if failure is not None:
            return call, functools.partial(call.fail, CallError(failure))
        if job is None and stored.job_id not in jobs:
            # a worker that was submitted all the same finds its folder no more, and makes no call
            call.stored = stored.moved_to(call.job.id)
            call.job.spec = self._specs.make(call.stored, "function")
        records = Records.read(call.stored.folder)
        has_begun = any((call.stored.folder / name).exists() for name in ("result", "result.part"))
        if has_begun or (job is None and stored.job_id in jobs):
            why = CallError(
                f"job {stored.job_id} has left no result, and may have run; jpsi cannot follow it"
            )
            outcomes = [records.outcome(it, lambda: why) for it in range(stored.items)]
            return call, functools.partial(call.settle, outcomes)
        return call, functools.partial(self._queue.put, [call])

    @contextlib.contextmanager
    def _progress(self, calls: Sequence[Call]) -> Iterator[None]:
        """Show a bar of the calls within the block, if the executor shows one."""
        if not (self._with_progress and calls):
            yield
            return
        with progress_bar(sum(call.stored.items for call in calls)) as bar:

            def show(call: Call) -> None:
                for item in range(call.stored.items):
                    bar.show(f"{call.job.id}.{item}", call.job.status.state)

            for call in calls:
                call.job.set_job_status_callback(functools.partial(_show, show, call))
                show(call)
            yield


def _checkpoint_after(walltime: timedelta | None, checkpoint_time: timedelta | None) -> float | None:
    """Return the seconds after which a callable is asked what to call in the next job; None is never."""
    # zero is no limit
    if not walltime:
        return None
    before_end = min(_CHECKPOINT_TIME, walltime / 2) if checkpoint_time is None else checkpoint_time
    if walltime <= before_end:
        msg = f"walltime {walltime} must be longer than checkpoint_time {before_end}"
        raise ValueError(f"{msg}, or else each job would end at once and have another one continue it")
    return (walltime - before_end).total_seconds()


def _show(show: Callable[[Call], None], call: Call, *_: object) -> None:
    show(call)


def _settle_each(futures: Sequence[CallFuture[Any]], outcomes: Sequence[Outcome]) -> None:
    for future, outcome in zip(futures, outcomes, strict=True):
        future.settle(outcome.get)


def _root(  # noqa: PLR0913  what decides about it
    name: str | None,
    executor: str,
    url: str | None,
    config: ExecutorConfig | None,
    folder: str | Path | None,
    *,
    is_remote: bool,
) -> Path:
    """Return the directory for calls on an executor."""
    target = "" if name is None or name.lower() == executor else f"@{name}"
    own = quote(f"{executor}{target}{'' if url is None else f'@{url}'}", safe="@")
    if folder is not None:
        return Path(folder).expanduser().absolute() / own
    work = None if config is None else config.work_directory
    if config is None:
        known = configuration()
        sections = [known.targets.get((name or "").lower()), known.executors.get(executor)]
        work = next(
            (it.config["work_directory"] for it in sections if it and it.config.get("work_directory")), None
        )
    if work is None or is_remote:
        work = platformdirs.user_state_path("jpsi") / "work"
    return Path(work).expanduser().absolute() / "functions" / own
