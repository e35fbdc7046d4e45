"""Conformance of the executors `pbs` and `torque` on a real system; `nox -s e2e_pbs` runs these tests."""

from __future__ import annotations

import subprocess
import time
from datetime import timedelta
from pathlib import Path

import pytest

from jpsi_pbs import PbsConfig
from jpsi_pbs.job_names import legal_name
from jpsi_testing import ExecutorConformance
from jpsi_testing.fake import FakeScheduler


class TestPbs(ExecutorConformance):
    """Every test of the class that needs no injected fault."""

    executor_name = "pbs"
    config_class = PbsConfig
    unknown_id = "9999999"
    directives = ("#PBS -N evil", "#PBS -q nowhere", "#PBS -h")
    #: qstat's output about a job that its server knows to be running.
    running = "substate = 42"

    @pytest.fixture
    def config(self, work_directory: Path) -> PbsConfig:
        """A busy server takes seconds to answer, and qdel ten seconds to end a job."""
        return PbsConfig(
            work_directory=work_directory,
            grace=timedelta(seconds=15),
            shortest_interval=timedelta(seconds=0.2),
            longest_interval=timedelta(seconds=1),
        )

    @pytest.fixture
    def node_cores(self, cores: list[int]) -> list[int]:
        """Return the cores of each node, so that no test waits for nodes that are not there."""
        return cores

    @pytest.fixture(autouse=True)
    def _require_system(self, server_system: str) -> None:
        if server_system != self.executor_name:
            pytest.skip(f"{server_system} is there, and not {self.executor_name}")

    def native_name(self, name: str) -> str:
        """Return the name with characters replaced that PBS refuses."""
        return legal_name(name)

    def cancel_outside(self, native_id: str, scheduler: FakeScheduler | None) -> None:
        """Cancel a job with qdel once its server knows that it runs; before that, PBS calls it failed."""
        command = ["qstat", "-f", native_id]
        while self.running not in subprocess.run(command, check=True, capture_output=True, text=True).stdout:
            time.sleep(0.5)
        subprocess.run(["qdel", native_id], check=True)


class TestTorque(TestPbs):
    """The same tests on Torque."""

    executor_name = "torque"
    running = "job_state = R"
