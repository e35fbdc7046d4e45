"""`blaunch` of the fake of LSF: every task is a process on this machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from jpsi.plugin import CommandResult
from jpsi_testing.fake import FakeJob, FakeScheduler, Invocation, Task, TaskLaunch

from .arrays import element_index, job_number
from .states import nodes

_REFUSED = 255


def slots(scheduler: FakeScheduler, invocation: Invocation) -> Sequence[str]:
    """Return the host of each slot of the calling job; none outside of jobs."""
    job = _calling_job(scheduler, invocation)
    return [] if job is None else nodes(job)


def blaunch(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    """Run a command in every slot of the calling job, or on the named hosts."""
    job = _calling_job(scheduler, invocation)
    if job is None:
        return _error("it is not called in a job")
    try:
        hosts, command, has_input, has_shell = _parse_arguments(list(invocation.arguments), nodes(job))
    except (OSError, ValueError) as e:
        return _error(str(e))
    if not command:
        return _error("there is no command to run")
    argv = ["/bin/sh", "-c", " ".join(command)] if has_shell else command
    return TaskLaunch(tasks=_tasks(job, hosts, argv), stdin=0 if has_input else None)


def _error(message: str) -> CommandResult:
    return CommandResult(returncode=_REFUSED, stderr=f"blaunch: {message}\n")


def _calling_job(scheduler: FakeScheduler, invocation: Invocation) -> FakeJob | None:
    number = invocation.environment.get("LSB_JOBID", "")
    index = invocation.environment.get("LSB_JOBINDEX", "0")
    calling = (number, index)
    return next(
        (job for job in scheduler.jobs if (job_number(job), str(element_index(job))) == calling), None
    )


def _parse_arguments(words: list[str], own: Sequence[str]) -> tuple[list[str], list[str], bool, bool]:
    """Parse the arguments into hosts, command, and two flags: it reads standard input, a shell runs it.

    Raises:
        OSError: the file of hosts cannot be read.
        ValueError: an option is unknown, or a host does not belong to the job.
    """
    hosts, has_input, has_shell = list(own), True, True
    has_named_hosts = False
    while words and words[0].startswith("-"):
        option = words.pop(0)
        if option == "-n":
            has_input = False
        elif option == "-no-shell":
            has_shell = False
        elif option in {"-u", "-z"} and words:
            value = words.pop(0)
            hosts = (Path(value).read_text(encoding="utf-8") if option == "-u" else value).split()
            has_named_hosts = True
        else:
            msg = f"illegal option -- {option}"
            raise ValueError(msg)
    if not has_named_hosts and words and words[0] in own:
        hosts = [words.pop(0)]
    if foreign := [host for host in hosts if host not in own]:
        msg = f"the host {foreign[0]} is none of the job's"
        raise ValueError(msg)
    return hosts, words, has_input, has_shell


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
