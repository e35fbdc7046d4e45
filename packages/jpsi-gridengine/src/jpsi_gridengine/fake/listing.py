"""`qstat`, `qacct` and `qconf` of the fake of Grid Engine.

Tests and `jpsi fake` run jobs on the fake, without a real Grid Engine.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Sequence

from jpsi_testing.fake import CommandError, FakeJob, FakeScheduler, Invocation, join_lines, node_name

from .arrays import MAX_AJ_TASKS, Row, job_name_of, qstat_rows
from .states import failed_and_status, format_time, state_letters, submission_time

_SCHEMA = "http://arc.liv.ac.uk/repos/darcs/sge/source/dist/util/resources/schemas/qstat/qstat.xsd"
_XML_TIME, _ACCOUNT_TIME = "%Y-%m-%dT%H:%M:%S", "%a %b %d %H:%M:%S %Y"
_RULE = "=" * 62


def qstat(scheduler: FakeScheduler, invocation: Invocation) -> str:
    """List the user's unfinished jobs as XML or as a table for people, or list the queues."""
    if invocation.arguments == ("-help",):
        return "SGE 8.1.9\nusage: qstat [options]\n"
    if invocation.arguments == ("-g", "c"):
        return _SUMMARY
    if "-j" in invocation.arguments:
        raise CommandError(1, "error: ERROR! this fake qstat does not know -j\n")
    jobs = [job for job in scheduler.listed() if not job.state.final and job.is_own]
    if "-xml" not in invocation.arguments:
        return join_lines(_table(jobs, invocation)) if jobs else ""
    listed = list(qstat_rows(jobs))
    running = [_row(row, invocation) for row in listed if state_letters(row.job)[-1] == "r"]
    pending = [_row(row, invocation) for row in listed if state_letters(row.job)[-1] != "r"]
    lines = [
        "<?xml version='1.0'?>",
        f'<job_info  xmlns:xsd="{_SCHEMA}">',
        *("  <queue_info>", *running, "  </queue_info>"),
        *("  <job_info>", *pending, "  </job_info>"),
        "</job_info>",
    ]
    return join_lines(lines)


_SUMMARY = f"""\
CLUSTER QUEUE                   CQLOAD   USED    RES  AVAIL  TOTAL aoACDS  cdsuE
{"-" * 80}
debug.q                           1.25      0      0      8      8      0      0
main.q                            1.25      0      0      8      8      0      0
"""
_HEADING = (
    "job-ID  prior   name       user         state submit/start at     queue                          "
    "slots ja-task-ID "
)


def _table(jobs: Iterable[FakeJob], invocation: Invocation) -> Iterator[str]:
    yield _HEADING
    yield "-" * len(_HEADING.rstrip())
    for job, tasks in qstat_rows(jobs):
        time = format_time(
            job.submitted if job.started is None else job.started, invocation, "%m/%d/%Y %H:%M:%S"
        )
        queue = "" if job.started is None else f"{job.queue}@{node_name(0)}"
        yield (
            f"{job.number:>7} 0.50000 {job.name[:10]:10} {job.owner[:12]:12} {state_letters(job):5} {time} "
            f"{queue[:30]:30} {job.slots:5} {tasks or '       '}"
        )


def _row(row: Row, invocation: Invocation) -> str:
    job = row.job
    runs = state_letters(job)[-1] == "r"
    when = "JAT_start_time" if runs else "JB_submission_time"
    fields = {
        "JB_job_number": job.number,
        "JAT_prio": "0.50000",
        "JB_name": _escaped(job_name_of(job)),
        "JB_owner": job.owner,
        "state": state_letters(job),
        when: format_time(job.started if runs else submission_time(job), invocation, _XML_TIME),
        "queue_name": f"{job.queue}@{node_name(0)}" if runs else "",
        "slots": str(job.slots),
        **({"tasks": row.tasks} if row.tasks else {}),
    }
    if "-r" in invocation.arguments:
        fields |= {"full_job_name": _escaped(job_name_of(job)), "binding": "NONE"}
    lines = [f"      <{name}>{value}</{name}>" for name, value in fields.items()]
    state = "running" if runs else "pending"
    return "\n".join([f'    <job_list state="{state}">', *lines, "    </job_list>"])


def _escaped(name: str) -> str:
    """Return a name as 8.1.9 escapes it."""
    return html.escape(name, quote=False).replace("&lt;", "%lt;")


