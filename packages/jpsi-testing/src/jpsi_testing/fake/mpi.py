"""Implements `mpirun` and `mpiexec` of a fake batch system: they start the ranks on this machine.

A real mpirun could not reach the nodes of a fake. These commands accept the options of Open MPI 4 that
scripts use. A program that calls MPI_Init finds no other ranks.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from jpsi.plugin import CommandResult
from jpsi_testing.fake.commands import CommandFunction
from jpsi_testing.fake.invocation import Invocation
from jpsi_testing.fake.scheduler import FakeScheduler
from jpsi_testing.fake.tasks import Task, TaskLaunch

#: Returns the node of each slot of the job that calls a command; none outside of jobs.
Slots = Callable[[FakeScheduler, Invocation], Sequence[str]]

_VERSION = "{} (Open MPI) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/\n"
# Options of mpirun(1), Open MPI 4, for the number of ranks.
_COUNT = frozenset({"n", "np", "c"})
# Options for the hostfile.
_HOSTFILE = frozenset({"hostfile", "machinefile"})
# Options without effect on one machine, each with the number of its values.
_IGNORED = {
    **dict.fromkeys(("allow-run-as-root", "bind-to-core", "bind-to-none", "nooversubscribe"), 0),
    **dict.fromkeys(("q", "quiet", "report-bindings", "v", "verbose"), 0),
    **dict.fromkeys(("bind-to", "map-by", "rank-by", "stdin"), 1),
    **dict.fromkeys(("gmca", "mca"), 2),
}
# The exit code for wrong arguments.
_REFUSED = 213


def mpirun_commands(slots: Slots) -> Mapping[str, CommandFunction]:
    """Return the commands that start ranks in the slots of a job, by name."""

    def mpirun(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
        name, *words = invocation.argv
        if words and words[0] in {"--version", "-V"}:
            return CommandResult(returncode=0, stdout=_VERSION.format(name))
        try:
            return _launch(words, slots(scheduler, invocation))
        except (OSError, ValueError) as e:
            return CommandResult(returncode=_REFUSED, stderr=f"{name}: error: {e}\n")

    return {"mpiexec": mpirun, "mpirun": mpirun}


def _launch(words: list[str], slots: Sequence[str]) -> TaskLaunch:
    count, is_oversubscribed = None, False
    exported: dict[str, str] = {}
    while words and words[0].startswith("-"):
        option = words.pop(0).lstrip("-")
        if option in _COUNT:
            count = int(_value(option, words))
        elif option in _HOSTFILE:
            slots = list(_parse_hostfile(Path(_value(option, words)).read_text(encoding="utf-8")))
        elif option == "x":
            name, is_set, value = _value(option, words).partition("=")
            exported.update({name: value} if is_set else {})
        elif option == "oversubscribe":
            is_oversubscribed = True
        elif option in _IGNORED:
            del words[: _IGNORED[option]]
        else:
            raise ValueError(f"this fake mpirun has no option {option}")
    if not words:
        raise ValueError("no program to run is named")
    if slots and count is not None and count > len(slots) and not is_oversubscribed:
        raise ValueError(
            f"there are not enough slots available in the system: {count} were requested, {len(slots)} exist"
        )
    return TaskLaunch(tasks=_tasks(words, _place_ranks(slots, count), exported), ends_on_failure=True)


def _place_ranks(slots: Sequence[str], count: int | None) -> list[str]:
    """Return the node of each rank: all slots once, and then again from the first."""
    slots = slots or ["localhost"] * (count or 1)
    return list(itertools.islice(itertools.cycle(slots), len(slots) if count is None else count))


def _value(option: str, words: list[str]) -> str:
    if not words:
        raise ValueError(f"the option {option} needs a value")
    return words.pop(0)


def _parse_hostfile(hostfile: str) -> Iterator[str]:
    """Yield the node of each slot in a hostfile of lines such as `node1 slots=2`."""
    for line in hostfile.splitlines():
        name, *settings = line.partition("#")[0].split() or [""]
        number = dict(it.partition("=")[::2] for it in settings).get("slots", "1")
        yield from [name] * int(number) if name else []


def _tasks(argv: Sequence[str], nodes: Sequence[str], exported: Mapping[str, str]) -> Iterator[Task]:
    """Yield the ranks, with the variables that Open MPI documents, and PMIX_RANK."""
    ranks_before: Counter[str] = Counter()
    ranks_on_node = Counter(nodes)
    for rank, node in enumerate(nodes):
        variables = {
            "OMPI_COMM_WORLD_LOCAL_RANK": str(ranks_before[node]),
            "OMPI_COMM_WORLD_LOCAL_SIZE": str(ranks_on_node[node]),
            "OMPI_COMM_WORLD_NODE_RANK": str(ranks_before[node]),
            "OMPI_COMM_WORLD_RANK": str(rank),
            "OMPI_COMM_WORLD_SIZE": str(len(nodes)),
            "OMPI_UNIVERSE_SIZE": str(len(nodes)),
            "PMIX_RANK": str(rank),
        }
        ranks_before[node] += 1
        yield Task(argv=argv, environment={**exported, **variables})
