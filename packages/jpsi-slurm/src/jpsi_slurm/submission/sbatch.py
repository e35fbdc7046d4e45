"""Handing a job over to sbatch, and finding the job's id in what sbatch printed."""

from __future__ import annotations

import re

from jpsi.plugin import (
    RANK_VARIABLES,
    Command,
    CommandResult,
    JobSpec,
    Script,
    SubmitContext,
    components,
    hookimpl,
    resources,
)
from jpsi.plugin.kit import the_one_id

from ..commands import slurm
from ..options import CUSTOM

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
_ID = re.compile(
    r"^[ \t]*(?:Submitted batch job )?([0-9]+)(?:;[^\s;]+| on cluster \S+)?[ \t]*\r?$", re.MULTILINE
)


@hookimpl
def submit(script: Script, spec: JobSpec, context: SubmitContext) -> Command:
    """The command that submits a script, which it reads from standard input."""
    # srun has one value of it for all components; the launcher tells it the cores of each
    cores = None if len(components(spec.resources)) > 1 else resources(spec).cpu_cores_per_process
    return slurm(
        context.site,
        "sbatch",
        "--parsable",
        # As in the script; the accounting keeps this line, at whose end the tag is.
        f"--comment={CUSTOM.merged({'comment': context.tag}, spec)['comment']}",
        stdin=script.text,
        unset=_NOT_THIS_JOBS,
        # The job gets the environment of sbatch. srun of Slurm 22.05 to 23.02 gives its tasks one CPU each
        # unless this is set.
        environment={} if cores is None else {"SRUN_CPUS_PER_TASK": str(cores)},
    )


@hookimpl
def parse_submit(result: CommandResult) -> str:
    """The job's id in what sbatch printed, whatever else stands around it."""
    return the_one_id(_ID.findall(result.stdout), result.stdout)
