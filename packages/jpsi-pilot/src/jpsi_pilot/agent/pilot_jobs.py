"""Submits, finds and cancels pilots, each of which is a job of another executor, such as `slurm`.

The fleet decides when; it calls these functions in threads, since a batch system may answer late.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import jpsi
from jpsi import Job, JobAttributes, JobExecutor, JobSpec, ResourceSpecV1

from ..config import HERE
from ..node import python_command
from ..protocol import Equipment, Settings

_STARTUP_FILE = "startup.sh"
# The custom attribute with the id of the job in whose allocation a job runs, by which `jpsi ls` knows it.
_ALLOCATION = "jpsi.allocation"
#: The file in a pilot's directory that receives its output.
OUTPUT = "output"


def pilot_spec(name: str, settings: Settings, folder: Path, equipment: Equipment) -> JobSpec:
    """Return the job spec of a pilot.

    Args:
        name: the name of the pilot.
        settings: the settings of the pilot.
        folder: its private directory.
        equipment: the module and environment that the engine runs on each node.
    """
    engine, *arguments = equipment.module
    command = python_command(
        "jpsi_pilot.node.node_supervisor", str(folder), str(settings.cores), engine, *arguments
    )
    executable, *command_arguments = command
    return JobSpec(
        executable,
        [jpsi.escape(word) for word in command_arguments],
        name=f"pilot-{name}",
        directory=folder,
        environment=dict(equipment.environment) or None,
        pre_launch=folder / _STARTUP_FILE if settings.startup else None,
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
        # `local` knows one machine; the launcher knows the nodes of the allocation, and starts one process on
        # each
        return ResourceSpecV1(process_count=settings.nodes, cpu_cores_per_process=settings.cores)
    return ResourceSpecV1(
        node_count=settings.nodes,
        processes_per_node=1,
        cpu_cores_per_process=settings.cores,
        gpu_cores_per_process=settings.gpus,
        memory=None if settings.memory is None else settings.memory * settings.nodes,
    )


def create_pilot_directory(folder: Path, settings: Settings) -> None:
    """Create a pilot's private directory, with its startup script."""
    folder.mkdir(mode=0o700, parents=True)
    if settings.startup:
        (folder / _STARTUP_FILE).write_text("\n".join([*settings.startup, ""]), encoding="utf-8")


class PilotJobs:
    """The executors that run pilots as jobs; methods may block for a while, and any thread may call them."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._executors: dict[str, JobExecutor] = {}

    def submit(self, job: Job, target: str) -> None:
        """Submit a pilot to its target.

        Raises:
            JpsiError: the pilot was not started, and nothing is left of it.
        """
        if target == HERE and job.spec is not None and (job_id := os.environ.get("JPSI_JOB_ID")):
            job.spec.attributes.set_custom_attribute(_ALLOCATION, job_id)
        self._executor(target).submit(job)

    def recall(self, job_id: str, target: str) -> Job | None:
        """Return the job of a pilot that an earlier agent submitted; None if the target has no such job.

        Raises:
            JpsiError: the target did not answer.
        """
        found = list(self._executor(target).recall([job_id]))
        job = found[0] if found else None
        return None if job is None or job.native_id is None else job

    def cancel(self, job: Job) -> None:
        """Cancel a pilot's job.

        Raises:
            JpsiError: the target did not accept the request.
        """
        job.cancel()

    def close(self) -> None:
        """Close all executors."""
        for executor in self._executors.values():
            executor.close()

    def _executor(self, target: str) -> JobExecutor:
        if target not in self._executors:
            executor = JobExecutor.get_instance("local" if target == HERE else target)
            executor.set_job_status_callback(lambda *_: self._changed())
            self._executors[target] = executor
        return self._executors[target]
