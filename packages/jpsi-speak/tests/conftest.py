"""Fixtures of the tests of jpsi-speak."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _private_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    # where jobs leave their output
    monkeypatch.chdir(tmp_path)
    for name in ("SLURM_JOB_ID", "SBATCH_PARTITION"):
        monkeypatch.delenv(name, raising=False)
