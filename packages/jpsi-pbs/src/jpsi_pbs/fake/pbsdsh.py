"""`pbsdsh` of the fakes of PBS and Torque: every task is a process on this machine.

Tests and `jpsi fake` run jobs on the fake, without a real PBS or Torque.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from jpsi.plugin import CommandResult
from jpsi_testing.fake import (
    Arguments,
    CommandError,
    FakeJob,
    FakeScheduler,
    Invocation,
    Task,
    TaskLaunch,
    parse_letters,
    refuse_if,
)


def slots(scheduler: FakeScheduler, invocation: Invocation) -> Sequence[str]:
    """Return the node of each process of the calling job; none outside of jobs."""
    job = _job(scheduler, invocation)
    return [] if job is None else job.attributes["nodes"]


def pbsdsh(letters: str) -> Callable[[FakeScheduler, Invocation], CommandResult]:
    """Return the command `pbsdsh` with these options, which differ between PBS and Torque."""

    def run(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
        options = parse_letters(invocation.argv, letters)
        job = _job(scheduler, invocation)
        if job is None:
            raise CommandError(1, "pbsdsh: it is not called in a job\n")
        nodes = job.attributes["nodes"]
        try:
            selected = _select_nodes(nodes, options) if options.words else []
        except ValueError as e:
            raise CommandError(1, f"pbsdsh: {e}\n") from e
        refusals = {
            "there is no program to run": not options.words,
            f"there is no such node: the job has {len(nodes)}, counted from 0": not selected,
        }
        refuse_if(refusals, 1, "pbsdsh: {}\n")
        return TaskLaunch(tasks=list(_tasks(job, selected, options.words)), stdin=None)

    return run


def _job(scheduler: FakeScheduler, invocation: Invocation) -> FakeJob | None:
    native_id = invocation.environment.get("PBS_JOBID", "")
    return next((job for job in scheduler.jobs if job.native_id == native_id), None)


def _select_nodes(nodes: Sequence[str], options: Arguments) -> list[int]:
    """Return the indices of the job's processes in whose places the program starts."""
    every = list(range(len(nodes)))
    if "u" in options.values:
        every = [nodes.index(name) for name in dict.fromkeys(nodes)]
    if "h" in options.values:
        every = [slot for slot in every if nodes[slot] == options.last("h")][:1]
    if "n" in options.values:
        every = [slot for slot in every if slot == int(options.last("n"))]
    return every[: int(options.last("c"))] if "c" in options.values else every


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
