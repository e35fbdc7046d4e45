"""Fakes of the examples' programs, and fake batch systems."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from jobspec_support import Log, Run, fake_programs, run_workflow
from jpsi_testing.fake import FakeScheduler


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """Return a function that reads the output of fake programs on PATH in place of those of the examples."""
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("PATH", f"{fake_programs(tmp_path)}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("LOG", str(tmp_path / "log"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return lambda: (tmp_path / "log").read_text().splitlines()


# Several cores need a parallel environment of the site: this is its name in the fake Grid Engine.
_GRIDENGINE = """\
executors:
  gridengine:
    config: {parallel_environment: "mpi-{slots}", node_environment: smp}
"""


@pytest.fixture
def system(
    request: pytest.FixtureRequest, log: object, tmp_path: Path, fake_commands: Callable[..., FakeScheduler]
) -> str:
    name: str = request.param
    if name != "local":
        fake_commands(name)
    if name == "gridengine":
        (tmp_path / "config" / "jpsi").mkdir(parents=True)
        (tmp_path / "config" / "jpsi" / "config.yaml").write_text(_GRIDENGINE)
    return name


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: Log) -> Run:
    """Return a function that runs a command of `jpsi workflow`: its exit code, output and errors."""
    monkeypatch.chdir(tmp_path)

    return run_workflow
