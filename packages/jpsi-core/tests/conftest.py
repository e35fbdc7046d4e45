"""What every test of the core can ask for."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import jpsi


@pytest.fixture(autouse=True)
def state_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state directory of the test's own, so that no test sees the user's."""
    state = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    return state


@pytest.fixture
def config(state_home: Path) -> jpsi.ExecutorConfig:
    return jpsi.ExecutorConfig(work_directory=state_home / "work", kill_delay=timedelta(seconds=0.2))


@pytest.fixture
def executor(config: jpsi.ExecutorConfig) -> Iterator[jpsi.JobExecutor]:
    with jpsi.JobExecutor.get_instance("local", config=config) as executor:
        yield executor
