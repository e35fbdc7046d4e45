"""Conformance of the executor `lsf`, over the fake LSF 10.1 and the fake volclava 2.2."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest

from jpsi import HeterogeneousResources, Job, JobExecutor, JobSpec, JobState, ResourceSpecV1
from jpsi_lsf import hooks
from jpsi_lsf.config import LsfConfig
from jpsi_lsf.directives import legal_name
from jpsi_testing import ExecutorConformance


class TestLsf(ExecutorConformance):
    executor_name = "lsf"
    fake_system = "lsf"
    submit_command = "bsub"
    config_class = LsfConfig
    plugin = hooks
    directives = ("#BSUB -J evil", "#BSUB -q nowhere")

    def native_name(self, name: str) -> str:
        return legal_name(name)

    def test_each_node_of_a_component_is_named_for_each_of_its_processes(
        self, executor: JobExecutor, tmp_path: Path
    ) -> None:
        if not executor.system.capabilities.heterogeneous:
            pytest.skip("it has slots of one kind")
        node_names = tmp_path / "nodes"
        kinds = [ResourceSpecV1(cpu_cores_per_process=2), ResourceSpecV1(node_count=2, processes_per_node=2)]
        job = Job(
            JobSpec("/bin/sh", ["-c", 'cat "$JPSI_NODEFILE" >"$1"', "sh", str(node_names)], launcher="single")
        )
        assert job.spec is not None
        job.spec.resources = HeterogeneousResources(kinds)

        executor.submit(job)

        assert self.end(job).state is JobState.COMPLETED
        assert node_names.read_text().split() == ["node01", "node02", "node02", "node03", "node03"]


class TestVolclava(TestLsf):
    fake_system = "volclava"
    #: As the README says for volclava.
    settings: ClassVar = {
        "memory_unit": "MB",
        "cores_as_slots": True,
        "orphan_termination": False,
        "compound_requirements": False,
    }
