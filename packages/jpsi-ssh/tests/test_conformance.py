"""The executor `slurm` keeps the contract where its commands run by way of ssh, where files are elsewhere."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from fake_ssh import FakeSsh
from jpsi_slurm import SlurmConfig
from jpsi_testing import ExecutorConformance


class TestSlurm(ExecutorConformance):
    """Every test of the class, over a connection that a test has of its own."""

    executor_name = "slurm"
    url = "ssh://far"
    is_remote = True
    fake_system = "slurm"
    submit_command = "sbatch"
    config_class = SlurmConfig

    @pytest.fixture(autouse=True)
    def _far(self, ssh: FakeSsh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Ssh leads to this machine, with another home directory."""
        home = tmp_path / "far home"
        home.mkdir()
        (ssh.folder / "login").write_text(f"cd {shlex.quote(str(home))}; HOME=$PWD; unset XDG_STATE_HOME\n")
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state here"))
