"""Queries oarstat for the states of jobs and for jobs by tag, and parses its output.

If its database does not answer, oarstat may print nothing and succeed. Therefore each query selects the
newest job, too: an answer has at least one. OAR keeps ended jobs; one that no answer has does not exist.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from jpsi.plugin import Command, CommandResult, JobState, Observation, Reason, SubmitException, hookimpl
from jpsi.plugin.kit import extract_intact_tag, ids_by_tag, parse_time

from .native_ids import NEWEST, UNFINISHED, with_arrays
from .states import ENDED, explain_error, explain_state

_Job: TypeAlias = Mapping[str, Any]
_LIST = ("oarstat", "-f", "-J", "--sql")
# all jobs of the user
_OWN_JOBS = f"""exec oarstat -f -J --sql "job_user = '$(id -un)' AND {UNFINISHED} OR {NEWEST}\""""

_KINDS: Mapping[type, Sequence[str]] = {
    int: ("Job_Id", "array_id", "array_index", "submissionTime", "startTime", "stopTime"),
    str: ("state", "owner", "message", "queue"),
    list: ("events", "types", "assigned_network_address"),
}
_REQUIRED = {"name", "initial_request", "exit_code", "scheduledStart"}.union(*_KINDS.values())
_EVENT = frozenset({"type", "description", "date", "job_id", "event_id", "to_check"})


@hookimpl
def query(native_ids: Sequence[str] | None) -> Command:
    """Return the command that lists these jobs and arrays with their events, or all jobs of the user."""
    if native_ids is None:
        return Command(["/bin/sh", "-c", _OWN_JOBS])
    return Command([*_LIST, f"{with_arrays(native_ids)} OR {NEWEST}"])


@hookimpl
def find(tags: Sequence[str]) -> Command:
    """Return the command that lists the jobs whose names end with the tags."""
    return Command([*_LIST, " OR ".join([*(f"job_name LIKE '%{tag}'" for tag in tags), NEWEST])])


@hookimpl
def parse_find(result: CommandResult, tags: Sequence[str]) -> Mapping[str, str]:
    """Return the native ids of the jobs that carry the tags."""
    return ids_by_tag(((job["name"] or "", str(job["array_id"])) for job in _parse_jobs(result)), tags)


@hookimpl
def parse_status(result: CommandResult, native_ids: Sequence[str] | None) -> Mapping[str, Observation]:
    """Return an Observation of each job and element in oarstat's output, and a denial of each unknown one."""
    runs: dict[tuple[int, int], list[_Job]] = {}
    for job in sorted(_parse_jobs(result), key=lambda it: int(it["Job_Id"])):
        runs.setdefault((job["array_id"], job["array_index"]), []).append(job)
    arrays = {array for array, index in runs if index > 1}
    found, names = {}, {}
    for (array, index), of_job in runs.items():
        name = f"{array}.{index}" if array in arrays else str(array)
        # root sees the requests of all users
        if native_ids is not None or (of_job[-1]["initial_request"] and of_job[-1]["state"] not in ENDED):
            found[name] = _observe(of_job)
        names.update({str(job["Job_Id"]): name for job in of_job})
    # no element speaks for its array
    for native_id in {*(native_ids or ())} - {*found, *map(str, arrays)}:
        name = names.get(native_id, native_id.removesuffix(".1"))
        found[native_id] = found.get(name, Observation.denied("oarstat lists no such job"))
    return found


def _parse_jobs(result: CommandResult) -> Iterator[_Job]:
    """Yield the jobs in the output; raise SubmitException if it is incomplete."""
    _, brace, text = f"\n{result.checked().stdout}".partition("\n{\n")
    try:
        document = json.loads(brace + text)
    except ValueError as e:
        raise result.no_answer from e
    for native_id, job in document.items():
        if not _is_complete(native_id, job):
            raise SubmitException(f"oarstat printed a malformed job: {job!r}", transient=True)
        yield job


def _is_complete(native_id: str, job: _Job) -> bool:
    """Return True if a job has all required fields, and those agree that are printed twice."""
    return (
        isinstance(job, dict)
        and job.keys() >= _REQUIRED
        and all(type(job[name]) is kind for kind, names in _KINDS.items() for name in names)
        and _is_wait_status(job["exit_code"] or 0)
        and all(event.keys() >= _EVENT for event in job["events"])
        and str(job["Job_Id"]) == native_id
        # the request is empty for jobs of other users, and an admission rule may change a name
        and (extract_intact_tag(job["name"] or "") or "") in str(job["initial_request"] or job["name"] or "")
    )


def _is_wait_status(status: object) -> bool:
    return isinstance(status, int) and (os.WIFEXITED(status) or os.WIFSIGNALED(status))


def _observe(runs: Sequence[_Job]) -> Observation:
    """Return the Observation of a job, which OAR may have resubmitted: the last of its runs counts."""
    job, earlier = runs[-1], runs[:-1]
    word, events = job["state"], job["events"]
    state, reason, message = explain_state(word, job["exit_code"], events, job["owner"])
    if earlier and state is JobState.QUEUED:
        reason, message = (
            Reason.REQUEUED,
            explain_error(earlier[-1]["events"], job["owner"]).message or message,
        )
    is_final = state is not None and state.final
    entered = "submissionTime" if state is JobState.QUEUED else "stopTime" if is_final else "startTime"
    details = {
        "oar.state": word,
        "oar.job": str(job["Job_Id"]),
        "oar.message": job["message"],
        "oar.types": " ".join(map(str, job["types"])),
        "oar.events": " ".join(str(event["type"]) for event in events),
    }
    return Observation(
        state=state,
        native_state=word,
        tag=extract_intact_tag(job["name"] or ""),
        submitted=parse_time(str(runs[0]["submissionTime"])),
        reason=reason,
        message=message,
        exit_code=_exit_code(job) if is_final else None,
        ran=job["startTime"] > 0 if is_final else None,
        time=parse_time(str(job[entered])) if job[entered] else None,
        restarts=len(earlier),
        nodes=tuple(map(str, job["assigned_network_address"])),
        start_estimate=parse_time(str(job["scheduledStart"])) if state is JobState.QUEUED else None,
        details={name: value for name, value in details.items() if value},
    )


def _exit_code(job: _Job) -> int | None:
    """Return the exit code in the wait status of a job's script, 128 + n after signal n."""
    status = job["exit_code"]
    code = 0 if status is None else os.waitstatus_to_exitcode(status)
    return None if status is None else 128 - code if code < 0 else code
