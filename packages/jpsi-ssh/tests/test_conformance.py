"""The executor `slurm` conforms on a remote host behind ssh.

One backend is enough: hooks do not see where their commands run.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from fake_ssh import FakeSsh
from jpsi_slurm import SlurmConfig
from jpsi_slurm.directives import legal_name
from jpsi_testing import ExecutorConformance


class TestSlurm(ExecutorConformance):
    """All conformance tests, each over its own connection."""

    executor_name = "slurm"
    url = "ssh://cluster"
    is_remote = True
    fake_system = "slurm"
    submit_command = "sbatch"
    config_class = SlurmConfig

    def native_name(self, name: str) -> str:
        """Return the name that Slurm has of a job."""
        return legal_name(name)

    @pytest.fixture(autouse=True)
    def _remote_home(self, ssh: FakeSsh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Give the remote login another home directory."""
        home = tmp_path / "remote home"
        home.mkdir()
        (ssh.folder / "login").write_text(f"cd {shlex.quote(str(home))}; HOME=$PWD; unset XDG_STATE_HOME\n")
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state here"))
