"""A real Flux whose broker dies, whose answers are wrong, and whose clients die."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from jpsi import JobExecutor
from jpsi_flux import FluxConfig
from jpsi_testing.conformance.real_faults import GRACE, RealFaultTests


class TestFaultsOfFlux(RealFaultTests):
    status_commands = {"flux": "jobs"}  # noqa: RUF012  as the base class has it
    # brokers that lose the first one end their jobs, and a killed one forgets all since it was started
    jobs_outlive_server = False

    @pytest.fixture
    def executor(self, tmp_path: Path) -> Iterator[JobExecutor]:
        config = FluxConfig(
            work_directory=tmp_path / "work",
            shortest_interval=timedelta(seconds=0.5),
            longest_interval=timedelta(seconds=1),
            command_timeout=timedelta(seconds=5),
            grace=timedelta(seconds=GRACE),
        )
        with JobExecutor.get_instance("flux", config=config) as executor:
            yield executor
