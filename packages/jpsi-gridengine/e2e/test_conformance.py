"""Conformance of the executor `gridengine` on a real Grid Engine."""

from __future__ import annotations

import shutil
from typing import ClassVar

import pytest

from jpsi_gridengine import GridEngineConfig
from jpsi_testing import ExecutorConformance
from jpsi_testing.fake import FakeScheduler

pytestmark = pytest.mark.skipif(shutil.which("qsub") is None, reason="there is no qsub on PATH")


class TestGridEngine(ExecutorConformance):
    """Every test of the class that needs no injected fault."""

    executor_name = "gridengine"
    config_class = GridEngineConfig
    settings: ClassVar = {"node_environment": "smp"}
    unknown_id = "9999998"
    directives = ("#$ -N evil", "#$ -q nowhere")

    def cancel_outside(self, native_id: str, scheduler: FakeScheduler | None) -> None:
        pytest.skip("Grid Engine does not tell jobs that qdel ended from those that something else killed")

    def test_a_cancelled_job_stages_out_files_flagged_for_it(self) -> None:  # type: ignore[override]
        pytest.skip("the queues of ci/gridengine kill what qdel ends before it can bring anything away")
