"""The fake of Slurm: its commands over a fake batch system, after recordings of Slurm 22.05.

Tests and `jpsi fake` run jobs on the fake, without a real Slurm.
"""

from __future__ import annotations

from collections.abc import Mapping

from jpsi.plugin import CommandResult
from jpsi_testing.fake import CommandFunction

from .control import scancel, scontrol, sinfo
from .listing import sacct, squeue
from .srun import srun
from .submit import sbatch

#: The commands by name.
commands: Mapping[str, CommandFunction] = {
    "sbatch": sbatch,
    "squeue": squeue,
    "sacct": sacct,
    "scancel": scancel,
    "scontrol": scontrol,
    "sinfo": sinfo,
    "srun": srun,
}

_NO_CONTACT = "Unable to contact slurm controller (connect failure)"
_UNREACHABLE = {
    "sbatch": (1, f"sbatch: error: Batch job submission failed: {_NO_CONTACT}\n"),
    "squeue": (1, f"slurm_load_jobs error: {_NO_CONTACT}\n"),
    "sacct": (1, "sacct: error: Problem talking to the database: Connection refused\n"),
    "scancel": (8, f"scancel: error: {_NO_CONTACT}\n"),
    "scontrol": (1, f"slurm_load_ctl_conf error: {_NO_CONTACT}\n"),
    "sinfo": (1, f"slurm_load_partitions: {_NO_CONTACT}\n"),
    "srun": (1, f"srun: error: Unable to allocate resources: {_NO_CONTACT}\n"),
}


def unreachable(command: str) -> CommandResult:
    """Return the output of a command while slurmctld and slurmdbd are down."""
    returncode, stderr = _UNREACHABLE[command]
    return CommandResult(returncode=returncode, stderr=stderr)
