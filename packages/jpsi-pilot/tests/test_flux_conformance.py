"""Conformance of the executor `pilot` with the engine Flux, over the fake Flux."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from jpsi.plugin import ExecutorConfig
from jpsi_pilot import hooks
from jpsi_pilot.config import PilotConfig
from jpsi_testing import ExecutorConformance
from jpsi_testing.fake import on_path
from pilot_support import cancel_jobs, share, shared_agent


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
        share(agent, work_directory)
        yield PilotConfig(
            work_directory=work_directory,
            engine="flux",
            cores_per_node=8,
            idle_time=timedelta(seconds=30),
            kill_delay=timedelta(seconds=0.5),
            shortest_interval=timedelta(seconds=0.1),
            longest_interval=timedelta(seconds=0.3),
            grace=timedelta(seconds=1),
        )
        cancel_jobs(agent)
