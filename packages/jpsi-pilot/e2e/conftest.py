"""A real Slurm with two nodes, on which pilots are jobs; `nox -s e2e_pilot` starts it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from jpsi_pilot.config import PilotConfig
from jpsi_testing.long_option import pytest_addoption, pytest_collection_modifyitems, pytest_configure
from pilot_support import end_agent

# pytest collects them here
__all__ = ["pytest_addoption", "pytest_collection_modifyitems", "pytest_configure"]

_TARGETS = """\
targets:
  nodes:
    executor: slurm
    config:
      work_directory: {folder}
      grace: 5s
      longest_interval: 2s
"""


@pytest.fixture
def rounds(pytestconfig: pytest.Config) -> int:
    """Return how often a test repeats what fails only sometimes."""
    return 10 if pytestconfig.getoption("--long") else 1


@pytest.fixture(autouse=True)
def _private_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Configure pilots' targets apart from the user's configuration."""
    for name in ("STATE", "CONFIG", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    folder = tmp_path / "config" / "jpsi"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(_TARGETS.format(folder=tmp_path / "slurm"))


def pilots(work_directory: Path, **changes: Any) -> PilotConfig:
    """Return a configuration with pilots of two nodes of Slurm."""
    quick = {
        "kill_delay": timedelta(seconds=0.5),
        "shortest_interval": timedelta(seconds=0.1),
        "longest_interval": timedelta(seconds=0.3),
        "grace": timedelta(seconds=1),
        "walltime": timedelta(minutes=10),
        "idle_time": timedelta(seconds=30),
    }
    shape = {"nodes_per_pilot": 2, "cores_per_node": 4, "memory_per_node": 2 * 2**30}
    return PilotConfig(work_directory=work_directory, target="nodes", **(quick | shape | changes))


@pytest.fixture
def config(tmp_path: Path) -> Iterator[PilotConfig]:
    """Return a configuration with pilots of two nodes with four cores each."""
    yield pilots(tmp_path / "work")
    end_agent(tmp_path / "work" / "pilots")
