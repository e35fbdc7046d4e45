"""The executor `slurm` keeps the contract on a real Slurm that is reached by ssh, on files of both."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from jpsi import JobExecutor, JobSpec, escape
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

    def test_the_environment_is_inherited_or_not(
        self, executor: JobExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What a job inherits is what a login over there has."""
        monkeypatch.setenv("FROM_OUTSIDE", "inherited")
        text = 'echo "${SSH_CONNECTION:+login},$FROM_OUTSIDE,$GIVEN" >"$1"'
        for inherits in (True, False):
            arguments = ["-c", escape(text), "sh", str(tmp_path / str(inherits))]
            spec = JobSpec("/bin/sh", arguments, environment={"GIVEN": "a"}, inherit_environment=inherits)
            assert self.run(executor, spec).exit_code == 0

        assert (tmp_path / "True").read_text() == "login,,a\n"
        assert (tmp_path / "False").read_text() == ",,a\n"

    def cancel_outside(self, native_id: str, scheduler: FakeScheduler | None) -> None:
        """Cancel a job with scancel."""
        subprocess.run(["scancel", native_id], check=True)
