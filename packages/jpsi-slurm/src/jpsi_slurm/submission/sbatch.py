"""Builds the sbatch command and parses the native id from its output."""

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
from jpsi.plugin.kit import require_one_id

from ..commands import slurm_command
from ..sbatch_options import CUSTOM

# sbatch(1) and srun(1), INPUT ENVIRONMENT VARIABLES: settings of the user for other jobs, which would
# override directives; OUTPUT ENVIRONMENT VARIABLES: those of a surrounding job. These are all of SLURM_*
# except SLURM_CONF, SLURM_JWT and SLURM_SACK*, which clients need to reach Slurm, and SLURM_MPI_TYPE, without
# which ranks may not find each other.
_INHERITED_VARIABLES = (
    "SBATCH_*",
    *(f"SLURM_{letter}*" for letter in "ABDEFGHIKLNOPQRTUVWXYZ"),
    *("SLURM_CL*", "SLURM_COM*", "SLURM_CONS*", "SLURM_CONT*", "SLURM_COR*", "SLURM_CP*", "SLURM_CR*"),
    *("SLURM_JO*", "SLURM_ME*"),
    *("SLURM_SC*", "SLURM_SE*", "SLURM_SH*", "SLURM_SI*", "SLURM_SP*", "SLURM_SR*", "SLURM_ST*", "SLURM_SU*"),
    "SLURMD_*",
    "SRUN_*",
    *RANK_VARIABLES,
)

# The output with --parsable, and without it, as a site's wrapper may remove the option
_ID = re.compile(
    r"^[ \t]*(?:Submitted batch job )?([0-9]+)(?:;[^\s;]+| on cluster \S+)?[ \t]*\r?$", re.MULTILINE
)


@hookimpl
def submit(script: Script, spec: JobSpec, context: SubmitContext) -> Command:
    """Return the sbatch command for a script, which sbatch reads from standard input."""
    # srun has one such variable for all components; the launcher passes the cores of each to srun
    cores = None if len(components(spec.resources)) > 1 else resources(spec).cpu_cores_per_process
    return slurm_command(
        context.site,
        "sbatch",
        "--parsable",
        # The script has the same option; the accounting keeps this command line, which ends with the tag.
        f"--comment={CUSTOM.merged({'comment': context.tag}, spec)['comment']}",
        stdin=script.text,
        unset=_INHERITED_VARIABLES,
        # The job inherits sbatch's environment. srun of Slurm 22.05 to 23.02 gives each task one CPU unless
        # this variable is set.
        environment={} if cores is None else {"SRUN_CPUS_PER_TASK": str(cores)},
    )


@hookimpl
def parse_submit(result: CommandResult) -> str:
    """Return the job's native id from sbatch's output, which may contain other text."""
    return require_one_id(_ID.findall(result.stdout), result.stdout)
