"""A real Slurm with two nodes, on which workflows run; `nox -s e2e_jobspec` starts it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from jobspec_support import fake_programs
from jpsi_testing.long_option import pytest_addoption, pytest_collection_modifyitems, pytest_configure

# pytest collects them here
__all__ = ["pytest_addoption", "pytest_collection_modifyitems", "pytest_configure"]

#: The target of tests: Slurm with short poll intervals.
TARGET = "nodes"
_CONFIGURATION = """\
targets:
  nodes:
    executor: slurm
    config:
      work_directory: {folder}
      grace: 5s
      longest_interval: 2s
"""


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """Yield the output of fake programs on PATH in place of those of the examples; write a configuration."""
    home = tmp_path / "home"
    (tmp_path / "config" / "jpsi").mkdir(parents=True)
    home.mkdir()
    text = _CONFIGURATION.format(folder=tmp_path / "slurm")
    (tmp_path / "config" / "jpsi" / "config.yaml").write_text(text)
    monkeypatch.setenv("PATH", f"{fake_programs(tmp_path)}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("LOG", str(tmp_path / "log"))
    for name in ("STATE", "CONFIG", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    return lambda: (tmp_path / "log").read_text().splitlines()