def qacct(scheduler: FakeScheduler, invocation: Invocation) -> str:
    """Print the accounts of a job or an array; jobs that never started have none."""
    queried, task = (_value(option, invocation.arguments) for option in ("-j", "-t"))
    found = [
        job
        for job in scheduler.accounted()
        if job.number == queried
        and task in {"", str(job.index)}
        and job.state.final
        and job.started is not None
    ]
    if not found and task:
        message = f"error: Job-array tasks {queried}.{task}-{task}:1 not found\n"
        raise CommandError(1, message)
    if not found:
        kind = "id" if queried.isdecimal() else "name"
        raise CommandError(1, f"error: job {kind} {queried} not found\n")
    return "".join(_accounts(job, invocation) for job in found)


def _value(option: str, arguments: Sequence[str]) -> str:
    """Return the value of an option; "" if it is missing."""
    return arguments[arguments.index(option) + 1] if option in arguments[:-1] else ""


def _accounts(job: FakeJob, invocation: Invocation) -> str:
    """Return one account per run."""
    runs = [(job.submitted, "25  : rescheduling", 99)] * job.restarts
    last = (submission_time(job), *failed_and_status(job))
    return "".join(_account(job, invocation, *run) for run in [*runs, last])


def _account(job: FakeJob, invocation: Invocation, submitted: float, failed: str, status: int) -> str:
    started, ended = (format_time(it, invocation, _ACCOUNT_TIME) for it in (job.started, job.ended))
    spent = f"{int((job.ended or 0) - (job.started or 0))}s"
    fields = {
        "qname": job.queue,
        "hostname": node_name(0),
        "group": job.owner,
        "owner": job.owner,
        "project": job.project,
        "department": "defaultdepartment",
        "jobname": job_name_of(job),
        "jobnumber": job.number,
        "taskid": str(job.index) if job.array else "undefined",
        "account": "sge",
        "priority": "0",
        "qsub_time": format_time(submitted, invocation, _ACCOUNT_TIME),
        "start_time": started,
        "end_time": ended,
        "granted_pe": str(job.attributes["granted_pe"]),
        "slots": str(job.slots),
        "failed": failed,
        "exit_status": str(status),
        "ru_wallclock": spent,
        **_USAGE,
        "arid": "undefined",
        "ar_sub_time": "undefined",
        "category": str(job.attributes["category"]),
    }
    return join_lines([_RULE, *(f"{name:<12} {value:<20}" for name, value in fields.items())])


# The fake does not measure other usage than time.
_USAGE = {
    **{f"ru_{name}": "0.005s" for name in ("utime", "stime")},
    **{f"ru_{name}": "0.000B" for name in ("maxrss", "ixrss", "ismrss", "idrss", "isrss")},
    **dict.fromkeys(
        (
            *("ru_minflt", "ru_majflt", "ru_nswap", "ru_inblock", "ru_oublock", "ru_msgsnd", "ru_msgrcv"),
            *("ru_nsignals", "ru_nvcsw", "ru_nivcsw"),
        ),
        "0",
    ),
    "cpu": "0.010s",
    "mem": "0.000Bs",
    "io": "0.000B",
    "iow": "0.000s",
    "maxvmem": "3.379MB",
}


# The queues, with their run time limits
_QUEUES = {"debug.q": "01:00:00", "main.q": "INFINITY"}
_LIMITS = {"max_aj_instances": 2000, "max_aj_tasks": MAX_AJ_TASKS, "max_u_jobs": 0, "max_jobs": 0}


def qconf(_scheduler: FakeScheduler, invocation: Invocation) -> str:
    """Print the configuration, the names of the queues, or the configuration of a queue."""
    match invocation.arguments:
        case ("-sconf", *_):
            return join_lines(["#global:", *(f"{name:<28} {value}" for name, value in _LIMITS.items())])
        case ("-sql",):
            return join_lines(_QUEUES)
        case ("-sq", name) if name in _QUEUES:
            settings = {"qname": name, "qtype": "BATCH", "pe_list": "make smp", "h_rt": _QUEUES[name]}
            return join_lines(f"{key:<21} {value}" for key, value in settings.items())
        case _:
            raise CommandError(1, "error: this fake qconf knows -sconf, -sql and -sq alone\n")
