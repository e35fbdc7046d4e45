"""Conformance of the executor `gridengine`, over the fake Grid Engine."""

from __future__ import annotations

from typing import ClassVar

import pytest

from jpsi_gridengine import hooks
from jpsi_gridengine.config import GridEngineConfig
from jpsi_testing import ExecutorConformance
from jpsi_testing.fake import FakeScheduler


class TestGridEngine(ExecutorConformance):
    executor_name = "gridengine"
    fake_system = "gridengine"
    submit_command = "qsub"
    config_class = GridEngineConfig
    settings: ClassVar = {"parallel_environment": "mpi-{slots}", "node_environment": "smp"}
    plugin = hooks
    directives = ("#$ -N evil", "#$ -q nowhere")

    def cancel_outside(self, native_id: str, scheduler: FakeScheduler | None) -> None:
        pytest.skip("Grid Engine does not tell jobs that qdel ended from those that something else killed")
