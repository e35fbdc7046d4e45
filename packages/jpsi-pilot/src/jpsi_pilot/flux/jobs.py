"""Tasks as jobs of the Flux instance of a pilot, which the executor `flux` submits and follows."""

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
# The instance has nobody else to serve.
_SHORTEST, _LONGEST = timedelta(seconds=0.5), timedelta(seconds=5)
_PATH = b"PATH"
# How often it is looked for what the next agent asks.
_LOOKING = 0.5
# How many seconds after Flux did not cancel what it was told to it is told again.
_AGAIN = 5.0


@attrs.define(slots=True, eq=False)
class _Run:
    """A task whose end was not told."""

    task: Task
    job: Job
    is_submitted: bool = False
    is_stopped: bool = False


class FluxJobs:
    """Submits tasks, many with one request where many have come, and tells how they end.

    All methods are called in one event loop. The environment of this process says where the instance is.
    """

    def __init__(self, folder: Path, place: str, tell: Callable[[Task, End | None], None]) -> None:
        """Begin with nothing.

        Args:
            folder: that of the pilot.
            place: the name of a place of it.
            tell: called with each task and its end, or None if Flux has lost a node of it.
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
            task: what is to be run.
            place: the first of its places, whose log is told when it begins.
            ranks: the numbers of their brokers.
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
        """Have a task end, also one that has not begun."""
        run = self._runs.get(native_id)
        if run is not None and not run.is_stopped:
            run.is_stopped = True
            self._leave([run])

    async def drained(self) -> None:
        """Wait until no task is left, and have those end that the next agent asks to be ended."""
        while not self._empty.is_set():
            for native_id in requested_stops(self._folder):
                self.stop(native_id)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._empty.wait(), _LOOKING)

    def close(self) -> None:
        """Tell nothing any more: what ends from now on ends with the pilot."""
        self._is_closed = True

    def _request(self) -> None:
        if self._requests is None or self._requests.done():
            self._requests = self._loop.create_task(self._make_requests())

    async def _make_requests(self) -> None:
        """Submit and cancel what there is; what comes meanwhile is for the next request."""
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
        """In any thread."""
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
            # the agent is told all the same; only one that comes later would have read it
            log.warning("the end of %s could not be written down: %s", task.native_id, e)

    def _environment(self, task: Task, *, several: bool) -> Path:
        """A file with what runs a task in its environment; written once for all that have the same."""
        name = f"{Path(task.environment).name}{'.several' if several else ''}"
        path = self._folder / _FOLDER / name
        if not path.exists():
            variables = dict(environment_of(self._folder.parent.parent / task.environment))
            if several:
                # its launcher is found where the pilot has found Flux, unless the job knows another
                own = os.fsencode(os.path.dirname(shutil.which("flux") or ""))  # noqa: PTH120  text
                variables[_PATH] = b":".join(filter(None, [variables.get(_PATH, b""), own]))
            write_private(path, environment_script(variables))
        return path
