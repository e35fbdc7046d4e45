"""Conformance of the executor `lsf` on the LSF on PATH; skipped without one."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import real_lsf

import jpsi
from jpsi_lsf import LsfConfig
from jpsi_lsf.directives import legal_name
from jpsi_testing import ExecutorConformance
from jpsi_testing.fake import FakeScheduler
from jpsi_testing.strategies import HOSTILE


class TestLsf(ExecutorConformance):
    """Every test of the class that needs no injected fault."""

    executor_name = "lsf"
    config_class = LsfConfig
    unknown_id = "2147483000"
    directives = ("#BSUB -J evil", "#BSUB -q nowhere")
    # bkill waits 10 s between its signals, and mbatchd checks jobs only at intervals.
    timeout_seconds = 300.0

    @pytest.fixture
    def config(self, work_directory: Path) -> LsfConfig:
        return real_lsf.config(work_directory)

    @pytest.fixture
    def node_cores(self, cores: list[int]) -> list[int]:
        """Return the slots of each host, so that no test waits for hosts that are not there."""
        return cores

    def native_name(self, name: str) -> str:
        """Return the name with characters replaced that LSF refuses."""
        return legal_name(name)

    def cancel_outside(self, native_id: str, scheduler: FakeScheduler | None) -> None:
        """Cancel a job with bkill."""
        subprocess.run(["bkill", native_id], check=True)

    def test_lsf_reads_each_name_that_is_accepted(self, executor: jpsi.JobExecutor) -> None:
        """LSF's parser of directives is its own."""
        accepted = 0
        for name in [*HOSTILE, "a#b", "-dash", "star*", "<angle>", "x;y", "(p)"]:
            job = jpsi.Job(jpsi.JobSpec("/bin/true", name=name))
            try:
                executor.submit(job)
            except jpsi.InvalidJobException:
                continue
            command = ["bjobs", "-o", "jobid job_name", "-json", str(job.native_id)]
            listing = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            assert (
                json.loads(listing, strict=False)["RECORDS"][0]["JOB_NAME"] == self.native_name(name)
                or not name
            )
            accepted += 1
        assert accepted > 5
