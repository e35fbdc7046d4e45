"""Fixtures that tests of several packages share: a state directory of their own, and an executor `local`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import jpsi


@pytest.fixture(autouse=True)
def state_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state directory of the test's own, so that no test sees the user's; no configuration either."""
    state = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path / "site-config"))
    monkeypatch.delenv("JPSI_CONFIG", raising=False)
    monkeypatch.delenv("JPSI_PLUGIN_PATH", raising=False)
    return state


@pytest.fixture
def no_launchers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hides the package jpsi-launchers, where it is installed, behind one of that name that has nothing."""
    folder = tmp_path / "hiding" / "jpsi_launchers-0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: jpsi-launchers\nVersion: 0\n")
    monkeypatch.syspath_prepend(folder.parent)


@pytest.fixture
def config(state_home: Path) -> jpsi.ExecutorConfig:
    return jpsi.ExecutorConfig(work_directory=state_home / "work", kill_delay=timedelta(seconds=0.2))


@pytest.fixture
def executor(config: jpsi.ExecutorConfig) -> Iterator[jpsi.JobExecutor]:
    with jpsi.JobExecutor.get_instance("local", config=config) as executor:
        yield executor
