"""`bjobs` of the fakes of LSF.

Tests and `jpsi fake` run jobs on the fake, without a real LSF.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping

from jpsi.plugin import CommandResult
from jpsi_testing.fake import CommandError, FakeJob, FakeScheduler, Invocation, join_lines, refuse_if

from .arrays import find_jobs
from .control import check_ids
from .flavour import Flavour
from .states import code, format_time, has_run, is_done, lead, native_state, nodes, pending, termination

_NO_JOBS, _BAD_FIELD, _UNKNOWN = 254, 99, 255
_USAGE = "Usage: bjobs [-h] [-V] [-w |-l |-UF] [-a] [-d] [-p] [-s] [-r] [-o] [-json] [-A]\n"

_FIELD_VALUES: Mapping[str, Callable[[FakeJob], str]] = {
    "command": lambda job: _command(job),  # noqa: PLW0108  it stands below
    "exec_host": lambda job: ":".join(nodes(job)) if has_run(job) else "",
    "exit_code": lambda job: "" if native_state(job) != "EXIT" or code(job) is None else str(code(job)),
    "exit_reason": termination,
    "job_description": lambda job: job.tag,
    "job_name": lambda job: job.name,
    "jobid": lambda job: job.number,
    "jobindex": lambda job: str(job.index),
    "pend_reason": lambda job: f"{pending(job)};" if pending(job) else "",
    "proj_name": lambda job: job.project,
    "queue": lambda job: job.queue,
    "stat": native_state,
    "user": lambda job: job.owner,
}


def bjobs(flavour: Flavour, scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    """List jobs: as JSON with `-o … -json`, in paragraphs with `-l`, else in a table."""
    words = list(invocation.arguments)
    if words == ["-V"]:
        return CommandResult(returncode=0, stderr=f"{flavour.version}\n")
    fields = words.pop(words.index("-o") + 1).split() if "-o" in words else []
    ids = [word for word in words if not word.startswith("-")]
    if ("-json" in words) != bool(fields):
        raise CommandError(_UNKNOWN, _USAGE)
    check_ids(ids)
    jobs = _select_jobs(scheduler, ids, includes_finished="-a" in words)
    unknown = [] if "0" in ids else [name for name, records in find_jobs(ids, jobs) if not records]
    if fields:
        wrong = [it.upper() for it in fields if it.lower() not in flavour.fields] if jobs else []
        refusals = {f"<{it}> in the format string is not a valid field name.": True for it in wrong}
        refuse_if(refusals, _BAD_FIELD)
        return _format_json(jobs, unknown, fields)
    stderr = "".join(f"Job <{number}> is not found\n" for number in unknown)
    if not jobs and not unknown:
        kind = "job" if "-a" in words else "unfinished job"
        raise CommandError(_NO_JOBS, f"No {kind} found\n")
    stdout = _format_paragraphs(jobs, unknown) if "-l" in words else _format_table(jobs)
    return CommandResult(returncode=_UNKNOWN if unknown else 0, stdout=stdout, stderr=stderr)


def _format_paragraphs(jobs: list[FakeJob], unknown: list[str]) -> str:
    stdout = join_paragraphs(map(_paragraph, jobs))
    return SEPARATOR + stdout if stdout and unknown and "[" not in unknown[0] else stdout


_SECTIONS = """
 SCHEDULING PARAMETERS:
           r15s   r1m  r15m
 loadSched   -     -     -
 loadStop    -     -     -

 RESOURCE REQUIREMENT DETAILS:
 Combined: select[type == local] order[r15s:pg]
 Effective: select[type == local] order[r15s:pg]
"""
_HEADING = "JOBID   USER    STAT  QUEUE      FROM_HOST   EXEC_HOST   JOB_NAME   SUBMIT_TIME"


def _format_table(jobs: list[FakeJob]) -> str:
    lines = [
        f"{job.number:7} {job.owner[:7]:7} {native_state(job):5} {job.queue[:10]:10} {lead(job)[:11]:11} "
        f"{lead(job)[:11] if has_run(job) else '':11} {job.name[-10:]:10} {format_time(job.submitted)[4:16]}"
        for job in jobs
    ]
    return join_lines([_HEADING, *lines]) if lines else ""


def _select_jobs(scheduler: FakeScheduler, ids: list[str], *, includes_finished: bool) -> list[FakeJob]:
    jobs = scheduler.listed()
    if ids and "0" not in ids:
        # bjobs prints unfinished jobs first, whatever the order of the ids
        selected = {id(job) for _, records in find_jobs(ids, jobs) for job in records}
        return sorted((job for job in jobs if id(job) in selected), key=lambda job: job.state.final)
    own = [job for job in jobs if job.is_own]
    return own if includes_finished else [job for job in own if not job.state.final]


def _format_json(jobs: list[FakeJob], unknown: list[str], fields: list[str]) -> CommandResult:
    records = [{field.upper(): _FIELD_VALUES[field.lower()](job) for field in fields} for job in jobs]
    records += [
        {"JOBID": number.partition("[")[0], "ERROR": f"Job <{number}> is not found"} for number in unknown
    ]
    text = json.dumps({"COMMAND": "bjobs", "JOBS": len(records), "RECORDS": records}, indent=2)
    return CommandResult(
        returncode=0 if jobs or not unknown else _UNKNOWN, stdout=text.replace("/", "\\/") + "\n"
    )


#: The line between paragraphs; it also precedes the first one if an id is unknown.
SEPARATOR = f"{'-' * 78}\n"


def join_paragraphs(paragraphs: Iterable[str]) -> str:
    """Join paragraphs, with the empty line after the last."""
    text = SEPARATOR.join(paragraphs)
    return f"{text}\n" if text else ""


def heading(job: FakeJob, status: str = "") -> str:
    """Return the first line of a job's paragraph."""
    fields = [
        f"Job <{job.native_id}>",
        f"Job Name <{job.name}>",
        f"User <{job.owner}>",
        f"Project <{job.project}>",
        *([f"Status <{status}>", f"Queue <{job.queue}>"] if status else []),
        f"Command <{_command(job)}>",
        *([f"Job Description <{job.tag}>"] if job.tag else []),
    ]
    return fold_line(", ".join(fields))


def _command(job: FakeJob) -> str:
    """Return the job's script as one line."""
    return job.script.strip().replace("\n", ";")


def fold_line(line: str) -> str:
    """Return a line as LSF wraps it."""
    rows = [line[:80]]
    remaining = line[80:]
    while remaining:
        rows.append(" " * 21 + remaining[:59])
        remaining = remaining[59:]
    return "\n".join(rows) + "\n"


def end_event(job: FakeJob) -> str:
    """Return the event of a job's end."""
    if is_done(job):
        return "Done successfully. The CPU time used is 0.0 seconds"
    if code(job) is None:
        return "Exited. The CPU time used is unknown" if has_run(job) else "Exited"
    return f"Exited with exit code {code(job)}. The CPU time used is 0.0 seconds"


def _paragraph(job: FakeJob) -> str:
    lines = ["\n", heading(job, native_state(job))]
    lines.append(fold_line(f"{format_time(job.submitted)}: Submitted from host <login01>;"))
    if has_run(job):
        event = f"[{job.index}] started" if job.index else "Started"
        lines.append(fold_line(f"{format_time(job.started)}: {event} on <{lead(job)}>, Execution CWD </>;"))
    if job.state.final:
        lines.append(f"{format_time(job.ended)}: {end_event(job)}.\n")
    if pending(job):
        lines.append(f" PENDING REASONS:\n {pending(job)};\n")
    lines.append(_SECTIONS)
    return "".join(lines)
