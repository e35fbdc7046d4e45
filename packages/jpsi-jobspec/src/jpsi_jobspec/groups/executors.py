"""Opens the executor that runs a group's tasks in its allocation: this machine alone, or pilots on all nodes.

`group_run` uses it, in the job of the group.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from jpsi import (
    BulkException,
    Job,
    JobExecutor,
    JobFiles,
    JobSpec,
    JobState,
    JobStatus,
    JpsiError,
    ResourceSpecV1,
    System,
    escape,
)

from ..document import ONE_SLOT
from ..planning import DASK, Entry, engine_for, usable_engines
from ..running import Executor, JobDetails

if TYPE_CHECKING:
    from jpsi_pilot.config import PilotConfig

log = logging.getLogger(__name__)

# A pilot starts a job only if the job's duration ends before its own. The allocation ends both.
_NO_LIMIT = timedelta(days=365)
_PILOT_DURATION = 2 * _NO_LIMIT
# How long a pilot stays idle, for example while a local task runs.
_IDLE = timedelta(minutes=2)
# The interval of checks for jobs that wait although there is room.
_STALL_SECONDS = 10.0
_SUBMITTED = "submitted"

# The pilot has chosen the nodes, and names them in a file for srun. It has chosen the GPUs as well, while a
# step would get the first ones of each node, even if another task has them. Without memory of its own a step
# shares that of the group: srun(1), --mem.
_OPTIONS = {"srun.distribution": "arbitrary", "srun.gpus-per-task": False, "srun.mem": "0"}
# srun(1), INPUT ENVIRONMENT VARIABLES: the step would request what the group has requested as well.
_UNSET_GROUP_VARIABLES: Mapping[str, str | None] = {"SLURM_GPUS_PER_TASK": None}
# A step sees all GPUs that the allocation has on a node.
_SELECT_DEVICES = """\
while read -r node variable; do
  [ "$node" != "$SLURMD_NODENAME" ] || export "$variable"
done <<END
$JPSI_PILOT_DEVICES
END
exec "$@"
"""


@attrs.define
class SplitExecutor:
    """Two executors as one: local jobs run on the first node of an allocation, the others on any node."""

    _first: JobExecutor
    _nodes: JobExecutor
    #: The ids of the entries whose jobs are local.
    _local: Collection[str]
    _config: PilotConfig
    #: The cores of a slot of the allocation; 0 if the group counts slots, not cores.
    _cores: int
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
                self._adapt_to_pilot(job.spec)
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

    def _is_local(self, job: Job) -> bool:
        environment = (None if job.spec is None else job.spec.environment) or {}
        return environment.get("JPSI_TASK") in self._local

    def _adapt_to_pilot(self, spec: JobSpec) -> None:
        """Set the duration of a job, its nodes, and the cores of its slots.

        Without a duration of its own, the job may run until the allocation ends. Without cores of its own, it
        has those of a slot of the group; where the group counts no cores, each slot is one for the pilot.
        """
        if not spec.attributes.duration:
            spec.attributes.duration = _NO_LIMIT
        resources = spec.resources
        if not isinstance(resources, ResourceSpecV1):
            return
        own_cores = resources.cpu_cores_per_process
        resources.cpu_cores_per_process = (own_cores or self._cores) if self._cores else None
        each = self._config.cores_per_node // (resources.cpu_cores_per_process or 1)
        if resources.gpu_cores_per_process:
            each = min(each, self._config.gpus_per_node // resources.gpu_cores_per_process)
        # processes that may be on any nodes
        if resources.node_count is None and 0 < each < resources.computed_process_count:
            resources.node_count = -(-resources.computed_process_count // each)
        if self._launcher and (resources.node_count or 1) > 1:
            launch_on_nodes(spec, self._launcher)

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
    """Yield the executor of a group run.

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
        walltime=_PILOT_DURATION,
        idle_time=_IDLE,
        shared=True,
    )
    local = {it.id for it in allocation.walk() if it.is_local}
    own_launcher = launcher if engine == DASK else ""
    try:
        with JobExecutor("local") as first, JobExecutor.get_instance("pilot", config=config) as pilots:
            split = SplitExecutor(first, pilots, local, config, shape.cores, own_launcher)
            with _warn_of_stalls(pilots, split):
                yield split
    finally:
        leave(folder)


def launch_on_nodes(spec: JobSpec, launcher: str) -> None:
    """Have a launcher start the processes of a spec on the nodes and GPUs that the pilot chooses."""
    spec.launcher = launcher
    spec.environment = {**_UNSET_GROUP_VARIABLES, **(spec.environment or {})}
    spec.attributes.custom_attributes = {**(spec.attributes.custom_attributes or {}), **_OPTIONS}
    if isinstance(spec.resources, ResourceSpecV1) and spec.resources.gpu_cores_per_process:
        wrapped = [escape(_SELECT_DEVICES), "task", spec.executable or "", *(spec.arguments or ())]
        spec.executable, spec.arguments = "/bin/sh", ["-c", *wrapped]


@contextlib.contextmanager
def _warn_of_stalls(pilots: JobExecutor, split: SplitExecutor) -> Iterator[None]:
    """Within the block, warn of each reason why the job that was submitted last waits."""
    is_over = threading.Event()

    def watch() -> None:
        last: str | None = None
        while not is_over.wait(_STALL_SECONDS):
            why = why_waiting(pilots, split.latest)
            if why is not None and why != last:
                log.warning("tasks wait: %s", why)
                last = why

    threading.Thread(target=watch, name="jpsi-stalls", daemon=True).start()
    try:
        yield
    finally:
        is_over.set()


def why_waiting(executor: JobExecutor, job: Job | None) -> str | None:
    """Return what the executor says of a job that has not begun; None if it says nothing."""
    if job is None or job.status.state is not JobState.QUEUED:
        return None
    try:
        found = executor.info(job)
    except JpsiError:
        # the job has ended meanwhile, or the executor does not answer now
        return None
    return None if found is None else found.message
