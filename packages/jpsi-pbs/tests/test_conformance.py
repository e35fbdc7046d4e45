"""Conformance of the executors `pbs` and `torque`, over their fakes."""

from __future__ import annotations

from pathlib import Path

from jpsi import HeterogeneousResources, Job, JobExecutor, JobSpec, JobState, ResourceSpecV1
from jpsi_pbs import PbsConfig, openpbs, torque
from jpsi_pbs.job_names import legal_name
from jpsi_testing import ExecutorConformance


class TestPbs(ExecutorConformance):
    executor_name = "pbs"
    fake_system = "pbs"
    submit_command = "qsub"
    config_class = PbsConfig
    plugin = openpbs.hooks
    directives = ("#PBS -N evil", "#PBS -q nowhere", " #PBS -h")

    def native_name(self, name: str) -> str:
        return legal_name(name)

    def test_each_node_of_a_component_is_named_for_each_of_its_processes(
        self, executor: JobExecutor, tmp_path: Path
    ) -> None:
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


class TestTorque(TestPbs):
    executor_name = "torque"
    fake_system = "torque"
    plugin = torque.hooks
