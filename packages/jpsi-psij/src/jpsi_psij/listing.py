"""Lists the jobs of a batch system, those of all users, with the facts that psij programs show.

jpsi itself follows only jobs that it has submitted or attached. For an executor without a listing here, the
jobs are those that jpsi has on disk.
"""

from __future__ import annotations

import getpass
import platform
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import attrs

import jpsi
import jpsi_engine.job_store
from jpsi.plugin import Command, CommandResult

from .job_attributes import JobAttributes
from .job_info import JobInfo
from .job_spec import JobSpec
from .job_state import JobState
from .job_status import JobStatus
from .resource_spec import ResourceSpecV1


@attrs.frozen
class ListedJob:
    """A job of a listing."""

    native_id: str
    status: JobStatus
    spec: JobSpec
    info: JobInfo


def list_jobs(executor: jpsi.JobExecutor, work_directory: Path | None) -> list[ListedJob]:
    """Return the jobs of an executor's batch system that have not ended.

    Raises:
        SubmitException: the batch system does not answer.
    """
    if executor.name not in _LISTINGS:
        return list(_stored_jobs(executor.name, work_directory))
    command, parse = _LISTINGS[executor.name]
    return list(parse(executor.system.query(command).checked()))


_SEPARATOR = "|=|"
# squeue(1), --Format: the text after a colon ends the field
_COLUMNS = (
    *("JobArrayID", "UserName", "State", "Reason", "Account", "NumTasks", "NumCPUs", "TimeLimit", "TimeUsed"),
    *("Partition", "SubmitTime", "StartTime", "WorkDir", "NodeList", "AllocNodes", "Name"),
)
# squeue(1), JOB STATE CODES, of the jobs that it lists if no states are named
_SLURM_STATES = {
    "PENDING": JobState.QUEUED,
    "CONFIGURING": JobState.QUEUED,
    "REQUEUED": JobState.QUEUED,
    "RUNNING": JobState.ACTIVE,
    "SUSPENDED": JobState.ACTIVE,
    "STOPPED": JobState.ACTIVE,
    "SIGNALING": JobState.ACTIVE,
    "STAGE_OUT": JobState.ACTIVE,
    "COMPLETING": JobState.ACTIVE,
}
_SQUEUE = Command(
    ["squeue", "--noheader", "--all", f"--Format={','.join(f'{it}:{_SEPARATOR}' for it in _COLUMNS)}"],
    environment={"TZ": "UTC0"},
    unset=("SQUEUE_*", "SLURM_TIME_FORMAT"),
)


def parse_squeue(result: CommandResult) -> Iterator[ListedJob]:
    """Yield the jobs in squeue's output."""
    for line in result.stdout.splitlines():
        fields = line.split(_SEPARATOR, len(_COLUMNS) - 1)
        if len(fields) != len(_COLUMNS):
            continue
        row = dict(zip(_COLUMNS, fields, strict=True))
        # a held job has this reason, whether its user or an administrator holds it
        is_held = row["State"] == "PENDING" and row["Reason"].startswith("JobHeld")
        state = JobState.HELD if is_held else _SLURM_STATES.get(row["State"], JobState.ACTIVE)
        count, cores = int(row["NumTasks"]), int(row["NumCPUs"])
        submitted, started = _slurm_time(row["SubmitTime"]), _slurm_time(row["StartTime"])
        # the start time of a waiting job is an estimate
        started = started if state is JobState.ACTIVE else None
        nodes = expand_hosts(row["NodeList"])
        yield ListedJob(
            row["JobArrayID"],
            JobStatus(
                state,
                (started or submitted or datetime.now(UTC)).timestamp(),
                metadata={"slurm.state": row["State"], "slurm.reason": row["Reason"]},
            ),
            JobSpec(
                name=row["Name"].removesuffix(_SEPARATOR),
                directory=row["WorkDir"],
                # of a job that names no tasks, Slurm knows the cores alone
                resources=ResourceSpecV1(process_count=min(count, cores)),
                attributes=JobAttributes(
                    _slurm_duration(row["TimeLimit"]) or timedelta(0),
                    row["Partition"],
                    None if row["Account"] == "(null)" else row["Account"],
                ),
            ),
            JobInfo(
                owner=row["UserName"],
                wall_time=int((_slurm_duration(row["TimeUsed"]) or timedelta(0)).total_seconds()),
                submission_time=submitted,
                dispatch_time=started,
                resourcelist=[{"name": node, "procs": cores // len(nodes)} for node in nodes],
                submit_host=row["AllocNodes"] or None,
            ),
        )


def _slurm_time(text: str) -> datetime | None:
    """Return a time of this machine's zone; None if Slurm knows none."""
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC).astimezone()
    except ValueError:
        return None


def _slurm_duration(text: str) -> timedelta | None:
    """Return a duration such as `1-02:03:04` or `10:00`; None for UNLIMITED and the like.

    >>> _slurm_duration("1-02:03:04") == timedelta(days=1, hours=2, minutes=3, seconds=4)
    True
    """
    days, _, rest = text.rpartition("-")
    parts = rest.split(":")
    if not all(it.isdigit() for it in (days or "0", *parts)):
        return None
    seconds = sum(int(it) * 60**power for power, it in enumerate(reversed(parts)))
    return timedelta(days=int(days or 0), seconds=seconds)


def expand_hosts(text: str) -> list[str]:
    """Return the names in a list of hosts.

    >>> expand_hosts("node[08-10,12],login")
    ['node08', 'node09', 'node10', 'node12', 'login']
    """
    names, depth, begin = [], 0, 0
    for index, character in enumerate(f"{text},"):
        depth += (character == "[") - (character == "]")
        if character == "," and depth == 0:
            names += _expand_ranges(text[begin:index])
            begin = index + 1
    return names


def _expand_ranges(text: str) -> list[str]:
    prefix, bracket, rest = text.partition("[")
    if not bracket:
        return [text] if text else []
    ranges, _, suffix = rest.partition("]")
    names = []
    for part in ranges.split(","):
        first, _, last = part.partition("-")
        numbers = range(int(first), int(last or first) + 1)
        names += [
            f"{prefix}{it:0{len(first)}}{more}" for it in numbers for more in _expand_ranges(suffix) or [""]
        ]
    return names


_LISTINGS: dict[str, tuple[Command, Callable[[CommandResult], Iterator[ListedJob]]]] = {
    "slurm": (_SQUEUE, parse_squeue)
}


def _stored_jobs(executor: str, work_directory: Path | None) -> Iterator[ListedJob]:
    """Yield the jobs on disk of an executor that have not ended."""
    also = [] if work_directory is None else [work_directory]
    now, owner = datetime.now(UTC), getpass.getuser()
    for job in jpsi_engine.job_store.jobs(also=also):
        is_gone = job.status.final or job.status.state is jpsi.JobState.NEW or job.origin.is_remote
        if job.origin.executor != executor or job.native_id is None or is_gone:
            continue
        resources = job.spec.resources
        count = resources.computed_process_count if isinstance(resources, jpsi.ResourceSpecV1) else 1
        host = job.origin.machine
        yield ListedJob(
            job.native_id,
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
    custom: dict[str, Any] | None = attributes.custom_attributes
    return JobSpec(
        spec.executable,
        spec.arguments,
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
            custom,
        ),
        launcher=spec.launcher,
    )
