"""Fixtures of the tests of jpsi-functions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jpsi_functions import FunctionExecutor
from jpsi_testing.fake import on_path


@pytest.fixture(autouse=True)
def _private_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))


@pytest.fixture
def executor() -> Iterator[FunctionExecutor]:
    """Provide an executor of this machine, which is shut down in the end."""
    with FunctionExecutor("local", max_workers=4) as executor:
        yield executor


@pytest.fixture
def slurm() -> Iterator[None]:
    """Put the commands of a fake Slurm on PATH."""
    with on_path("slurm"):
        yield
