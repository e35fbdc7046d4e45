"""The executor `slurm` keeps the contract where its commands run by way of ssh, on files that both see."""

from __future__ import annotations

import pytest

from jpsi.testing import ExecutorConformance
from jpsi_slurm import SlurmConfig
from stand_in import StandIn


class TestSlurm(ExecutorConformance):
    """Every test of the class, over a connection that a test has of its own."""

    executor_name = "slurm"
    url = "ssh://far"
    dialect = "slurm"
    submit_command = "sbatch"
    config_class = SlurmConfig

    @pytest.fixture(autouse=True)
    def _far(self, ssh: StandIn) -> None:
        """Ssh leads to this machine."""
