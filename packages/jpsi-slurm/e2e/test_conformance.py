"""Conformance of the executor `slurm` on a real Slurm."""

from __future__ import annotations

import subprocess

from jpsi_slurm import SlurmConfig
from jpsi_slurm.directives import legal_name
from jpsi_testing import ExecutorConformance
from jpsi_testing.fake import FakeScheduler


class TestSlurm(ExecutorConformance):
    """Every test of the class that needs no injected fault."""

    executor_name = "slurm"
    config_class = SlurmConfig
    unknown_id = "99999999"
    directives = ("#SBATCH --job-name=evil", "#SBATCH --partition=nowhere")

    def native_name(self, name: str) -> str:
        """Return the name that Slurm has of a job."""
        return legal_name(name)

    def cancel_outside(self, native_id: str, scheduler: FakeScheduler | None) -> None:
        """Cancel a job with scancel."""
        subprocess.run(["scancel", native_id], check=True)
