"""The agent's poll loop: records ended runs, places waiting jobs, and starts and ends pilots.

The server calls it in intervals, and at once when something has happened.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from ..node import request_stop
from ..protocol import JOB_VARIABLE, EngineMaker, NodeLost, PilotEngine, PilotNode, Settings, Task
from .background_tasks import BackgroundTasks
from .engine_pool import EnginePool
from .fleet import Fleet
from .journal import Journal
from .pilot_jobs import PilotJobs
from .placement import NodeCapacity, place_jobs
from .request_handler import is_client_running
from .state import Job
from .verdict import Verdicts

PILOTS = "pilots"
# The interval, in seconds, at which the agent checks which clients still run.
_CLIENT_CHECK_INTERVAL = 1.0


class Scheduling:
    """Decides which job runs on which node, and starts it there; all methods run in one event loop."""

    def __init__(  # noqa: PLR0913  the parts that it connects
        self,
        journal: Journal,
        folder: Path,
        now: Callable[[], float],
        *,
        wake: Callable[[], None],
        jobs: PilotJobs,
        new_engine: EngineMaker,
    ) -> None:
        """Begin with the state in the journal.

        Args:
            journal: records every change.
            folder: the agent's directory.
            now: returns the time.
            wake: called, in any thread, when the poll loop should look at everything again.
            jobs: submits pilots as jobs.
            new_engine: makes engines; it may take a while.
        """
        self._journal = journal
        self._state = journal.state
        self._folder = folder / PILOTS
        self._now = now
        self._jobs = jobs
        self._background_tasks = BackgroundTasks(wake)
        self._engines = EnginePool(new_engine, wake)
        self._fleet = Fleet(journal, self._folder, now, self._engines, jobs, self._background_tasks)
        self._clients_checked_at = float("-inf")
        #: The runs whose end an engine has still to report, by native id and number of restarts.
        self._tracked_runs: set[tuple[str, int]] = set()
        self._verdicts = Verdicts(journal, self._folder, now, self._background_tasks)

    @property
    def problems(self) -> Mapping[str, str]:
        """The reasons why pilots do not start, by the key of their settings."""
        return self._fleet.problems

    @property
    def is_idle(self) -> bool:
        """True if no job waits or runs, no pilot exists and no background task runs."""
        return not self._state.unfinished and not self._fleet.pilots and not self._background_tasks

    def run_round(self) -> None:
        """Run the poll loop once."""
        now = self._now()
        nodes = self._engines.nodes()
        self._check_clients(now)
        self._fleet.update_states(nodes, now)
        self._verdicts.judge(nodes, self._fleet.pilots, self._tracked_runs)
        self._fleet.remove_ended(nodes)
        self._verdicts.forget_others(self._fleet.pilots)
        capacities = self._start_waiting_jobs(nodes, now)
        self._fleet.adjust_count(nodes, capacities, now)

    def request_client_check(self) -> None:
        """Have the next round check at once which clients still run, as their pilots may be taken over."""
        self._clients_checked_at = float("-inf")

    def resume(self, key: str) -> None:
        """Have the next round start pilots again, as a job for these settings was submitted."""
        self._fleet.resume(key)

    async def get_engine(self, settings: Settings) -> PilotEngine:
        """Return the engine for pilots with these settings; see `EnginePool.get_or_start`."""
        return await self._engines.get_or_start(settings)

    def stop(self, jobs: Iterable[Job]) -> None:
        """End running jobs; return before they have ended."""
        for job in jobs:
            self._background_tasks.start(self._stop(job))

    async def close(self) -> None:
        """Close engines and executors; pilots and jobs run on."""
        await self._engines.close()
        self._jobs.close()

    def _check_clients(self, now: float) -> None:
        if now - self._clients_checked_at > _CLIENT_CHECK_INTERVAL:
            self._clients_checked_at = now
            for client in self._state.clients:
                if not is_client_running(client):
                    self._state.release_client(client)

    def _start_waiting_jobs(self, nodes: Mapping[str, PilotNode], now: float) -> list[NodeCapacity]:
        """Start the jobs that fit, and return the capacity that is left."""
        capacities = self._fleet.capacities(nodes, now)
        for job in self._state.running:
            for it in capacities.keys() & job.nodes:
                capacities[it] = capacities[it].without(job.submission.need)
        for kind, names, times in place_jobs(self._state.waiting(), list(capacities.values())):
            jobs = self._state.next_jobs(kind, times)
            ids = [job.native_id for job in jobs]
            self._journal.write({"what": "started", "ids": ids, "places": names, "time": now})
            for name in names:
                capacities[name] = capacities[name].without(kind.need, times)
            for job in jobs:
                self._background_tasks.start(self._run_job(job, names))
        return list(capacities.values())

    async def _run_job(self, job: Job, nodes: tuple[str, ...]) -> None:
        run, pilot, submission = job.run_key, job.pilot, job.submission
        settings = self._state.settings[submission.settings]
        variables = {JOB_VARIABLE: job.native_id}
        if job.index is not None:
            variables["JPSI_PILOT_ARRAY"] = self._state.native_id(submission.number, None)
            variables["JPSI_PILOT_INDEX"] = str(job.index)
        task = Task(
            native_id=job.native_id,
            restarts=job.restarts,
            script=submission.script,
            environment=submission.environment,
            umask=submission.umask,
            variables=variables,
            seconds=submission.need.seconds,
            kill_delay=settings.kill_delay,
            cores=submission.need.cores,
            gpus=submission.need.gpus if settings.gpus else None,
        )
        self._tracked_runs.add(run)
        try:
            end = await self._engines.get(settings).run(nodes, task)
        except NodeLost:
            if job.stopped:
                # the engine may not have passed on the request to stop
                await self._stop(job)
            return
        finally:
            self._tracked_runs.discard(run)
        if pilot is not None and end.why != "lost":
            self._fleet.record_success(pilot)
        if (job.state, job.nodes, job.run_key) == ("running", nodes, run):
            self._verdicts.record_end(job, end)

    async def _stop(self, job: Job) -> None:
        if not job.nodes:
            # the job was requeued meanwhile, and is not started again
            return
        try:
            engine = self._engines.get(self._state.settings[job.submission.settings])
            await engine.stop(job.nodes[0], job.native_id)
        except NodeLost:
            # it may still run on a node that reports to an earlier agent; else the verdict counts it as
            # cancelled
            with contextlib.suppress(OSError):
                request_stop(self._folder / (job.pilot or ""), job.native_id)
