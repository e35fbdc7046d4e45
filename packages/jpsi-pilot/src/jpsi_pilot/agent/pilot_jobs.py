"""Pilots as jobs of another executor."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import jpsi
from jpsi import Job, JobAttributes, JobExecutor, JobSpec, ResourceSpecV1

from ..config import HERE
from ..node import python_command
from ..protocol import Equipment, Settings

_STARTUP = "startup.sh"
#: The file in a pilot's folder that has what it prints.
OUTPUT = "output"


def pilot_spec(name: str, settings: Settings, folder: Path, equipment: Equipment) -> JobSpec:
    """What a pilot is as a job.

    Args:
        name: the name of the pilot.
        settings: what kind of pilot it is.
        folder: its private folder.
        equipment: what the engine has its nodes run.
    """
    engine, *arguments = equipment.module
    words = python_command(
        "jpsi_pilot.node.node_supervisor", str(folder), str(settings.cores), engine, *arguments
    )
    executable, *rest = words
    return JobSpec(
        executable,
        [jpsi.escape(word) for word in rest],
        name=f"pilot-{name}",
        directory=folder,
        environment=dict(equipment.environment) or None,
        pre_launch=folder / _STARTUP if settings.startup else None,
        stdout_path=folder / OUTPUT,
        stderr_path=folder / OUTPUT,
        launcher=settings.launcher,
        resources=_resources(settings),
        attributes=JobAttributes(
            duration=timedelta(seconds=settings.walltime + settings.margin),
            queue_name=settings.queue_name,
            project_name=settings.project_name,
        ),
    )


def _resources(settings: Settings) -> ResourceSpecV1:
    if settings.target == HERE:
        # `local` knows one machine; the launcher knows the nodes of the allocation, and takes one for each
        return ResourceSpecV1(process_count=settings.nodes, cpu_cores_per_process=settings.cores)
    return ResourceSpecV1(
        node_count=settings.nodes,
        processes_per_node=1,
        cpu_cores_per_process=settings.cores,
        gpu_cores_per_process=settings.gpus,
        memory=None if settings.memory is None else settings.memory * settings.nodes,
    )


def prepare(folder: Path, settings: Settings) -> None:
    """Make a pilot's private folder."""
    folder.mkdir(mode=0o700, parents=True)
    if settings.startup:
        (folder / _STARTUP).write_text("\n".join([*settings.startup, ""]), encoding="utf-8")


class PilotJobs:
    """The executors that pilots are jobs of; methods may take a while, and are called in any thread."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._executors: dict[str, JobExecutor] = {}

    def submit(self, job: Job, target: str) -> None:
        """Start a pilot.

        Raises:
            JpsiError: it was not started, and nothing is left of it.
        """
        self._executor(target).submit(job)

    def recall(self, job_id: str, target: str) -> Job | None:
        """The job of a pilot that an earlier agent has started; None if there is none any more, or never was.

        Raises:
            JpsiError: nobody knows.
        """
        found = list(self._executor(target).recall([job_id]))
        job = found[0] if found else None
        return None if job is None or job.native_id is None else job

    def cancel(self, job: Job) -> None:
        """Have a pilot end.

        Raises:
            JpsiError: it could not be told.
        """
        job.cancel()

    def close(self) -> None:
        """Take no more."""
        for executor in self._executors.values():
            executor.close()

    def _executor(self, target: str) -> JobExecutor:
        if target not in self._executors:
            executor = JobExecutor.get_instance("local" if target == HERE else target)
            executor.set_job_status_callback(lambda *_: self._changed())
            self._executors[target] = executor
        return self._executors[target]
