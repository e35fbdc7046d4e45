"""`squeue` and `sacct` of the fake of Slurm."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from jpsi.plugin import CommandResult
from jpsi_testing.fake import FakeJob, FakeScheduler, Invocation

from ..native_ids import expand_ids, parent_id
from .arguments import UnknownOptionError, parse
from .arrays import Line, find_jobs, squeue_lines
from .states import JobFields, format_time, job_fields
from .table import DEFAULT_FORMAT, SHORT_STATES, format_table

_SQUEUE = {
    **dict.fromkeys(("all", "array", "me", "noheader"), False),
    **dict.fromkeys(("Format", "clusters", "format", "jobs", "name", "sort", "states", "user"), True),
}
_SQUEUE_SHORT = {
    "M": "clusters",
    "O": "Format",
    "a": "all",
    "h": "noheader",
    "j": "jobs",
    "n": "name",
    "o": "format",
    "S": "sort",
    "r": "array",
    "t": "states",
    "u": "user",
}
_SACCT = {
    **dict.fromkeys(("allocations", "duplicates", "noheader", "parsable", "parsable2"), False),
    **dict.fromkeys(("clusters", "delimiter", "format", "jobs", "starttime"), True),
}
_SACCT_SHORT = {
    "D": "duplicates",
    "P": "parsable2",
    "X": "allocations",
    "j": "jobs",
    "n": "noheader",
    "o": "format",
    "p": "parsable",
}

# The width of a column in output for people
_WIDTH = 12

#: A column: returns the text for a line.
_Column = Callable[[Line, JobFields, Invocation], str]

# A field of --Format: a point aligns the value to the right, and the text after the width ends the field.
_FIELD = re.compile(r"(?P<name>[^:]*)(?:(?P<colon>:)(?P<right>\.?)(?P<width>\d*)(?P<end>.*))?", re.DOTALL)
_DEFAULT_WIDTH = 20
_ID_ORDERS = ("i", "-i")
_HEADINGS = {
    "endtime": "END_TIME",
    "jobarrayid": "JOBID",
    "restartcnt": "RESTART_COUNT",
    "starttime": "START_TIME",
    "statecompact": "ST",
    "submittime": "SUBMIT_TIME",
}
_SQUEUE_COLUMNS: Mapping[str, _Column] = {
    "comment": lambda line, _fields, _call: line.job.tag or "(null)",
    "endtime": lambda line, _fields, call: format_time(line.job.ended, call, "N/A"),
    "exit_code": lambda _line, fields, _call: str(fields.status),
    "jobarrayid": lambda line, _fields, _call: line.displayed_id,
    "jobid": lambda line, _fields, _call: line.number,
    "name": lambda line, _fields, _call: line.job.name,
    "nodelist": lambda _line, fields, _call: fields.nodes,
    "reason": lambda _line, fields, _call: fields.reason,
    "restartcnt": lambda line, _fields, _call: str(line.job.restarts),
    "starttime": lambda line, _fields, call: format_time(line.job.started, call, "N/A"),
    "state": lambda _line, fields, _call: fields.state,
    "statecompact": lambda _line, fields, _call: SHORT_STATES[fields.state],
    "submittime": lambda line, _fields, call: format_time(line.job.submitted, call, "N/A"),
}
_SACCT_COLUMNS: Mapping[str, _Column] = {
    # slurmdbd gets the comment when the job ends
    "comment": lambda line, _fields, _call: line.job.tag if line.job.state.final else "",
    "end": lambda line, _fields, call: format_time(line.job.ended, call, "Unknown"),
    "exitcode": lambda _line, fields, _call: _accounted_code(fields.status),
    "jobid": lambda line, _fields, _call: line.displayed_id,
    "jobidraw": lambda line, _fields, _call: line.number,
    "jobname": lambda line, _fields, _call: line.job.name,
    "nodelist": lambda _line, fields, _call: fields.nodes or "None assigned",
    "reason": lambda _line, _fields, _call: "None",
    "start": lambda line, _fields, call: format_time(line.job.started, call, "Unknown"),
    "state": lambda _line, fields, _call: _accounted_state(fields.state),
    "submit": lambda line, _fields, call: format_time(line.job.submitted, call, "Unknown"),
    "submitline": lambda line, _fields, _call: line.job.attributes.get("submit_line", "sbatch job.sh"),
}


def squeue(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    """List jobs in the form of `--Format` or `--format`, or as a table for people."""
    try:
        options = parse(invocation.arguments, _SQUEUE, _SQUEUE_SHORT).options
    except UnknownOptionError as e:
        return CommandResult(returncode=1, stderr=f"squeue: unrecognized option '{e}'\n")
    jobs = scheduler.listed()
    ids = _ids(options)
    for native_id in ids:
        if not any(expand_ids(native_id)):
            return CommandResult(returncode=1, stderr=f"squeue: error: Invalid job id: {native_id}\n")
    selected = {job for found in find_jobs(ids, jobs).values() for job in found}
    if len(ids) == 1 and not any(find_jobs([parent_id(ids[0])], jobs).values()):
        return CommandResult(returncode=1, stderr="slurm_load_jobs error: Invalid job id specified\n")
    if options.get("states") != "all":
        jobs = [job for job in jobs if not job.state.final]
    if "me" in options:
        jobs = [job for job in jobs if job.is_own]
    jobs = [
        job
        for job in jobs
        if (not ids or job in selected)
        and options.get("user", job.owner) == job.owner
        and options.get("name", job.name) == job.name
    ]
    try:
        return CommandResult(
            returncode=0, stdout=_text(_format_queue(jobs, options, invocation, scheduler.clock()))
        )
    except ValueError as e:
        return CommandResult(returncode=1, stderr=f"squeue: error: {e}\n")


def _format_queue(
    jobs: Sequence[FakeJob], options: Mapping[str, str], invocation: Invocation, now: float
) -> list[str]:
    if "Format" not in options:
        form = options.get("format", DEFAULT_FORMAT)
        return format_table(jobs, form, invocation, now, has_heading="noheader" not in options)
    fields = [match for field in options["Format"].split(",") if (match := _FIELD.fullmatch(field))]
    if unknown := [field["name"] for field in fields if field["name"].lower() not in _SQUEUE_COLUMNS]:
        msg = f"Invalid job format specification: {', '.join(unknown)}"
        raise ValueError(msg)
    listed = [Line(job, job.native_id) for job in jobs] if "array" in options else list(squeue_lines(jobs))
    if options.get("sort") in _ID_ORDERS:
        listed.sort(key=_sort_key, reverse=options["sort"] == "-i")
    rows = [] if "noheader" in options else [[_heading(field["name"]) for field in fields]]
    rows += [[_column_text(field["name"], line, invocation) for field in fields] for line in listed]
    return ["".join(map(_cell, fields, row)) for row in rows]


def _sort_key(line: Line) -> list[int]:
    """Return the sort key of `--sort=i`: the number, and the first index or the component."""
    return [int(digits) for digits in re.findall(r"[0-9]+", line.displayed_id)[:2]]


def _column_text(name: str, line: Line, invocation: Invocation) -> str:
    return _SQUEUE_COLUMNS[name.lower()](line, job_fields(line.job, line.component), invocation)


def _heading(name: str) -> str:
    return _HEADINGS.get(name.lower(), name.upper())


def _cell(field: re.Match[str], text: str) -> str:
    if field["colon"] is None:
        return text[:_DEFAULT_WIDTH].ljust(_DEFAULT_WIDTH)
    width = int(field["width"] or 0)
    padded = text[:width] if width else text
    return (padded.rjust(width) if field["right"] else padded.ljust(width)) + field["end"]


def sacct(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    """List jobs from the accounting."""
    if not scheduler.accounting:
        return CommandResult(returncode=1, stderr="Slurm accounting storage is disabled\n")
    try:
        options = parse(invocation.arguments, _SACCT, _SACCT_SHORT).options
    except UnknownOptionError as e:
        return CommandResult(returncode=1, stderr=f"sacct: unrecognized option '{e}'\n")
    ids = _ids(options)
    for native_id in ids:
        if not any(expand_ids(native_id)):
            fatal = f"sacct: fatal: Bad job/step specified: {native_id}\n"
            return CommandResult(returncode=1, stderr=fatal)
    names = options.get("format", "JobID,JobName,State,ExitCode").split(",")
    if unknown := [name for name in names if name.lower() not in _SACCT_COLUMNS]:
        return CommandResult(returncode=1, stderr=f'sacct: fatal: Invalid field requested: "{unknown[0]}"\n')
    jobs = scheduler.accounted()
    selected = {job for found in find_jobs(ids, jobs).values() for job in found}
    rows = [
        [
            _SACCT_COLUMNS[name.lower()](line, job_fields(line.job, line.component), invocation)
            for name in names
        ]
        for line in squeue_lines([job for job in jobs if not ids or job in selected])
    ]
    is_without_heading = "noheader" in options
    if "parsable2" in options or "parsable" in options:
        delimiter = options.get("delimiter", "|")
        end = "" if "parsable2" in options else delimiter
        printed_rows = rows if is_without_heading else [names, *rows]
        return CommandResult(returncode=0, stdout=_text(delimiter.join(row) + end for row in printed_rows))
    heading = [] if is_without_heading else [names, ["-" * _WIDTH] * len(names)]
    printed = ["".join(f"{cell[:_WIDTH]:>{_WIDTH}} " for cell in row) for row in [*heading, *rows]]
    return CommandResult(returncode=0, stdout=_text(printed))


def _ids(options: Mapping[str, str]) -> list[str]:
    return [native_id for native_id in options.get("jobs", "").split(",") if native_id]


def _text(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _accounted_state(state: str) -> str:
    if state == "CANCELLED":
        return f"CANCELLED by {os.getuid()}"
    # A completing job is still running in the accounting.
    return "RUNNING" if state == "COMPLETING" else state


def _accounted_code(status: int) -> str:
    """Return an exit code as sacct before Slurm 25.11 prints it: minus 128 if above 127."""
    code, number = status >> 8 & 0xFF, status & 0x7F
    return f"0:{number}" if number else f"{code % 128}:0"
