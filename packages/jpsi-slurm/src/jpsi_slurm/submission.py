"""Handing a job over to sbatch, and finding the job's id in what sbatch printed."""

from __future__ import annotations

import re

from jpsi.plugin import RANK_VARIABLES, Command, JobSpec, ResourceSpecV1, Script, Site

from .commands import slurm

# sbatch(1) and srun(1), INPUT ENVIRONMENT VARIABLES: what the user has set for other jobs, and would beat
# directives; OUTPUT ENVIRONMENT VARIABLES: what a surrounding job leaves. All of SLURM_* but for SLURM_CONF,
# SLURM_JWT and SLURM_SACK*, by which Slurm is reached, and SLURM_MPI_TYPE, without which ranks may not find
# each other.
_NOT_THIS_JOBS = (
    "SBATCH_*",
    *(f"SLURM_{letter}*" for letter in "ABDEFGHIKLNOPQRTUVWXYZ"),
    *("SLURM_CL*", "SLURM_COM*", "SLURM_CONS*", "SLURM_CONT*", "SLURM_COR*", "SLURM_CP*", "SLURM_CR*"),
    *("SLURM_JO*", "SLURM_ME*"),
    *("SLURM_SC*", "SLURM_SE*", "SLURM_SH*", "SLURM_SI*", "SLURM_SP*", "SLURM_SR*", "SLURM_ST*", "SLURM_SU*"),
    "SLURMD_*",
    "SRUN_*",
    *RANK_VARIABLES,
)

# What --parsable prints, and what it replaces, should a site's wrapper take it away
_ID = re.compile(r"(?:Submitted batch job )?([0-9]+)(?:;[^\s;]+| on cluster \S+)?\Z")


def submit(script: Script, spec: JobSpec, site: Site) -> Command:
    """The command that submits a script, which it reads from standard input."""
    return slurm(
        site,
        "sbatch",
        "--parsable",
        stdin=script.text,
        unset=_NOT_THIS_JOBS,
        environment=_job_environment(spec),
    )


def native_id(output: str) -> str:
    r"""The job's id in what sbatch printed, whatever else stands around it.

    >>> native_id("Welcome to cluster c.\n4711;c\n")
    '4711'

    Raises:
        ValueError: there is no id in it, or more than one line looks like one.
    """
    found = {match[1] for line in output.splitlines() if (match := _ID.match(line.strip()))}
    if len(found) != 1:
        what = "no job id" if not found else f"several job ids ({', '.join(sorted(found))})"
        msg = f"{what} in the answer of sbatch: {output.strip()[:500]!r}"
        raise ValueError(msg)
    return found.pop()


def _job_environment(spec: JobSpec) -> dict[str, str]:
    """What the job finds in its environment, since it gets that of sbatch."""
    resources = spec.resources
    if not isinstance(resources, ResourceSpecV1) or resources.cpu_cores_per_process is None:
        return {}
    # srun of Slurm 22.05 to 23.02 gives its tasks one CPU each unless this is set
    return {"SRUN_CPUS_PER_TASK": str(resources.cpu_cores_per_process)}
