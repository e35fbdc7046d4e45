"""`squeue` and `sacct` over a fake batch system."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence

from jpsi.fakes import FakeJob, FakeScheduler, Invocation
from jpsi.plugin import CommandResult

from .arguments import UnknownOptionError, parse
from .table import USUAL, table
from .telling import Told, moment, told

_SQUEUE = {
    **dict.fromkeys(("all", "array", "me", "noheader"), False),
    **dict.fromkeys(("Format", "clusters", "format", "jobs", "name", "states", "user"), True),
}
_SQUEUE_SHORT = {
    "M": "clusters",
    "O": "Format",
    "a": "all",
    "h": "noheader",
    "j": "jobs",
    "n": "name",
    "o": "format",
    "t": "states",
    "u": "user",
}
_SACCT = {
    **dict.fromkeys(("allocations", "duplicates", "noheader", "parsable2"), False),
    **dict.fromkeys(("clusters", "delimiter", "format", "jobs", "starttime"), True),
}
_SACCT_SHORT = {"X": "allocations", "n": "noheader", "P": "parsable2", "o": "format", "j": "jobs"}

# Of a column that people read
_WIDTH = 12

#: A column: what it says of a job.
_Column = Callable[[FakeJob, Told, Invocation], str]

_IN_SQUEUE: Mapping[str, _Column] = {
    "comment": lambda job, _told, _call: job.tag or "(null)",
    "endtime": lambda job, _told, call: moment(job.ended, call, "N/A"),
    "exit_code": lambda _job, told, _call: str(told.status),
    "jobarrayid": lambda job, _told, _call: job.native_id,
    "jobid": lambda job, _told, _call: job.native_id,
    "name": lambda job, _told, _call: job.name,
    "nodelist": lambda _job, told, _call: told.nodes,
    "reason": lambda _job, told, _call: told.reason,
    "restartcnt": lambda job, _told, _call: str(job.restarts),
    "starttime": lambda job, _told, call: moment(job.started, call, "N/A"),
    "state": lambda _job, told, _call: told.state,
    "submittime": lambda job, _told, call: moment(job.submitted, call, "N/A"),
}
_IN_SACCT: Mapping[str, _Column] = {
    "comment": lambda job, _told, _call: job.tag,
    "end": lambda job, _told, call: moment(job.ended, call, "Unknown"),
    "exitcode": lambda _job, told, _call: _accounted_code(told.status),
    "jobid": lambda job, _told, _call: job.native_id,
    "jobidraw": lambda job, _told, _call: job.native_id,
    "jobname": lambda job, _told, _call: job.name,
    "nodelist": lambda _job, told, _call: told.nodes or "None assigned",
    "reason": lambda _job, _told, _call: "None",
    "start": lambda job, _told, call: moment(job.started, call, "Unknown"),
    "state": lambda _job, told, _call: _accounted_state(told.state),
    "submit": lambda job, _told, call: moment(job.submitted, call, "Unknown"),
}


def squeue(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    """List jobs in the form that `--Format` gives, or as people read them."""
    try:
        options = parse(invocation.arguments, _SQUEUE, _SQUEUE_SHORT).options
    except UnknownOptionError as e:
        return CommandResult(returncode=1, stderr=f"squeue: unrecognized option '{e}'\n")
    jobs = scheduler.listed()
    ids = _ids(options)
    for native_id in ids:
        if not native_id.isdecimal():
            return CommandResult(returncode=1, stderr=f"squeue: error: Invalid job id: {native_id}\n")
    if len(ids) == 1 and ids[0] not in {job.native_id for job in jobs}:
        return CommandResult(returncode=1, stderr="slurm_load_jobs error: Invalid job id specified\n")
    if options.get("states") != "all":
        jobs = [job for job in jobs if not job.state.final]
    if "me" in options:
        jobs = [job for job in jobs if job.is_own]
    jobs = [
        job
        for job in jobs
        if (not ids or job.native_id in ids)
        and options.get("user", job.owner) == job.owner
        and options.get("name", job.name) == job.name
    ]
    try:
        return CommandResult(returncode=0, stdout=_text(_queue(jobs, options, invocation, scheduler.clock())))
    except ValueError as e:
        return CommandResult(returncode=1, stderr=f"squeue: error: {e}\n")


def _queue(
    jobs: Sequence[FakeJob], options: Mapping[str, str], invocation: Invocation, now: float
) -> list[str]:
    if "Format" not in options:
        form = options.get("format", USUAL)
        return table(jobs, form, invocation, now, has_heading="noheader" not in options)
    columns = [field.partition(":")[::2] for field in options["Format"].split(",")]
    if unknown := [name for name, _ in columns if name.lower() not in _IN_SQUEUE]:
        msg = f"Invalid job format specification: {', '.join(unknown)}"
        raise ValueError(msg)
    return [
        "".join(_IN_SQUEUE[name.lower()](job, told(job), invocation) + suffix for name, suffix in columns)
        for job in jobs
    ]


def sacct(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    """List what the accounting knows of jobs."""
    if not scheduler.accounting:
        return CommandResult(returncode=1, stderr="Slurm accounting storage is disabled\n")
    try:
        options = parse(invocation.arguments, _SACCT, _SACCT_SHORT).options
    except UnknownOptionError as e:
        return CommandResult(returncode=1, stderr=f"sacct: unrecognized option '{e}'\n")
    ids = _ids(options)
    for native_id in ids:
        if not native_id.isdecimal():
            fatal = f"sacct: fatal: Bad job/step specified: {native_id}\n"
            return CommandResult(returncode=1, stderr=fatal)
    names = options.get("format", "JobID,JobName,State,ExitCode").split(",")
    if unknown := [name for name in names if name.lower() not in _IN_SACCT]:
        return CommandResult(returncode=1, stderr=f'sacct: fatal: Invalid field requested: "{unknown[0]}"\n')
    rows = [
        [_IN_SACCT[name.lower()](job, told(job), invocation) for name in names]
        for job in scheduler.accounted()
        if not ids or job.native_id in ids
    ]
    is_bare = "noheader" in options
    if "parsable2" in options:
        between = options.get("delimiter", "|")
        return CommandResult(
            returncode=0, stdout=_text(map(between.join, rows if is_bare else [names, *rows]))
        )
    head = [] if is_bare else [names, ["-" * _WIDTH] * len(names)]
    lines = ["".join(f"{cell[:_WIDTH]:>{_WIDTH}} " for cell in row) for row in [*head, *rows]]
    return CommandResult(returncode=0, stdout=_text(lines))


def _ids(options: Mapping[str, str]) -> list[str]:
    return [native_id for native_id in options.get("jobs", "").split(",") if native_id]


def _text(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _accounted_state(state: str) -> str:
    if state == "CANCELLED":
        return f"CANCELLED by {os.getuid()}"
    # A job that is completing is still running in the accounting.
    return "RUNNING" if state == "COMPLETING" else state


def _accounted_code(status: int) -> str:
    """As sacct before Slurm 25.11 prints it: codes above 127 have lost 128."""
    code, number = status >> 8 & 0xFF, status & 0x7F
    return f"0:{number}" if number else f"{code % 128}:0"
