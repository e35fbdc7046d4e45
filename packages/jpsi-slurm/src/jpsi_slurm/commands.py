"""Builds every Slurm command line with the configured cluster and a clean environment."""

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

# By default Slurm prints local times without their zone, and cuts the list of an array's indices.
_IN_FULL = {"TZ": "UTC0", "SLURM_BITSTR_LEN": "0"}


def slurm(
    site: Site,
    program: str,
    *arguments: str,
    stdin: str | None = None,
    unset: Iterable[str] = (),
    environment: Mapping[str, str] = _IN_FULL,
) -> Command:
    """Return the command that calls one of Slurm's programs for the configured cluster."""
    cluster = site.config.cluster
    chosen = () if cluster is None else (f"--clusters={cluster}",)
    return Command(
        [program, *chosen, *arguments],
        stdin=stdin,
        unset=(*_MISLEADING, *unset),
        environment=environment,
    )
