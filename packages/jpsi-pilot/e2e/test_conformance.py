"""Conformance of the executor `pilot`: jobs in a pilot that is a job of a real Slurm on two nodes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import pilots
from jpsi.plugin import ExecutorConfig
from jpsi_pilot import hooks
from jpsi_pilot.config import PilotConfig
from jpsi_testing import ExecutorConformance
from pilot_support import end_agent


@pytest.mark.long
class TestPilotsOnSlurm(ExecutorConformance):
    executor_name = "pilot"
    config_class = PilotConfig
    plugin = hooks
    unknown_id = "aaaaaaaa-999999"
    # an agent gives its jobs no names
    ignored_attributes = ("name",)
    timeout_seconds = 240.0

    @pytest.fixture
    def config(self, work_directory: Path) -> Iterator[ExecutorConfig]:
        yield pilots(work_directory)
        end_agent(work_directory / "pilots")
