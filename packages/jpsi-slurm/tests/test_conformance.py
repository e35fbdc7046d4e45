"""Conformance of the executor `slurm`, over the fake Slurm."""

from __future__ import annotations

from jpsi_slurm import hooks
from jpsi_slurm.config import SlurmConfig
from jpsi_slurm.directives import legal_name
from jpsi_testing import ExecutorConformance


class TestSlurm(ExecutorConformance):
    executor_name = "slurm"
    fake_system = "slurm"
    submit_command = "sbatch"
    config_class = SlurmConfig
    plugin = hooks

    def native_name(self, name: str) -> str:
        """Return the name that Slurm has of a job."""
        return legal_name(name)
