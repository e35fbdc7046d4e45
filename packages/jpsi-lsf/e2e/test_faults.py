"""A real LSF whose server dies, whose answers are wrong, and whose clients die."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import attrs
import pytest
import real_lsf

from jpsi import JobExecutor
from jpsi_testing.conformance.real_faults import GRACE, RealFaultTests


class TestFaultsOfLsf(RealFaultTests):
    status_commands = {"bjobs": "*", "bhist": "*"}  # noqa: RUF012  as the base class has it
    client_settings = real_lsf.settings()
    client_seconds = 0.3

    @pytest.fixture
    def executor(self, tmp_path: Path) -> Iterator[JobExecutor]:
        config = attrs.evolve(
            real_lsf.config(tmp_path / "work"),
            shortest_interval=timedelta(seconds=0.5),
            longest_interval=timedelta(seconds=1),
            command_timeout=timedelta(seconds=5),
            grace=timedelta(seconds=GRACE),
        )
        with JobExecutor.get_instance("lsf", config=config) as executor:
            yield executor
