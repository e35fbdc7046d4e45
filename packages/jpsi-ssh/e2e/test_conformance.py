"""The executor `slurm` keeps the contract on a real Slurm that is reached by ssh, on files of both."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from jpsi.fakes import FakeScheduler
from jpsi.testing import ExecutorConformance
from jpsi_slurm import SlurmConfig

pytestmark = pytest.mark.skipif(shutil.which("sbatch") is None, reason="there is no sbatch on PATH")


class TestSlurm(ExecutorConformance):
    """Every test of the class that needs no fault made to order."""

    executor_name = "slurm"
    url = "ssh://far"
    config_class = SlurmConfig
    unknown_id = "99999999"
    directives = ("#SBATCH --job-name=evil", "#SBATCH --partition=nowhere")

    @pytest.fixture(autouse=True)
    def _connected(self, runtime: object) -> None:
        """Each test makes a connection of its own."""

    def cancel_outside(self, native_id: str, scheduler: FakeScheduler | None) -> None:
        """Cancel a job with scancel."""
        subprocess.run(["scancel", native_id], check=True)
