"""Asking squeue for the states of jobs and for jobs by their tag, and reading its answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import attrs

from jpsi.plugin import Command, CommandResult, Observation, Site, hookimpl, tagged

from .commands import slurm
from .exits import End, end_of_wait_status
from .ids import by_array, named, of_unclear, whole
from .observing import observed
from .rows import SEPARATOR, rows

# squeue(1): --Format. What stands behind a colon ends the field, whatever its length (Slurm 20.02 and
# later). Nothing here is the user's to choose.
_COLUMNS = {
    "shown": "JobArrayID",
    "number": "JobID",
    "state": "State",
    "exit_code": "exit_code",
    "restarts": "RestartCnt",
    "submitted": "SubmitTime",
    "started": "StartTime",
    "ended": "EndTime",
    "nodes": "NodeList",
    "reason": "Reason",
}
# Jobs in hidden partitions and finished ones too; elements of an array that wait are one line
_WHATEVER = ("--noheader", "--all", "--states=all")
# What squeue says, with code 1, if the one job that it was asked for is unknown.
_UNKNOWN_JOB = "Invalid job id"


@hookimpl
def query(native_ids: Sequence[str] | None, site: Site) -> Command:
    """The command that asks for these jobs, or for all of the user's."""
    which = "--me" if native_ids is None else f"--jobs={','.join(native_ids)}"
    return slurm(site, "squeue", *_WHATEVER, _format(_COLUMNS.values()), which)


@hookimpl
def parse_status(result: CommandResult, native_ids: Sequence[str] | None) -> Mapping[str, Observation]:
    """What squeue said about each job; a line that is none of a job's costs no other its place."""
    if result.returncode == 1 and _UNKNOWN_JOB in result.stderr:
        return {}
    found: dict[str, Observation] = {}
    components: dict[str, Observation] = {}
    for row in rows(result.checked().stdout, _COLUMNS):
        names = row.jobs if native_ids is None else row.names
        seen = dict.fromkeys(names, observed(row, _end(row.exit_code)))
        found |= seen
        if "+" in row.shown:
            components[row.shown] = seen[row.jobs[0]]
    return found | _on_all_nodes(found, components) | _never_started(found, native_ids or ())


def _on_all_nodes(
    seen: Mapping[str, Observation], components: Mapping[str, Observation]
) -> dict[str, Observation]:
    """Heterogeneous jobs, each with the nodes of all its components in their order."""
    nodes: dict[str, tuple[str, ...]] = {}
    for name in sorted(components, key=lambda it: int(it.partition("+")[2])):
        nodes[whole(name)] = (*nodes.get(whole(name), ()), *components[name].nodes)
    return {job: attrs.evolve(seen[job], nodes=it) for job, it in nodes.items() if job in seen}


def _never_started(seen: Mapping[str, Observation], native_ids: Iterable[str]) -> dict[str, Observation]:
    """Elements that are not mentioned, of arrays that are: what became of an array tells of them.

    An array has a line of its own, without indices, once no element waits any more, if some were cancelled
    before they started; these have no other. While others wait, nothing tells of one that was cancelled. Nor
    does one have a line that ran and that Slurm has forgotten since: whether it ran is not known.
    """
    found: dict[str, Observation] = {}
    ended = {name for name, observation in seen.items() if "_" not in name and observation.final}
    for array, elements in by_array(native_ids).items() if ended else ():
        if array in ended:
            unclear = attrs.evolve(seen[array], ran=None)
            found[array] = unclear
            found.update((native_id, unclear) for native_id in elements.values() if native_id not in seen)
    return found


def _end(exit_code: str) -> End:
    return end_of_wait_status(int(exit_code)) if exit_code.isdecimal() else End()


@hookimpl
def find(site: Site) -> Command:
    """The command that lists the user's jobs with their comments, at whose ends the tags are."""
    return slurm(site, "squeue", *_WHATEVER, _format(["JobArrayID", "Comment"]), "--me")


@hookimpl
def parse_find(result: CommandResult, tags: Sequence[str]) -> Mapping[str, str]:
    """The native ids of the jobs that carry the tags."""
    lines = (line.partition(SEPARATOR) for line in result.checked().stdout.splitlines())
    # The tag of an element is its array's.
    jobs = ((text, whole(name)) for name, _, text in lines if any(named(name)) or of_unclear(name))
    return tagged(((text.removesuffix(SEPARATOR), native_id) for text, native_id in jobs), tags)


def _format(fields: Iterable[str]) -> str:
    return "--Format=" + ",".join(f"{field}:{SEPARATOR}" for field in fields)
