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
            given = parse(invocation.arguments, letters)
            job = _job(scheduler, invocation)
            if job is None:
                return _refused("it is not called in a job")
            if not given.words:
                return _refused("there is no program to run")
            chosen = _chosen(job.attributes["nodes"], given.options)
        except WrongOptionError as e:
            return CommandResult(returncode=2, stderr=f"pbsdsh: invalid option -- '{e}'\n")
        except ValueError as e:
            return _refused(str(e))
        return TaskLaunch(tasks=list(_tasks(job, chosen, given.words)), stdin=None)

    return run


def _refused(why: str) -> CommandResult:
    return CommandResult(returncode=1, stderr=f"pbsdsh: {why}\n")


def _job(scheduler: FakeScheduler, invocation: Invocation) -> FakeJob | None:
    native_id = invocation.environment.get("PBS_JOBID", "")
    return next((job for job in scheduler.jobs if job.native_id == native_id), None)


def _chosen(nodes: Sequence[str], options: dict[str, list[str]]) -> list[int]:
    """Return the indices of the job's processes in whose places the program starts.

    Raises:
        ValueError: there is no such place.
    """
    every = list(range(len(nodes)))
    if "u" in options:
        every = [nodes.index(name) for name in dict.fromkeys(nodes)]
    if "h" in options:
        every = [place for place in every if nodes[place] == options["h"][-1]][:1]
    if "n" in options:
        every = [place for place in every if place == int(options["n"][-1])]
    if "c" in options:
        every = every[: int(options["c"][-1])]
    if not every:
        msg = f"there is no such node: the job has {len(nodes)}, counted from 0"
        raise ValueError(msg)
    return every


def _tasks(job: FakeJob, places: Sequence[int], argv: Sequence[str]) -> Iterator[Task]:
    """Yield the tasks; the job's script counts as its first task."""
    nodes = job.attributes["nodes"]
    hosts = list(dict.fromkeys(nodes))
    for place in places:
        job.attributes["tasks"] = job.attributes.get("tasks", 1) + 1
        own = {"PBS_NODENUM": str(hosts.index(nodes[place])), "PBS_TASKNUM": str(job.attributes["tasks"])}
        if "PBS_VNODENUM" in job.environment:
            own["PBS_VNODENUM"] = str(place)
        yield Task(argv=argv, environment=own)
