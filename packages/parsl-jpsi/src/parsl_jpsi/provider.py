"""Runs the blocks of Parsl as jobs of jpsi."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from parsl.jobs.states import JobState, JobStatus
from parsl.launchers.base import Launcher
from parsl.providers.base import ExecutionProvider
from parsl.providers.errors import SubmitException
from parsl.utils import RepresentationMixin

import jpsi

from .block_status import block_status

log = logging.getLogger(__name__)

# Parsl's memory is in GB, and its own providers request these in powers of 1024.
_GIGABYTE = 2**30


class JpsiProvider(ExecutionProvider, RepresentationMixin):
    """A provider of Parsl whose blocks are jobs of an executor of jpsi.

    Args:
        executor: the executor or the configured target; None is the configured default, else `local`.
        url: the host of the batch system; None is the configured one, or this machine.
        queue_name: the queue or partition.
        project_name: the project or account that is charged.
        reservation_id: the advance reservation to run in.
        duration: the walltime of a block: a timedelta, or text such as "2h". None is the target's default, 10
            minutes on batch systems.
        custom_attributes: options of one batch system, such as `{"slurm.qos": "debug"}`.
        nodes_per_block: the nodes of a block.
        cores_per_node: cores for a block on each of its nodes.
        mem_per_node: memory for a block on each of its nodes, in GB.
        gpus_per_node: GPUs for a block on each of its nodes.
        exclusive: True if blocks share their nodes with no other job.
        init_blocks: the blocks at the start.
        min_blocks: the least blocks at a time.
        max_blocks: the most blocks at a time.
        parallelism: the ratio of slots to tasks.
        worker_init: commands of bash before the workers start, such as `module load python`.
        launcher: the program that starts the workers on each node: the name of a launcher of jpsi, or one of
            Parsl's launchers, which starts on the first node. None leaves the choice to the executor.

    Raises:
        PluginError: no such executor is installed.
        ConfigError: the configuration of jpsi is wrong.
    """

    def __init__(  # noqa: PLR0913  each by its name
        self,
        executor: str | None = None,
        *,
        url: str | None = None,
        queue_name: str | None = None,
        project_name: str | None = None,
        reservation_id: str | None = None,
        duration: timedelta | str | None = None,
        custom_attributes: Mapping[str, Any] | None = None,
        nodes_per_block: int = 1,
        cores_per_node: int | None = None,
        mem_per_node: float | None = None,
        gpus_per_node: int | None = None,
        exclusive: bool = False,
        init_blocks: int = 1,
        min_blocks: int = 0,
        max_blocks: int = 1,
        parallelism: float = 1,
        worker_init: str = "",
        launcher: str | Launcher | None = None,
    ) -> None:
        # Parsl shows all of them in its logs
        self.executor = executor
        self.url = url
        self.queue_name = queue_name
        self.project_name = project_name
        self.reservation_id = reservation_id
        self.duration = jpsi.parse_duration(duration) if isinstance(duration, str) else duration
        self.custom_attributes = custom_attributes
        self.nodes_per_block = nodes_per_block
        self.cores_per_node = cores_per_node
        self.mem_per_node = mem_per_node
        self.gpus_per_node = gpus_per_node
        self.exclusive = exclusive
        self.init_blocks = init_blocks
        self.min_blocks = min_blocks
        self.max_blocks = max_blocks
        self.parallelism = parallelism
        self.worker_init = worker_init
        self.launcher = launcher
        #: The directory for the output of blocks; Parsl sets it.
        self.script_dir: str | None = None
        #: The jobs by their ids.
        self.resources: dict[object, Any] = {}
        self._executor = jpsi.JobExecutor(executor, url=url)

    def submit(self, command: str, tasks_per_node: int, job_name: str = "parsl.jpsi") -> str:
        """Submit a block; return the id of its job, which `jpsi explain` takes.

        Raises:
            SubmitException: jpsi did not submit the job; the message says why.
        """
        job = jpsi.Job(self._make_spec(command, tasks_per_node, job_name))
        try:
            self._executor.submit(job)
        except jpsi.JpsiError as e:
            raise SubmitException(job_name, str(e)) from e  # type: ignore[no-untyped-call]  # Parsl's is not typed
        self.resources[job.id] = job
        return job.id

    def status(self, job_ids: Sequence[object]) -> list[JobStatus]:
        """Return the statuses of blocks, in order; this queries nothing, as jpsi follows its jobs."""
        return [self._status(job_id) for job_id in job_ids]

    def cancel(self, job_ids: Sequence[object]) -> list[bool]:
        """Cancel blocks with few requests; return for each True if the request reached the batch system."""
        jobs = {job_id: self.resources[job_id] for job_id in job_ids if job_id in self.resources}
        try:
            self._executor.cancel_many(jobs.values())
        except jpsi.BulkException as e:
            log.warning("%s", e)
            jobs = {job_id: job for job_id, job in jobs.items() if job not in e.failed}
        return [job_id in jobs for job_id in job_ids]

    @property
    def label(self) -> str:
        """The name of the executor."""
        return self._executor.name

    @property
    def status_polling_interval(self) -> int:
        """The seconds between calls of `status`, which costs nothing."""
        return 1

    def _status(self, job_id: object) -> JobStatus:
        if job_id not in self.resources:
            return JobStatus(JobState.UNKNOWN, f"this provider did not submit {job_id}")
        return block_status(self.resources[job_id])

    def _make_spec(self, command: str, tasks_per_node: int, job_name: str) -> jpsi.JobSpec:
        launcher = self.launcher
        if isinstance(launcher, Launcher):
            command = launcher(command, tasks_per_node, self.nodes_per_block, self.script_dir or "")
            launcher = "single"
        spec = jpsi.JobSpec(
            "/bin/bash",
            ["-c", jpsi.escape(f"{self.worker_init}\n{command}")],
            name=job_name,
            environment=self._environment(tasks_per_node),
            launcher=launcher,
            resources=jpsi.ResourceSpecV1(
                node_count=self.nodes_per_block,
                processes_per_node=tasks_per_node,
                cpu_cores_per_process=_share(self.cores_per_node, tasks_per_node),
                gpu_cores_per_process=_share(self.gpus_per_node, tasks_per_node),
                exclusive_node_use=self.exclusive,
                memory=self._memory(),
            ),
            attributes=jpsi.JobAttributes(
                duration=self.duration,
                queue_name=self.queue_name,
                project_name=self.project_name,
                reservation_id=self.reservation_id,
                custom_attributes=dict(self.custom_attributes or {}),
            ),
        )
        if self._executor.files.are_local:
            spec.directory = Path.cwd()
            if self.script_dir:
                script = Path(self.script_dir).absolute() / f"{job_name}.{time.time()}"
                spec.stdout_path, spec.stderr_path = Path(f"{script}.stdout"), Path(f"{script}.stderr")
        return spec

    def _memory(self) -> int | None:
        """Return the memory of a block in bytes."""
        gigabytes = self.mem_per_node
        return None if gigabytes is None else int(gigabytes * _GIGABYTE) * self.nodes_per_block

    def _environment(self, tasks_per_node: int) -> dict[str, str | None]:
        """Return the variables that Parsl demands of providers which request memory and cores."""
        memory, cores = self.mem_per_node, _share(self.cores_per_node, tasks_per_node)
        facts = {"PARSL_MEMORY_GB": memory, "PARSL_CORES": cores}
        return {name: str(it) for name, it in facts.items() if it is not None}


def _share(count: int | None, tasks: int) -> int | None:
    return None if count is None else count // tasks
