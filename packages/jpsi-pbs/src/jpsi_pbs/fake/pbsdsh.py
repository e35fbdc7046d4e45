"""`pbsdsh` of the fakes: every task is a process on this machine, whatever its node's name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from jpsi.plugin import CommandResult
from jpsi_testing.fake import FakeJob, FakeScheduler, Invocation, Task, TaskLaunch

from .arguments import WrongOptionError, parse


def slots(scheduler: FakeScheduler, invocation: Invocation) -> Sequence[str]:
    """Return the node of each process of the calling job; none outside of jobs."""
    job = _job(scheduler, invocation)
    return [] if job is None else job.attributes["nodes"]


def pbsdsh(letters: str) -> Callable[[FakeScheduler, Invocation], CommandResult]:
    """Return the command `pbsdsh` with these options, which differ between PBS and Torque."""

    def run(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
        try:
            options = parse(invocation.arguments, letters)
            job = _job(scheduler, invocation)
            if job is None:
                return _error("it is not called in a job")
            if not options.words:
                return _error("there is no program to run")
            selected = _select_nodes(job.attributes["nodes"], options.options)
        except WrongOptionError as e:
            return CommandResult(returncode=2, stderr=f"pbsdsh: invalid option -- '{e}'\n")
        except ValueError as e:
            return _error(str(e))
        return TaskLaunch(tasks=list(_tasks(job, selected, options.words)), stdin=None)

    return run


def _error(message: str) -> CommandResult:
    return CommandResult(returncode=1, stderr=f"pbsdsh: {message}\n")


def _job(scheduler: FakeScheduler, invocation: Invocation) -> FakeJob | None:
    native_id = invocation.environment.get("PBS_JOBID", "")
    return next((job for job in scheduler.jobs if job.native_id == native_id), None)


def _select_nodes(nodes: Sequence[str], options: dict[str, list[str]]) -> list[int]:
    """Return the indices of the job's processes in whose places the program starts.

    Raises:
        ValueError: there is no such place.
    """
    every = list(range(len(nodes)))
    if "u" in options:
        every = [nodes.index(name) for name in dict.fromkeys(nodes)]
    if "h" in options:
        every = [slot for slot in every if nodes[slot] == options["h"][-1]][:1]
    if "n" in options:
        every = [slot for slot in every if slot == int(options["n"][-1])]
    if "c" in options:
        every = every[: int(options["c"][-1])]
    if not every:
        msg = f"there is no such node: the job has {len(nodes)}, counted from 0"
        raise ValueError(msg)
    return every


def _tasks(job: FakeJob, slots: Sequence[int], argv: Sequence[str]) -> Iterator[Task]:
    """Yield the tasks; the job's script counts as its first task."""
    nodes = job.attributes["nodes"]
    hosts = list(dict.fromkeys(nodes))
    for slot in slots:
        job.attributes["tasks"] = job.attributes.get("tasks", 1) + 1
        own = {"PBS_NODENUM": str(hosts.index(nodes[slot])), "PBS_TASKNUM": str(job.attributes["tasks"])}
        if "PBS_VNODENUM" in job.environment:
            own["PBS_VNODENUM"] = str(slot)
        yield Task(argv=argv, environment=own)
