"""A real OAR whose server dies, whose oarstat answers wrongly, and whose clients die."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from jpsi import JobExecutor
from jpsi_oar import OarConfig
from jpsi_testing.conformance.real_faults import GRACE, RealFaultTests

pytestmark = pytest.mark.skipif(shutil.which("oarsub") is None, reason="there is no oarsub on PATH")


class TestFaultsOfOar(RealFaultTests):
    status_commands = {"oarstat": "*"}  # noqa: RUF012  as the base class has it
    # eight jobs run at a time, and OAR takes seconds to start each
    patience = 900.0
    server_jobs = ((50, 20), (6, 6))
    client_rounds = (20, 1)
    client_jobs = 16
    client_settings = {"array_size": 6}  # noqa: RUF012

    @pytest.fixture
    def executor(self, tmp_path: Path) -> Iterator[JobExecutor]:
        config = OarConfig(
            work_directory=tmp_path / "work",
            shortest_interval=timedelta(seconds=0.5),
            longest_interval=timedelta(seconds=1),
            command_timeout=timedelta(seconds=5),
            grace=timedelta(seconds=GRACE),
        )
        with JobExecutor.get_instance("oar", config=config) as executor:
            yield executor
