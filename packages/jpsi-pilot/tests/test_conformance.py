"""Conformance of the executor `pilot`: jobs in pilots that are jobs of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jpsi.plugin import ExecutorConfig
from jpsi_pilot import hooks
from jpsi_pilot.config import PilotConfig
from jpsi_testing import ExecutorConformance
from pilot_support import shared_agent, sharing_config


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield the directory of the agent of all tests."""
    with shared_agent(tmp_path_factory.mktemp("agent")) as agent:
        yield agent


class TestLocalPilots(ExecutorConformance):
    executor_name = "pilot"
    config_class = PilotConfig
    plugin = hooks
    unknown_id = "aaaaaaaa-999999"
    # a pilot has no list with names
    ignored_attributes = ("name",)

    @pytest.fixture
    def config(self, work_directory: Path, agent: Path) -> Iterator[ExecutorConfig]:
        with sharing_config(agent, work_directory) as config:
            yield config
