"""Queries squeue for the states of jobs and for jobs by tag, and parses its output.

A native id alone does not identify a job, as Slurm reuses them. Each row therefore has the job's comment,
which ends with the tag. The elements of an array have the array's comment.

squeue does not mark the end of its output. A query for one job, one array or all of the user's jobs costs
slurmctld little, so the command calls squeue twice, for the ids alone and then for the rows in the opposite
order: if squeue printed only a part, the two lists differ. A query for several jobs calls squeue once, as
slurmctld lists every job of the cluster for it, and the shell prints a final line if squeue succeeded. The
parser then notices cut rows and output lost after squeue, but not whole rows that squeue itself left out.
Such a snapshot is no proof that a job is gone. A query for that job alone is: in it Slurm states that it has
no such job.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from jpsi.plugin import Command, CommandResult, Observation, Site, hookimpl
from jpsi.plugin.kit import ids_by_tag

from ..commands import slurm_command
from ..native_ids import arrays_of, parent_id
from .listing import SEPARATOR, columns_option, list_once_command, list_twice_command, parse_listing
from .observations import decode_wait_status, observe_row

# squeue(1): --Format. The text after a colon ends the field, whatever its length (Slurm 20.02 and later). The
# comment may be any text of the user's, and comes last.
_COLUMNS = {
    "displayed_id": "JobArrayID",
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
_FORM = f"--Format={{}}:{SEPARATOR}"
_TAG_COLUMNS = {name: _COLUMNS[name] for name in ("displayed_id", "comment")}
# Include finished jobs and jobs in hidden partitions; pending elements of an array share one line
_ALL_JOBS = ("--all", "--states=all")
_OWN_JOBS = "--me"
# squeue's message, with exit code 1, if it was queried for one job only and does not know it
_UNKNOWN_JOB = "Invalid job id specified"


@hookimpl
def query(native_ids: Sequence[str] | None, site: Site) -> Command:
    """Return the squeue command for these jobs, or for all jobs of the user if None."""
    if native_ids is None:
        return _query_twice(site, _COLUMNS, _OWN_JOBS)
    selection = f"--jobs={','.join(native_ids)}"
    if _is_single_job(native_ids):
        return _query_twice(site, _COLUMNS, selection)
    columns = columns_option(_FORM, _COLUMNS.values(), 2)
    return list_once_command(slurm_command(site, "squeue", columns, *_ALL_JOBS, selection))


@hookimpl
def parse_status(result: CommandResult, native_ids: Sequence[str] | None) -> Mapping[str, Observation]:
    """Return an Observation of each job in squeue's output.

    Raises:
        SubmitException: the output is incomplete, or lacks the one job that was queried.
    """
    if result.returncode == 1 and _UNKNOWN_JOB in result.stderr and _is_single_job(native_ids):
        return dict.fromkeys(native_ids or (), Observation.denied(_UNKNOWN_JOB))
    is_listed_twice = native_ids is None or _is_single_job(native_ids)
    rows = parse_listing(result, _COLUMNS, is_listed_twice=is_listed_twice)
    if not rows and _is_single_job(native_ids):
        # if squeue did not know the job, it would print that
        raise result.no_answer
    observations: dict[str, Observation] = {}
    components: dict[str, Observation] = {}
    for row in rows:
        names = row.native_ids if native_ids is None else row.all_ids
        observed = dict.fromkeys(names, observe_row(row, decode_wait_status(row.exit_code)))
        observations |= observed
        if "+" in row.displayed_id:
            components[row.displayed_id] = observed[row.native_ids[0]]
    unlisted = _observe_unlisted_elements(observations, native_ids or ()) if is_listed_twice else {}
    return observations | _merge_component_nodes(observations, components) | unlisted


def _is_single_job(native_ids: Sequence[str] | None) -> bool:
    """Return True if the query is for one job or one array; elements are queried by their array."""
    return native_ids is not None and len({parent_id(native_id) for native_id in native_ids}) == 1


def _merge_component_nodes(
    observations: Mapping[str, Observation], components: Mapping[str, Observation]
) -> dict[str, Observation]:
    """Return the heterogeneous jobs, each with the nodes of all its components in their order."""
    nodes: dict[str, tuple[str, ...]] = {}
    for name in sorted(components, key=lambda it: int(it.partition("+")[2])):
        nodes[parent_id(name)] = (*nodes.get(parent_id(name), ()), *components[name].nodes)
    return {
        job: attrs.evolve(observations[job], nodes=it) for job, it in nodes.items() if job in observations
    }


def _observe_unlisted_elements(
    observations: Mapping[str, Observation], native_ids: Sequence[str]
) -> dict[str, Observation]:
    """Return Observations of elements that squeue does not list, derived from their array's own row.

    An array gets a row without indices once no element is pending any more, if some elements were cancelled
    before they started; those have no row of their own. While other elements are pending, no row mentions a
    cancelled one. An element that ran and that Slurm has since forgotten has no row either, so that `ran` is
    None.
    """
    ended = {
        name: attrs.evolve(observation, ran=None)
        for name, observation in observations.items()
        if "_" not in name and observation.final
    }
    return {
        name: ended[array]
        for element, array in arrays_of(native_ids).items()
        if array in ended
        for name in (array, element)
        if name == array or name not in observations
    }


@hookimpl
def find(site: Site) -> Command:
    """Return the command that lists the user's jobs with their comments, which end with the tags."""
    return _query_twice(site, _TAG_COLUMNS, _OWN_JOBS)


@hookimpl
def parse_find(result: CommandResult, tags: Sequence[str]) -> Mapping[str, str]:
    """Return the native ids of the jobs that carry the tags.

    Raises:
        SubmitException: the output is incomplete, so that a job that it lacks may exist.
    """
    # An element has the tag of its array.
    rows = parse_listing(result, _TAG_COLUMNS, is_listed_twice=True)
    return ids_by_tag(((row.comment, parent_id(row.displayed_id)) for row in rows), tags)


def _query_twice(site: Site, columns: Mapping[str, str], selection: str) -> Command:
    """Return the command that lists the ids of jobs and then, in the opposite order, their rows."""
    command = slurm_command(site, "squeue", *_ALL_JOBS, selection)
    return list_twice_command(command, _FORM, columns, ids_order="--sort=-i", rows_order="--sort=i")
