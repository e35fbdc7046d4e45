"""Conformance of the executor `pilot` with the engine Flux, over the fake Flux."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jpsi.plugin import ExecutorConfig
from jpsi_pilot import hooks
from jpsi_pilot.config import PilotConfig
from jpsi_testing import ExecutorConformance
from jpsi_testing.fake import on_path
from pilot_support import shared_agent, sharing_config


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield the directory of the agent of all tests, with a fake Flux on PATH."""
    with on_path("flux") as flux, shared_agent(tmp_path_factory.mktemp("agent")) as agent:
        flux.slots = 8
        yield agent


class TestPilotsOfFlux(ExecutorConformance):
    executor_name = "pilot"
    config_class = PilotConfig
    plugin = hooks
    unknown_id = "aaaaaaaa-999999"
    # a pilot has no list with names
    ignored_attributes = ("name",)

    @pytest.fixture
    def config(self, work_directory: Path, agent: Path) -> Iterator[ExecutorConfig]:
        with sharing_config(agent, work_directory, "flux") as config:
            yield config
