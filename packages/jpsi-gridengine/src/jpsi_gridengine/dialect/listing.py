"""`qstat` and `qacct` over a fake batch system."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator

from jpsi.fakes import FakeJob, FakeScheduler, Invocation
from jpsi.plugin import CommandResult

from .telling import failed_and_status, letters, moment, node

_SCHEMA = "http://arc.liv.ac.uk/repos/darcs/sge/source/dist/util/resources/schemas/qstat/qstat.xsd"
_XML_TIME, _ACCOUNT_TIME = "%Y-%m-%dT%H:%M:%S", "%a %b %d %H:%M:%S %Y"
_RULE = "=" * 62


def qstat(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    """List the jobs of the user, as XML or for people; those that have ended are not among them."""
    if "-j" in invocation.arguments:
        return CommandResult(returncode=1, stderr="error: ERROR! this fake qstat does not know -j\n")
    jobs = [job for job in scheduler.listed() if not job.state.final and job.is_own]
    if "-xml" not in invocation.arguments:
        return CommandResult(returncode=0, stdout=_text(_table(jobs, invocation)) if jobs else "")
    running = [_row(job, invocation) for job in jobs if letters(job)[-1] == "r"]
    pending = [_row(job, invocation) for job in jobs if letters(job)[-1] != "r"]
    lines = [
        "<?xml version='1.0'?>",
        f'<job_info  xmlns:xsd="{_SCHEMA}">',
        *("  <queue_info>", *running, "  </queue_info>"),
        *("  <job_info>", *pending, "  </job_info>"),
        "</job_info>",
    ]
    return CommandResult(returncode=0, stdout=_text(lines))


_HEADING = (
    "job-ID  prior   name       user         state submit/start at     queue                          "
    "slots ja-task-ID "
)


def _table(jobs: Iterable[FakeJob], invocation: Invocation) -> Iterator[str]:
    yield _HEADING
    yield "-" * len(_HEADING.rstrip())
    for job in jobs:
        at = moment(job.submitted if job.started is None else job.started, invocation, "%m/%d/%Y %H:%M:%S")
        queue = "" if job.started is None else f"{job.queue}@{node(0)}"
        yield (
            f"{job.native_id:>7} 0.50000 {job.name[:10]:10} {job.owner[:12]:12} {letters(job):5} {at} "
            f"{queue[:30]:30} {job.slots:5}        "
        )


def _row(job: FakeJob, invocation: Invocation) -> str:
    runs = letters(job)[-1] == "r"
    when = "JAT_start_time" if runs else "JB_submission_time"
    fields = {
        "JB_job_number": job.native_id,
        "JAT_prio": "0.50000",
        "JB_name": html.escape(job.tag),
        "JB_owner": job.owner,
        "state": letters(job),
        when: moment(job.started if runs else job.submitted, invocation, _XML_TIME),
        "queue_name": f"{job.queue}@{node(0)}" if runs else "",
        "slots": str(job.slots),
    }
    lines = [f"      <{name}>{value}</{name}>" for name, value in fields.items()]
    state = "running" if runs else "pending"
    return "\n".join([f'    <job_list state="{state}">', *lines, "    </job_list>"])


def qacct(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    """List what the accounting knows of one job; of one that never started it knows nothing."""
    arguments = invocation.arguments
    asked = arguments[arguments.index("-j") + 1] if "-j" in arguments[:-1] else ""
    found = [
        job
        for job in scheduler.accounted()
        if job.native_id == asked and job.state.final and job.started is not None
    ]
    if not found:
        kind = "id" if asked.isdecimal() else "name"
        return CommandResult(returncode=1, stderr=f"error: job {kind} {asked} not found\n")
    return CommandResult(returncode=0, stdout="".join(_accounts(job, invocation) for job in found))


def _accounts(job: FakeJob, invocation: Invocation) -> str:
    """One account for each run."""
    runs = [("25  : rescheduling", 99)] * job.restarts
    return "".join(_account(job, invocation, *ended) for ended in [*runs, failed_and_status(job)])


def _account(job: FakeJob, invocation: Invocation, failed: str, status: int) -> str:
    started, ended = (moment(it, invocation, _ACCOUNT_TIME) for it in (job.started, job.ended))
    fields = {
        "qname": job.queue,
        "hostname": node(0),
        "owner": job.owner,
        "project": job.project,
        "jobname": job.tag,
        "jobnumber": job.native_id,
        "taskid": "undefined",
        "account": "sge",
        "qsub_time": moment(job.submitted, invocation, _ACCOUNT_TIME),
        "start_time": started,
        "end_time": ended,
        "slots": str(job.slots),
        "failed": failed,
        "exit_status": str(status),
        "ru_wallclock": f"{int((job.ended or 0) - (job.started or 0))}s",
        "maxvmem": "3.379MB",
        "category": str(job.attributes["category"]),
    }
    return _text([_RULE, *(f"{name:<12} {value:<20}" for name, value in fields.items())])


def _text(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
