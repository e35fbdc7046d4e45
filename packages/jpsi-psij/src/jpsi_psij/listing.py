"""Lists the jobs of a batch system, those of all users, with the facts that psij programs show.

jpsi itself follows only jobs that it has submitted or attached. For an executor without a listing here, the
jobs are those that jpsi has on disk.
"""

from __future__ import annotations

import getpass
import platform
from collections.abc import Callable, Collection, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import jpsi
import jpsi_engine.job_store
from jpsi.plugin import Command, CommandResult
from jpsi.plugin.engine import expand

from .job_attributes import JobAttributes
from .job_info import JobInfo
from .job_spec import JobSpec
from .job_status import JobStatus
from .listed_job import ListedJob
from .pbs_listing import QSTAT, parse_qstat
from .resource_spec import ResourceSpecV1
from .slurm_listing import SQUEUE, parse_squeue

_PBS = (QSTAT, parse_qstat)
_LISTINGS: dict[str, tuple[Command, Callable[[CommandResult], Iterator[ListedJob]]]] = {
    "slurm": (SQUEUE, parse_squeue),
    "pbs": _PBS,
    "pbspro": _PBS,
    "openpbs": _PBS,
}


def list_jobs(executor: jpsi.JobExecutor, work_directory: Path | None) -> list[ListedJob]:
    """Return the jobs of an executor's batch system that have not ended.

    Raises:
        SubmitException: the batch system does not answer.
    """
    if executor.name not in _LISTINGS:
        names = {executor.name}
        for plugin in jpsi.plugins():
            if plugin.kind == "executor" and executor.name in {plugin.name, *plugin.aliases}:
                names |= {plugin.name, *plugin.aliases}
        return list(stored_jobs(names, work_directory))
    command, parse = _LISTINGS[executor.name]
    return list(parse(executor.system.query(command).checked()))


def stored_jobs(names: Collection[str], work_directory: Path | None) -> Iterator[ListedJob]:
    """Yield the jobs on disk that their batch system, or this machine, still shows.

    Args:
        names: the names of the executor.
        work_directory: a further directory with records of jobs.

    Raises:
        SubmitException: the batch system does not answer.
    """
    also = [] if work_directory is None else [work_directory]
    now, owner = datetime.now(UTC), getpass.getuser()
    stored = [
        job
        for job in jpsi_engine.job_store.jobs(also=also)
        if job.origin.executor in names and not job.origin.target and not job.status.final
    ]
    shown = jpsi_engine.job_store.shown(stored)
    for job in stored:
        found = shown[job.id]
        if isinstance(found, jpsi.JpsiError):
            raise found
        if found is not None:
            yield _listed_job(job, found.native_id, now, owner)


def _listed_job(job: jpsi_engine.job_store.StoredJob, native_id: str, now: datetime, owner: str) -> ListedJob:
    resources = job.spec.resources
    count = resources.computed_process_count if isinstance(resources, jpsi.ResourceSpecV1) else 1
    host = job.origin.machine
    return ListedJob(
        native_id,
        JobStatus.of(job.status),
        _spec_of(job.spec, job.directory, count),
        JobInfo(
            owner=owner,
            wall_time=0 if job.started is None else int((now - job.started).total_seconds()),
            submission_time=job.submitted.astimezone(),
            dispatch_time=None if job.started is None else job.started.astimezone(),
            resourcelist=[] if host is None else [{"name": host, "procs": count}],
            submit_host=platform.node(),
        ),
    )


def _spec_of(spec: jpsi.JobSpec, directory: Path, count: int) -> JobSpec:
    attributes = spec.attributes
    return JobSpec(
        spec.executable,
        # psij has no references to variables: this is the text that was escaped for jpsi
        None if spec.arguments is None else [expand(it, {}, keep_unset=True) for it in spec.arguments],
        directory,
        spec.name,
        stdin_path=spec.stdin_path,
        stdout_path=spec.stdout_path,
        stderr_path=spec.stderr_path,
        resources=ResourceSpecV1(process_count=count),
        attributes=JobAttributes(
            attributes.duration or timedelta(0),
            attributes.queue_name,
            attributes.account,
            attributes.reservation_id,
            attributes.custom_attributes,
        ),
        launcher=spec.launcher,
    )
