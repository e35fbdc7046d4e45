"""Lists the jobs of all users in the queue of OpenPBS or PBS Professional."""

from __future__ import annotations

import json
import logging
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from jpsi.plugin import Command, CommandResult, SubmitException

from .job_attributes import JobAttributes
from .job_info import JobInfo
from .job_spec import JobSpec
from .job_state import JobState
from .job_status import JobStatus
from .listed_job import ListedJob
from .resource_spec import ResourceSpecV1

log = logging.getLogger(__name__)

#: The command that prints the queue.
QSTAT = Command(["qstat", "-f", "-F", "json"], environment={"LC_ALL": "C", "TZ": "UTC0"})
# qstat(1B), job_state; `F` and `X` are ended
_STATES = {
    **dict.fromkeys("QTWM", JobState.QUEUED),
    "H": JobState.HELD,
    **dict.fromkeys("RESUB", JobState.ACTIVE),
}
_TIME = "%a %b %d %H:%M:%S %Y"
# A part of exec_host: the node, the number of the process on it, and its cores.
_HOST = re.compile(r"([^/+]+)/\d+(?:\*(\d+))?")


def parse_qstat(result: CommandResult) -> Iterator[ListedJob]:
    """Yield the jobs in qstat's output.

    Raises:
        SubmitException: the output is no JSON, as OpenPBS prints for some values of users.
    """
    text = result.stdout[max(result.stdout.find("{"), 0) :]
    try:
        jobs: Mapping[str, Any] = json.loads(text, strict=False).get("Jobs", {})
    except ValueError as e:
        raise SubmitException(f"qstat printed no valid JSON: {e}", e) from e
    unreadable = []
    for native_id, job in jobs.items():
        try:
            if (state := _STATES.get(job["job_state"])) is not None:
                yield _listed_job(native_id, state, job)
        except ValueError:
            unreadable.append(native_id)
    if unreadable:
        log.warning(
            "qstat: %d jobs cannot be read and are left out, such as %s", len(unreadable), unreadable[0]
        )


def _listed_job(native_id: str, state: JobState, job: Mapping[str, Any]) -> ListedJob:
    wanted, used = job.get("Resource_List", {}), job.get("resources_used", {})
    variables = job.get("Variable_List", {})
    cores: Counter[str] = Counter()
    for node, count in _HOST.findall(job.get("exec_host", "")):
        cores[node] += int(count or 1)
    submitted, started = _time(job.get("ctime")), _time(job.get("stime"))
    return ListedJob(
        native_id,
        JobStatus(
            state,
            (started or submitted or datetime.now(UTC)).timestamp(),
            job.get("comment"),
            metadata={"pbs.state": job["job_state"]},
        ),
        JobSpec(
            name=str(job.get("Job_Name")),
            directory=variables.get("PBS_O_WORKDIR"),
            resources=ResourceSpecV1(process_count=int(wanted.get("ncpus", 1))),
            attributes=JobAttributes(
                timedelta(seconds=_seconds(wanted.get("walltime")) or 0),
                job.get("queue"),
                job.get("Account_Name"),
            ),
        ),
        JobInfo(
            owner=str(job.get("Job_Owner", "")).partition("@")[0] or None,
            wall_time=_seconds(used.get("walltime")) or 0,
            submission_time=submitted,
            dispatch_time=started,
            cpu_time=_seconds(used.get("cput")),
            resourcelist=[{"name": node, "procs": count} for node, count in cores.items()],
            submit_host=job.get("Submit_Host") or variables.get("PBS_O_HOST"),
        ),
    )


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.strptime(text, _TIME).replace(tzinfo=UTC).astimezone()


def _seconds(text: str | int | None) -> int | None:
    """Return the seconds in a duration such as `10:00:00`.

    >>> _seconds("01:00:30")
    3630
    """
    if text is None:
        return None
    seconds = 0
    for part in str(text).split(":"):
        seconds = seconds * 60 + int(part)
    return seconds
