"""Builds every Slurm command line with the configured cluster and a clean environment.

Without that, environment variables of the user would change the output that jpsi parses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jpsi.plugin import Command, Site

# squeue(1), sacct(1), scancel(1), scontrol(1), sinfo(1): ENVIRONMENT VARIABLES. They choose columns, hide
# jobs, ask questions, or lead to another cluster.
_CLIENT_VARIABLES = (
    "SQUEUE_*",
    "SACCT_*",
    "SCANCEL_*",
    "SCONTROL_*",
    "SINFO_*",
    "SLURM_BITSTR_LEN",
    "SLURM_CLUSTERS",
    "SLURM_DEBUG_FLAGS",
    "SLURM_TIME_FORMAT",
    "SLURM_WORKING_CLUSTER",
)

# By default Slurm prints local times without their zone, and cuts the list of an array's indices.
_ENVIRONMENT = {"TZ": "UTC0", "SLURM_BITSTR_LEN": "0"}


def slurm_command(
    site: Site,
    program: str,
    *arguments: str,
    stdin: str | None = None,
    unset: Iterable[str] = (),
    environment: Mapping[str, str] = _ENVIRONMENT,
) -> Command:
    """Return the command that calls one of Slurm's programs for the configured cluster."""
    cluster = site.config.cluster
    cluster_option = () if cluster is None else (f"--clusters={cluster}",)
    return Command(
        [program, *cluster_option, *arguments],
        stdin=stdin,
        unset=(*_CLIENT_VARIABLES, *unset),
        environment=environment,
    )
