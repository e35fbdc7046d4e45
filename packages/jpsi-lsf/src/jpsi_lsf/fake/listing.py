"""`bjobs` of the fakes of LSF."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping

from jpsi.plugin import CommandResult
from jpsi_testing.fake import FakeJob, FakeScheduler, Invocation

from .arrays import index_of, meant, number_of
from .control import unsound
from .flavour import Flavour
from .states import code, has_run, is_done, lead, moment, nodes, pending, why, word

_NONE_LEFT, _BAD_FIELD, _UNKNOWN = 254, 99, 255
_USAGE = "Usage: bjobs [-h] [-V] [-w |-l |-UF] [-a] [-d] [-p] [-s] [-r] [-o] [-json] [-A]\n"

_TOLD: Mapping[str, Callable[[FakeJob], str]] = {
    "command": lambda job: _command(job),  # noqa: PLW0108  it stands below
    "exec_host": lambda job: ":".join(nodes(job)) if has_run(job) else "",
    "exit_code": lambda job: "" if word(job) != "EXIT" or code(job) is None else str(code(job)),
    "exit_reason": why,
    "job_description": lambda job: job.tag,
    "job_name": lambda job: job.name,
    "jobid": number_of,
    "jobindex": lambda job: str(index_of(job)),
    "pend_reason": lambda job: f"{pending(job)};" if pending(job) else "",
    "proj_name": lambda job: job.project,
    "queue": lambda job: job.queue,
    "stat": word,
    "user": lambda job: job.owner,
}


def bjobs(  # noqa: PLR0911  each of them is another answer of the one command
    flavour: Flavour, scheduler: FakeScheduler, invocation: Invocation
) -> CommandResult:
    """List jobs: as JSON with `-o … -json`, in paragraphs with `-l`, else in a table."""
    words = list(invocation.arguments)
    if words == ["-V"]:
        return CommandResult(returncode=0, stderr=f"{flavour.version}\n")
    fields = words.pop(words.index("-o") + 1).split() if "-o" in words else []
    ids = [word for word in words if not word.startswith("-")]
    if ("-json" in words) != bool(fields):
        return CommandResult(returncode=_UNKNOWN, stderr=_USAGE)
    if refusal := unsound(Invocation(argv=["bjobs", *ids])):
        return refusal
    jobs = _jobs(scheduler, ids, everything="-a" in words)
    unknown = [] if "0" in ids else [name for name, found in meant(ids, jobs) if not found]
    for field in fields:
        if field.lower() not in flavour.fields and jobs:
            said = f"<{field.upper()}> in the format string is not a valid field name.\n"
            return CommandResult(returncode=_BAD_FIELD, stderr=said)
    if fields:
        return _as_json(jobs, unknown, fields)
    stderr = "".join(f"Job <{number}> is not found\n" for number in unknown)
    if not jobs and not unknown:
        which = "job" if "-a" in words else "unfinished job"
        return CommandResult(returncode=_NONE_LEFT, stderr=f"No {which} found\n")
    stdout = joined(map(_paragraph, jobs)) if "-l" in words else _table(jobs)
    if stdout and "-l" in words and unknown and "[" not in unknown[0]:
        stdout = BETWEEN + stdout
    return CommandResult(returncode=_UNKNOWN if unknown else 0, stdout=stdout, stderr=stderr)


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


def _table(jobs: list[FakeJob]) -> str:
    lines = [
        f"{number_of(job):7} {job.owner[:7]:7} {word(job):5} {job.queue[:10]:10} {lead(job)[:11]:11} "
        f"{lead(job)[:11] if has_run(job) else '':11} {job.name[-10:]:10} {moment(job.submitted)[4:16]}"
        for job in jobs
    ]
    return "".join(f"{line}\n" for line in [_HEADING, *lines]) if lines else ""


def _jobs(scheduler: FakeScheduler, ids: list[str], *, everything: bool) -> list[FakeJob]:
    jobs = scheduler.listed()
    if ids and "0" not in ids:
        # bjobs prints unfinished jobs first, whatever the order of the ids
        asked = {id(job) for _, found in meant(ids, jobs) for job in found}
        return sorted((job for job in jobs if id(job) in asked), key=lambda job: job.state.final)
    mine = [job for job in jobs if job.is_own]
    return mine if everything else [job for job in mine if not job.state.final]


def _as_json(jobs: list[FakeJob], unknown: list[str], fields: list[str]) -> CommandResult:
    found = [{field.upper(): _TOLD[field.lower()](job) for field in fields} for job in jobs]
    found += [{"JOBID": it.partition("[")[0], "ERROR": f"Job <{it}> is not found"} for it in unknown]
    text = json.dumps({"COMMAND": "bjobs", "JOBS": len(found), "RECORDS": found}, indent=2)
    return CommandResult(
        returncode=0 if jobs or not unknown else _UNKNOWN, stdout=text.replace("/", "\\/") + "\n"
    )


#: The line between paragraphs; it also precedes the first one if an id is unknown.
BETWEEN = f"{'-' * 78}\n"


def joined(paragraphs: Iterable[str]) -> str:
    """Join paragraphs, with the empty line after the last."""
    text = BETWEEN.join(paragraphs)
    return f"{text}\n" if text else ""


def heading(job: FakeJob, status: str = "") -> str:
    """Return the first line of a job's paragraph."""
    told = [
        f"Job <{job.native_id}>",
        f"Job Name <{job.name}>",
        f"User <{job.owner}>",
        f"Project <{job.project}>",
        *([f"Status <{status}>", f"Queue <{job.queue}>"] if status else []),
        f"Command <{_command(job)}>",
        *([f"Job Description <{job.tag}>"] if job.tag else []),
    ]
    return folded(", ".join(told))


def _command(job: FakeJob) -> str:
    """Return the job's script as one line."""
    return job.script.strip().replace("\n", ";")


def folded(line: str) -> str:
    """Return a line as LSF wraps it."""
    rows = [line[:80]]
    rest = line[80:]
    while rest:
        rows.append(" " * 21 + rest[:59])
        rest = rest[59:]
    return "\n".join(rows) + "\n"


def ending(job: FakeJob) -> str:
    """Return the event of a job's end."""
    if is_done(job):
        return "Done successfully. The CPU time used is 0.0 seconds"
    if code(job) is None:
        return "Exited. The CPU time used is unknown" if has_run(job) else "Exited"
    return f"Exited with exit code {code(job)}. The CPU time used is 0.0 seconds"


def _paragraph(job: FakeJob) -> str:
    lines = ["\n", heading(job, word(job))]
    lines.append(folded(f"{moment(job.submitted)}: Submitted from host <login01>;"))
    if has_run(job):
        started = f"[{index_of(job)}] started" if index_of(job) else "Started"
        lines.append(folded(f"{moment(job.started)}: {started} on <{lead(job)}>, Execution CWD </>;"))
    if job.state.final:
        lines.append(f"{moment(job.ended)}: {ending(job)}.\n")
    if pending(job):
        lines.append(f" PENDING REASONS:\n {pending(job)};\n")
    lines.append(_SECTIONS)
    return "".join(lines)
