"""Executors of the inside of a group: this machine alone, or pilots on all nodes of the allocation."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import attrs

from jpsi import (
    BulkException,
    Job,
    JobExecutor,
    JobFiles,
    JobSpec,
    JobStatus,
    JpsiError,
    ResourceSpecV1,
    System,
)

from ..document import ONE_SLOT
from ..planning import DASK, Entry, engine_for, usable_engines
from ..running import Executor, JobDetails
from . import stalls
from .multinode import launch_on_nodes, node_count, set_node_count

# A pilot starts a job only if the job's walltime ends before its own. The allocation ends both.
_NO_LIMIT = timedelta(days=365)
_WALLTIME = 2 * _NO_LIMIT
# How long a pilot stays idle, for example while a local task runs.
_IDLE = timedelta(minutes=2)
_SUBMITTED = "submitted"


@attrs.define
class SplitExecutor:
    """Two executors as one: local jobs run on the first node of an allocation, the others on any node."""

    _first: JobExecutor
    _nodes: JobExecutor
    _is_local: Callable[[Job], bool]
    #: The cores of a slot of the allocation; 0 if the group counts slots, not cores.
    _cores: int
    _cores_per_node: int
    _gpus_per_node: int
    #: The launcher for jobs on several nodes; empty leaves the choice to the pilot.
    _launcher: str
    #: The last job that was submitted to run on any node.
    latest: Job | None = attrs.field(default=None, init=False)

    @property
    def system(self) -> System:
        """The system of the first node: both have in common that they do not wait for dependencies."""
        return self._first.system

    @property
    def files(self) -> JobFiles:
        """The files of the first node."""
        return self._first.files

    def set_job_status_callback(self, callback: Callable[[Job, JobStatus], None]) -> None:
        """Have a callback called with every job status, from both executors."""
        self._first.set_job_status_callback(callback)
        self._nodes.set_job_status_callback(callback)

    def recall(self, job_ids: Iterable[str]) -> Sequence[Job]:
        """Return the jobs with these ids that either executor knows."""
        ids = list(job_ids)
        return [*self._first.recall(ids), *self._nodes.recall(ids)]

    def submit_many(self, jobs: Sequence[Job]) -> None:
        """Submit each job by the executor that it belongs to.

        Raises:
            BulkException: some jobs were not submitted.
        """
        local_jobs = [it for it in jobs if self._is_local(it)]
        node_jobs = [it for it in jobs if not self._is_local(it)]
        for job in node_jobs:
            self.latest = job
            if job.spec is not None:
                _adapt_to_pilot(job.spec, self._cores)
                set_node_count(job.spec, self._cores_per_node, self._gpus_per_node)
                if self._launcher and node_count(job.spec) > 1:
                    launch_on_nodes(job.spec, self._launcher)
        submitted: list[Job] = []
        failed: dict[Job, JpsiError] = {}
        for executor, batch in ((self._first, local_jobs), (self._nodes, node_jobs)):
            try:
                executor.submit_many(batch)
            except BulkException as e:
                submitted += e.done
                failed.update(e.failed)
            else:
                submitted += batch
        if failed:
            raise BulkException.of(_SUBMITTED, submitted, failed)

    def cancel_many(self, jobs: Iterable[Job]) -> None:
        """Cancel jobs."""
        to_cancel = list(jobs)
        self._first.cancel_many([it for it in to_cancel if it.executor is self._first])
        self._nodes.cancel_many([it for it in to_cancel if it.executor is self._nodes])

    def info(self, job: Job) -> JobDetails | None:
        """Return what the executor of a job knows of it."""
        return (self._first if job.executor is self._first else self._nodes).info(job)


@contextlib.contextmanager
def open_executor(allocation: Entry, nodes: Sequence[int], launcher: str, folder: Path) -> Iterator[Executor]:
    """Yield the executor of the inside of an allocation.

    On one node, jobs are processes of this machine. On several, all but local tasks run in one pilot, which
    takes the whole allocation; it ends with the block.

    Args:
        allocation: the group.
        nodes: the number of slots on each node.
        launcher: starts a process on each node.
        folder: for the files of the pilot; it may have those of an earlier process of this allocation.
    """
    if len(nodes) == 1:
        with JobExecutor("local") as executor:
            yield executor
        return
    from jpsi_pilot.config import PilotConfig  # noqa: PLC0415  an optional package
    from jpsi_pilot.shutdown import leave  # noqa: PLC0415  as above

    shape = allocation.shape or ONE_SLOT
    engine = engine_for(allocation, usable_engines())
    config = PilotConfig(
        work_directory=folder,
        target="here",
        engine=engine,
        nodes_per_pilot=len(nodes),
        cores_per_node=nodes[0] * (shape.cores or 1),
        gpus_per_node=nodes[0] * shape.gpus,
        launcher=launcher,
        walltime=_WALLTIME,
        idle_time=_IDLE,
        shared=True,
    )
    local = {it.id for it in allocation.walk() if it.is_local}

    def is_local(job: Job) -> bool:
        environment = (None if job.spec is None else job.spec.environment) or {}
        return environment.get("JPSI_TASK") in local

    try:
        with JobExecutor("local") as first, JobExecutor.get_instance("pilot", config=config) as pilots:
            split = SplitExecutor(
                first,
                pilots,
                is_local,
                cores=shape.cores,
                cores_per_node=config.cores_per_node,
                gpus_per_node=config.gpus_per_node,
                launcher=launcher if engine == DASK else "",
            )
            with stalls.warn_of_stalls(pilots, lambda: split.latest):
                yield split
    finally:
        leave(folder)


def _adapt_to_pilot(spec: JobSpec, cores: int) -> None:
    """Adapt a job to a pilot: set its walltime and the cores of its slots.

    Without a walltime of its own, the job may run until the allocation ends. Without cores of its own, it has
    those of a slot of the group; where the group counts no cores, each slot is one for the pilot.
    """
    if not spec.attributes.duration:
        spec.attributes.duration = _NO_LIMIT
    if isinstance(spec.resources, ResourceSpecV1):
        own_cores = spec.resources.cpu_cores_per_process
        spec.resources.cpu_cores_per_process = (own_cores or cores) if cores else None
