"""Runs tasks as jobs of a pilot's Flux instance, through the executor `flux`."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path

import attrs

from jpsi import BulkException, Job, JobExecutor, JobStatus, JpsiError
from jpsi.plugin import BatchConfig

from ..node import NodeLog, carrier_of, environment_of, log_of, requested_stops
from ..protocol import End, Task, write_private
from .task import end_of, environment_script, task_spec

log = logging.getLogger(__name__)

_FOLDER = "flux"
# Short polls are fine, as the instance has no other users.
_SHORTEST, _LONGEST = timedelta(seconds=0.5), timedelta(seconds=5)
_PATH = b"PATH"
# The interval, in seconds, at which it checks for stop requests of the next agent.
_LOOKING = 0.5
# The seconds after which it retries a cancel that Flux did not carry out.
_AGAIN = 5.0


@attrs.define(slots=True, eq=False)
class _Run:
    """A task whose end has not been reported."""

    task: Task
    job: Job
    is_submitted: bool = False
    is_stopped: bool = False


class FluxJobs:
    """Submits tasks, many in one request where many have come, and reports their ends.

    All methods are called in one event loop. The environment of this process has the instance's address.
    """

    def __init__(self, folder: Path, place: str, tell: Callable[[Task, End | None], None]) -> None:
        """Begin without tasks.

        Args:
            folder: the pilot's directory.
            place: the name of one of its places.
            tell: called with each task and its end, or None if Flux has lost one of its nodes.
        """
        self._folder = folder
        self._log = NodeLog(log_of(folder, carrier_of(place)))
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self._runs: dict[str, _Run] = {}
        self._incoming: list[_Run] = []
        self._leaving: list[_Run] = []
        self._requests: asyncio.Task[None] | None = None
        self._empty = asyncio.Event()
        self._empty.set()
        self._is_closed = False
        (folder / _FOLDER).mkdir(mode=0o700, exist_ok=True)
        config = BatchConfig(
            work_directory=folder / _FOLDER, shortest_interval=_SHORTEST, longest_interval=_LONGEST
        )
        self._executor = JobExecutor.get_instance("flux", config=config)
        self._executor.set_job_status_callback(self._changed)

    def run(self, task: Task, place: str, ranks: Sequence[int]) -> None:
        """Run a task.

        Args:
            task: the task.
            place: the first of its places, whose log records the beginning of the run.
            ranks: the ranks of its brokers.
        """
        try:
            environment = self._environment(task, several=len(ranks) > 1)
        except (OSError, ValueError) as e:
            why = f"the environment of the job cannot be had: {e}"
            self._tell(task, End(code=None, why="unable", message=why))
            return
        job = Job(task_spec(task, ranks, log_of(self._folder, place), environment))
        run = self._runs[task.native_id] = _Run(task, job)
        self._empty.clear()
        self._incoming.append(run)
        self._request()

    def stop(self, native_id: str) -> None:
        """End a task, also one that has not begun."""
        run = self._runs.get(native_id)
        if run is not None and not run.is_stopped:
            run.is_stopped = True
            self._leave([run])

    async def drained(self) -> None:
        """Wait until no task is left; meanwhile end the tasks that the next agent requests to stop."""
        while not self._empty.is_set():
            for native_id in requested_stops(self._folder):
                self.stop(native_id)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._empty.wait(), _LOOKING)

    def close(self) -> None:
        """Report nothing any more: tasks that end from now on end with the pilot."""
        self._is_closed = True

    def _request(self) -> None:
        if self._requests is None or self._requests.done():
            self._requests = self._loop.create_task(self._make_requests())

    async def _make_requests(self) -> None:
        """Submit and cancel all that is queued; what is queued meanwhile goes into the next request."""
        while self._incoming or self._leaving:
            incoming, self._incoming = self._incoming, []
            for run in [it for it in incoming if it.is_stopped]:
                self._ended(run, End(code=None, why="cancel"))
            if wanted := [it for it in incoming if not it.is_stopped]:
                await self._submit(wanted)
            leaving, self._leaving = self._leaving, []
            if submitted := [it for it in leaving if it.is_submitted]:
                await self._cancel(submitted)

    async def _submit(self, runs: Sequence[_Run]) -> None:
        jobs = [run.job for run in runs]
        failed: dict[Job, Exception] = {}
        try:
            await asyncio.to_thread(self._executor.submit_many, jobs)
        except BulkException as e:
            failed = dict(e.failed)
        except (JpsiError, OSError) as e:
            failed = dict.fromkeys(jobs, e)
        for run in runs:
            run.is_submitted = True
            if run.job in failed:
                why = f"the job could not be submitted to Flux: {failed[run.job]}"
                self._ended(run, End(code=None, why="unable", message=why))

    async def _cancel(self, runs: Sequence[_Run]) -> None:
        try:
            await asyncio.to_thread(self._executor.cancel_many, [run.job for run in dict.fromkeys(runs)])
        except JpsiError as e:
            log.warning("not all jobs of Flux could be cancelled: %s", e)
            left = [it for it in runs if not isinstance(e, BulkException) or it.job in e.failed]
            self._loop.call_later(_AGAIN, self._leave, left)

    def _leave(self, runs: Sequence[_Run]) -> None:
        self._leaving += [it for it in runs if self._runs.get(it.task.native_id) is it]
        self._request()

    def _changed(self, job: Job, status: JobStatus) -> None:
        """Handle a job's status; jpsi calls it in any thread."""
        if status.final:
            self._loop.call_soon_threadsafe(self._followed, job, status)

    def _followed(self, job: Job, status: JobStatus) -> None:
        for run in list(self._runs.values()):
            if run.job is job:
                self._ended(run, end_of(status))

    def _ended(self, run: _Run, end: End | None) -> None:
        if self._runs.get(run.task.native_id) is not run:
            return
        del self._runs[run.task.native_id]
        if not self._is_closed:
            self._note(run.task, end)
            self._tell(run.task, end)
        if not self._runs:
            self._empty.set()

    def _note(self, task: Task, end: End | None) -> None:
        try:
            if end is not None:
                self._log.ended(task.native_id, task.restarts, end)
        except OSError as e:
            # the agent gets the end all the same; only a later agent would have read the log
            log.warning("the end of %s could not be written down: %s", task.native_id, e)

    def _environment(self, task: Task, *, several: bool) -> Path:
        """Return a script that runs a task in its environment; all tasks with the same one share it."""
        name = f"{Path(task.environment).name}{'.several' if several else ''}"
        path = self._folder / _FOLDER / name
        if not path.exists():
            variables = dict(environment_of(self._folder.parent.parent / task.environment))
            if several:
                # its launcher is found where the pilot has found Flux, unless the job's PATH has another
                own = os.fsencode(os.path.dirname(shutil.which("flux") or ""))  # noqa: PTH120  text
                variables[_PATH] = b":".join(filter(None, [variables.get(_PATH, b""), own]))
            write_private(path, environment_script(variables))
        return path
