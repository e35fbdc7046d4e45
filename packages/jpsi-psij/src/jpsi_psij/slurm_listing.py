"""Lists the jobs of all users in the queue of Slurm."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

from jpsi.plugin import Command, CommandResult
from jpsi.plugin.kit import expand_hostlist, parse_limit, parse_time

from .job_attributes import JobAttributes
from .job_info import JobInfo
from .job_spec import JobSpec
from .job_state import JobState
from .job_status import JobStatus
from .listed_job import ListedJob
from .resource_spec import ResourceSpecV1

log = logging.getLogger(__name__)

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
    "REQUEUE_FED": JobState.QUEUED,
    "REQUEUE_HOLD": JobState.QUEUED,
    "RESV_DEL_HOLD": JobState.QUEUED,
    "SPECIAL_EXIT": JobState.QUEUED,
    "RUNNING": JobState.ACTIVE,
    "SUSPENDED": JobState.ACTIVE,
    "STOPPED": JobState.ACTIVE,
    "SIGNALING": JobState.ACTIVE,
    "STAGE_OUT": JobState.ACTIVE,
    "COMPLETING": JobState.ACTIVE,
}
#: The command that prints the queue.
SQUEUE = Command(
    [
        "squeue",
        "--noheader",
        "--all",
        "--array",
        f"--Format={','.join(f'{it}:{_SEPARATOR}' for it in _COLUMNS)}",
    ],
    environment={"TZ": "UTC0"},
    unset=("SQUEUE_*", "SLURM_TIME_FORMAT"),
)


def parse_squeue(result: CommandResult) -> Iterator[ListedJob]:
    """Yield the jobs in squeue's output."""
    unreadable = []
    for line in result.stdout.split("\n"):
        fields = line.split(_SEPARATOR, len(_COLUMNS) - 1)
        if len(fields) == len(_COLUMNS):
            try:
                yield _listed_job(dict(zip(_COLUMNS, fields, strict=True)))
            except ValueError:
                unreadable.append(line)
    if unreadable:
        log.warning(
            "squeue: %d jobs cannot be read and are left out, such as %r", len(unreadable), unreadable[0]
        )


def _listed_job(row: Mapping[str, str]) -> ListedJob:
    # a held job has this reason, whether its user or an administrator holds it
    is_held = row["Reason"].startswith("JobHeld")
    state = JobState.HELD if is_held else _SLURM_STATES.get(row["State"], JobState.ACTIVE)
    count, cores = int(row["NumTasks"]), int(row["NumCPUs"])
    submitted, started = (_local(parse_time(row[it])) for it in ("SubmitTime", "StartTime"))
    # the start time of a waiting job is an estimate
    started = started if state is JobState.ACTIVE else None
    nodes = expand_hostlist(row["NodeList"])
    return ListedJob(
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
                parse_limit(row["TimeLimit"]) or timedelta(0),
                row["Partition"],
                None if row["Account"] == "(null)" else row["Account"],
            ),
        ),
        JobInfo(
            owner=row["UserName"],
            wall_time=int((parse_limit(row["TimeUsed"]) or timedelta(0)).total_seconds()),
            submission_time=submitted,
            dispatch_time=started,
            resourcelist=[{"name": node, "procs": cores // len(nodes)} for node in nodes],
            submit_host=row["AllocNodes"] or None,
        ),
        array_id=row["JobArrayID"].partition("_")[0],
    )


def _local(time: datetime | None) -> datetime | None:
    return time and time.astimezone()
