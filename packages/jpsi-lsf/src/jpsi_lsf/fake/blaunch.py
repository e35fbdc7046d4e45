"""`blaunch` of the fake of LSF: every task is a process on this machine.

Tests and `jpsi fake` run jobs on the fake, without a real LSF.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from jpsi.plugin import CommandResult
from jpsi_testing.fake import (
    CommandError,
    FakeJob,
    FakeScheduler,
    Invocation,
    Task,
    TaskLaunch,
    parse_dashed,
    refuse_if,
)

from .states import nodes

_ARITY = {"n": 0, "no-shell": 0, "u": 1, "z": 1}
_REFUSED = 255


def slots(scheduler: FakeScheduler, invocation: Invocation) -> Sequence[str]:
    """Return the host of each slot of the calling job; none outside of jobs."""
    job = _calling_job(scheduler, invocation)
    return [] if job is None else nodes(job)


def blaunch(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    """Run a command in every slot of the calling job, or on the named hosts."""
    job = _calling_job(scheduler, invocation)
    if job is None:
        raise CommandError(_REFUSED, "blaunch: it is not called in a job\n")
    unknown = _REFUSED, "blaunch: illegal option -- -{}\n"
    arguments = parse_dashed(invocation.arguments, _ARITY, unknown)
    own, command, options = nodes(job), list(arguments.words), arguments.options
    try:
        named = Path(options["u"]).read_text(encoding="utf-8") if "u" in options else options.get("z")
    except OSError as e:
        raise CommandError(_REFUSED, f"blaunch: {e}\n") from e
    is_first = named is None and command and command[0] in own
    hosts = [command.pop(0)] if is_first else own if named is None else named.split()
    foreign = [host for host in hosts if host not in own]
    refusals = {
        f"the host {next(iter(foreign), '')} is none of the job's": foreign,
        "there is no command to run": not command,
    }
    refuse_if(refusals, _REFUSED, "blaunch: {}\n")
    argv = command if "no-shell" in options else ["/bin/sh", "-c", " ".join(command)]
    return TaskLaunch(tasks=_tasks(job, hosts, argv), stdin=None if "n" in options else 0)


def _calling_job(scheduler: FakeScheduler, invocation: Invocation) -> FakeJob | None:
    names = ("LSB_JOBID", ""), ("LSB_JOBINDEX", "0")
    calling = tuple(invocation.environment.get(*it) for it in names)
    return next((job for job in scheduler.jobs if (job.number, str(job.index)) == calling), None)


def _tasks(job: FakeJob, hosts: Sequence[str], argv: Sequence[str]) -> Iterator[Task]:
    """Yield the tasks; all numbers start at 1, and task numbers count through the whole job."""
    machines = list(dict.fromkeys(nodes(job)))
    task_counts: Counter[str] = Counter()
    for host in hosts:
        task_counts[host] += 1
        job.attributes["tasks"] = job.attributes.get("tasks", 0) + 1
        variables = {
            "LSF_PM_TASKID": str(job.attributes["tasks"]),
            "LSF_PM_XMACHID": str(machines.index(host) + 1),
            "LSF_PM_XPROCID": str(task_counts[host]),
        }
        yield Task(argv=argv, environment=variables)
