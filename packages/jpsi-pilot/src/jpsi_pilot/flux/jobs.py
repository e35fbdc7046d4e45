"""Runs tasks as jobs of a pilot's Flux instance, through the executor `flux`.

The node of the first broker uses it; that process takes the tasks of all nodes of the pilot.
"""

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

from ..node import NodeLog, engine_log_node, log_path, read_environment, requested_stops
from ..protocol import End, Task, write_private
from .task import end_from_status, environment_script, task_spec

log = logging.getLogger(__name__)

_FOLDER = "flux"
# Short polls are fine, as the instance has no other users.
_SHORTEST_POLL, _LONGEST_POLL = timedelta(seconds=0.5), timedelta(seconds=5)
_PATH = b"PATH"
# The interval, in seconds, at which it checks for stop requests of the next agent.
_STOP_CHECK_INTERVAL = 0.5
# The seconds after which it retries a cancel that Flux did not carry out.
_CANCEL_RETRY_DELAY = 5.0


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

    def __init__(self, folder: Path, node: str, report: Callable[[Task, End | None], None]) -> None:
        """Begin without tasks.

        Args:
            folder: the pilot's directory.
            node: the name of one of its nodes.
            report: called with each task and its end, or None if Flux has lost one of its nodes.
        """
        self._folder = folder
        self._log = NodeLog(log_path(folder, engine_log_node(node)))
        self._report = report
        self._loop = asyncio.get_running_loop()
        self._runs: dict[str, _Run] = {}
        self._to_submit: list[_Run] = []
        self._to_cancel: list[_Run] = []
        self._request_task: asyncio.Task[None] | None = None
        self._empty = asyncio.Event()
        self._empty.set()
        self._is_closed = False
        (folder / _FOLDER).mkdir(mode=0o700, exist_ok=True)
        config = BatchConfig(
            work_directory=folder / _FOLDER, shortest_interval=_SHORTEST_POLL, longest_interval=_LONGEST_POLL
        )
        self._executor = JobExecutor.get_instance("flux", config=config)
        self._executor.set_job_status_callback(self._handle_status)

    def run(self, task: Task, node: str, ranks: Sequence[int]) -> None:
        """Run a task.

        Args:
            task: the task.
            node: the first of its nodes, whose log records the beginning of the run.
            ranks: the ranks of its brokers.
        """
        try:
            environment = self._environment(task, is_multinode=len(ranks) > 1)
        except (OSError, ValueError) as e:
            why = f"the node could not prepare the environment of the job: {e}"
            self._report(task, End(code=None, why="unable", message=why))
            return
        job = Job(task_spec(task, ranks, log_path(self._folder, node), environment))
        run = self._runs[task.native_id] = _Run(task, job)
        self._empty.clear()
        self._to_submit.append(run)
        self._start_requests()

    def stop(self, native_id: str) -> None:
        """End a task, also one that has not begun."""
        run = self._runs.get(native_id)
        if run is not None and not run.is_stopped:
            run.is_stopped = True
            self._queue_cancel([run])

    async def drain(self) -> None:
        """Wait until no task is left; meanwhile end the tasks that the next agent requests to stop."""
        while not self._empty.is_set():
            for native_id in requested_stops(self._folder):
                self.stop(native_id)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._empty.wait(), _STOP_CHECK_INTERVAL)

    def close(self) -> None:
        """Report nothing any more: tasks that end from now on end with the pilot."""
        self._is_closed = True

    def _start_requests(self) -> None:
        if self._request_task is None or self._request_task.done():
            self._request_task = self._loop.create_task(self._make_requests())

    async def _make_requests(self) -> None:
        """Submit and cancel all that is queued; what is queued meanwhile goes into the next request."""
        while self._to_submit or self._to_cancel:
            to_submit, self._to_submit = self._to_submit, []
            for run in [it for it in to_submit if it.is_stopped]:
                self._finish(run, End(code=None, why="cancel"))
            if wanted := [it for it in to_submit if not it.is_stopped]:
                await self._submit(wanted)
            to_cancel, self._to_cancel = self._to_cancel, []
            if submitted := [it for it in to_cancel if it.is_submitted]:
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
                self._finish(run, End(code=None, why="unable", message=why))

    async def _cancel(self, runs: Sequence[_Run]) -> None:
        try:
            await asyncio.to_thread(self._executor.cancel_many, [run.job for run in dict.fromkeys(runs)])
        except JpsiError as e:
            log.warning("not all jobs of Flux could be cancelled: %s", e)
            remaining = [it for it in runs if not isinstance(e, BulkException) or it.job in e.failed]
            self._loop.call_later(_CANCEL_RETRY_DELAY, self._queue_cancel, remaining)

    def _queue_cancel(self, runs: Sequence[_Run]) -> None:
        self._to_cancel += [it for it in runs if self._runs.get(it.task.native_id) is it]
        self._start_requests()

    def _handle_status(self, job: Job, status: JobStatus) -> None:
        """Handle a job's status; jpsi calls it in any thread."""
        if status.final:
            self._loop.call_soon_threadsafe(self._handle_final_status, job, status)

    def _handle_final_status(self, job: Job, status: JobStatus) -> None:
        for run in list(self._runs.values()):
            if run.job is job:
                self._finish(run, end_from_status(status))

    def _finish(self, run: _Run, end: End | None) -> None:
        if self._runs.get(run.task.native_id) is not run:
            return
        del self._runs[run.task.native_id]
        if not self._is_closed:
            if end is not None:
                self._log.record_ended(run.task.native_id, run.task.restarts, end)
            self._report(run.task, end)
        if not self._runs:
            self._empty.set()

    def _environment(self, task: Task, *, is_multinode: bool) -> Path:
        """Return a script that runs a task in its environment; all tasks with the same one share it."""
        name = f"{Path(task.environment).name}{'.is_multinode' if is_multinode else ''}"
        path = self._folder / _FOLDER / name
        if not path.exists():
            variables = dict(read_environment(self._folder.parent.parent / task.environment))
            if is_multinode:
                # its launcher is found where the pilot has found Flux, unless the job's PATH has another
                flux_directory = os.fsencode(os.path.dirname(shutil.which("flux") or ""))  # noqa: PTH120  text
                variables[_PATH] = b":".join(filter(None, [variables.get(_PATH, b""), flux_directory]))
            write_private(path, environment_script(variables))
        return path
