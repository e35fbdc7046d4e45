"""The one form that every call of a Slurm command has: its cluster, and its environment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jpsi.plugin import Command, Site

# squeue(1), sacct(1), scancel(1), scontrol(1): ENVIRONMENT VARIABLES. They choose columns, hide jobs, ask
# questions, or lead to another cluster.
_MISLEADING = (
    "SQUEUE_*",
    "SACCT_*",
    "SCANCEL_*",
    "SCONTROL_*",
    "SLURM_BITSTR_LEN",
    "SLURM_CLUSTERS",
    "SLURM_DEBUG_FLAGS",
    "SLURM_TIME_FORMAT",
    "SLURM_WORKING_CLUSTER",
)

# Slurm prints local time without saying which, and of the indices of an array no more than so many letters.
_IN_FULL = {"TZ": "UTC0", "SLURM_BITSTR_LEN": "0"}


def slurm(
    site: Site,
    program: str,
    *arguments: str,
    stdin: str | None = None,
    unset: Iterable[str] = (),
    environment: Mapping[str, str] = _IN_FULL,
) -> Command:
    """The command that calls a program of Slurm's for the cluster that is configured."""
    cluster = site.config.cluster
    chosen = () if cluster is None else (f"--clusters={cluster}",)
    return Command(
        [program, *chosen, *arguments],
        stdin=stdin,
        unset=(*_MISLEADING, *unset),
        environment=environment,
    )
