"""Asking squeue for the states of jobs and for jobs by their tag, and reading its answers.

A native id alone proves nothing, so that each row has the job's comment, at whose end its tag is. An array's
comment is that of its elements.

squeue has no word for the end of what it prints. About one job, one array or all of the user's jobs, which
costs slurmctld little, it is asked twice, for the ids alone and then, in the opposite order, for the rows:
where it printed no more than a part, the two differ. About several jobs it is asked once, as slurmctld lists
every job of the cluster for that, and the shell prints a line if squeue has succeeded: what is lost behind
squeue is noticed, and a row that is cut, but not that squeue itself has left out whole rows. Such an answer
is no proof that a job is gone. The one about the job alone is, in which Slurm says in so many words that it
has no such job.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import attrs

from jpsi.plugin import Command, CommandResult, Observation, Site, hookimpl
from jpsi.plugin.kit import tagged

from ..commands import slurm
from ..native_ids import by_array, whole
from .exit_status import End, end_of_wait_status
from .listing import SEPARATOR, doubled, listed_once, listed_twice, read_listing
from .observations import observed

# squeue(1): --Format. What stands behind a colon ends the field, whatever its length (Slurm 20.02 and
# later). The comment is the user's to choose, and comes last.
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
    "comment": "Comment",
}
_TAG_COLUMNS = {name: _COLUMNS[name] for name in ("shown", "comment")}
# Jobs in hidden partitions and finished ones too; elements of an array that wait are one line
_WHATEVER = ("--all", "--states=all")
_MINE = "--me"
# What squeue says, with code 1, if the one job that it was asked for is unknown.
_UNKNOWN_JOB = "Invalid job id specified"


@hookimpl
def query(native_ids: Sequence[str] | None, site: Site) -> Command:
    """The command that asks for these jobs, or for all of the user's."""
    if native_ids is None:
        return _asked_twice(site, _COLUMNS, _MINE)
    which = f"--jobs={','.join(native_ids)}"
    if _is_one(native_ids):
        return _asked_twice(site, _COLUMNS, which)
    return listed_once(slurm(site, "squeue", _format(doubled(_COLUMNS.values())), *_WHATEVER, which))


@hookimpl
def parse_status(result: CommandResult, native_ids: Sequence[str] | None) -> Mapping[str, Observation]:
    """What squeue said about each job.

    Raises:
        SubmitException: the answer is not whole, or says nothing about the one job that it is about.
    """
    if result.returncode == 1 and _UNKNOWN_JOB in result.stderr and _is_one(native_ids):
        return dict.fromkeys(native_ids or (), Observation.denied(_UNKNOWN_JOB))
    is_twice = native_ids is None or _is_one(native_ids)
    rows = read_listing(result, _COLUMNS, is_twice=is_twice)
    if not rows and _is_one(native_ids):
        # of a job that it does not know, it would have said so
        raise result.no_answer
    found: dict[str, Observation] = {}
    components: dict[str, Observation] = {}
    for row in rows:
        names = row.jobs if native_ids is None else row.names
        seen = dict.fromkeys(names, observed(row, _end(row.exit_code)))
        found |= seen
        if "+" in row.shown:
            components[row.shown] = seen[row.jobs[0]]
    never_started = _never_started(found, native_ids or ()) if is_twice else {}
    return found | _on_all_nodes(found, components) | never_started


def _is_one(native_ids: Sequence[str] | None) -> bool:
    """True if one job is asked for, or one array; for elements the engine asks for their array."""
    return native_ids is not None and len({whole(native_id) for native_id in native_ids}) == 1


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
    return _asked_twice(site, _TAG_COLUMNS, _MINE)


@hookimpl
def parse_find(result: CommandResult, tags: Sequence[str]) -> Mapping[str, str]:
    """The native ids of the jobs that carry the tags.

    Raises:
        SubmitException: the answer is not whole, so that a job that is not in it may be there.
    """
    # The tag of an element is its array's.
    rows = read_listing(result, _TAG_COLUMNS, is_twice=True)
    return tagged(((row.comment, whole(row.shown)) for row in rows), tags)


def _asked_twice(site: Site, columns: Mapping[str, str], which: str) -> Command:
    """Return the command that lists the ids of jobs, and then, in the opposite order, the jobs."""
    return listed_twice(
        slurm(site, "squeue", *_WHATEVER, which),
        _format([columns["shown"]]),
        _format(doubled(columns.values())),
        ids_order="--sort=-i",
        rows_order="--sort=i",
    )


def _format(fields: Iterable[str]) -> str:
    return "--Format=" + ",".join(f"{field}:{SEPARATOR}" for field in fields)
