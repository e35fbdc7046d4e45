"""Conformance of the executor `slurm` with files on a remote host, over the fake Slurm."""

from __future__ import annotations

from pathlib import Path

import pytest

from jpsi_slurm import hooks
from jpsi_slurm.config import SlurmConfig
from jpsi_testing import ExecutorConformance, RemoteTransport


class TestRemoteSlurm(ExecutorConformance):
    executor_name = "slurm"
    is_remote = True
    fake_system = "slurm"
    submit_command = "sbatch"
    config_class = SlurmConfig
    plugin = hooks

    @pytest.fixture(autouse=True)
    def _remote_host(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state here"))
        monkeypatch.setattr(type(self), "url", RemoteTransport(tmp_path / "remote home").url)
