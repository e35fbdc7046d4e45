"""Fixtures for the shells and benches in which tests run the runner."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from executor_fixtures import config, executor, no_launchers, state_home
from jpsi_engine.runner.claim_and_markers import BatchFrame, ProcessFrame
from runners import RunnerBench

__all__ = ["config", "executor", "no_launchers", "state_home"]


@pytest.fixture(scope="module", params=["sh", "bash"])
def shell(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return /bin/sh of this host, or bash as /bin/sh, as on many clusters, or bash by its own name."""
    name, _, how = request.param.partition(" ")
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"there is no {name} here")
    if how:
        return path
    link = tmp_path_factory.mktemp("bin") / "sh"
    link.symlink_to(path)
    return str(link)


@pytest.fixture(params=[ProcessFrame(), BatchFrame("JOB_ID")], ids=["process", "batch"])
def bench(tmp_path: Path, shell: str, request: pytest.FixtureRequest) -> RunnerBench:
    return RunnerBench(tmp_path, shell, request.param)


@pytest.fixture
def process(tmp_path: Path, shell: str) -> RunnerBench:
    return RunnerBench(tmp_path, shell, ProcessFrame())


@pytest.fixture
def batch(tmp_path: Path, shell: str) -> RunnerBench:
    return RunnerBench(tmp_path, shell, BatchFrame("JOB_ID"))


@pytest.fixture
def simple(tmp_path: Path) -> RunnerBench:
    """Return a bench for tests that do not depend on the shell."""
    return RunnerBench(tmp_path)


@pytest.fixture
def fifo(tmp_path: Path) -> Callable[[str], Path]:
    def make(name: str) -> Path:
        path = tmp_path / name
        os.mkfifo(path)
        return path

    return make
