"""Tests of jobs with several kinds of slots: an executor either declares them, or refuses such jobs."""

from __future__ import annotations

from pathlib import Path

import pytest

from jpsi import InvalidJobException, Job, JobExecutor, JobSpec, JobState
from jpsi.plugin import HeterogeneousResources, ResourceSpecV1
from jpsi_testing.conformance.base import ExecutorTestBase, Gate, Proof, shell

_KINDS = HeterogeneousResources([ResourceSpecV1(cpu_cores_per_process=2), ResourceSpecV1(process_count=2)])


def _job_of_kinds(spec: JobSpec) -> Job:
    spec.resources, spec.launcher = _KINDS, "single"
    return Job(spec)


class ComponentTests(ExecutorTestBase):
    """Tests of `HeterogeneousResources`, and of the capability `heterogeneous`."""

    @pytest.fixture
    def heterogeneous_executor(self, executor: JobExecutor) -> JobExecutor:
        """Return the executor, or skip the test if it refuses such jobs."""
        if not executor.system.capabilities.heterogeneous:
            pytest.skip("its capabilities are for one kind of slot")
        return executor

    def test_slots_of_several_kinds_are_refused_without_the_capability(self, executor: JobExecutor) -> None:
        if executor.system.capabilities.heterogeneous:
            pytest.skip("it takes them")
        job = _job_of_kinds(JobSpec("/bin/true"))

        with pytest.raises(InvalidJobException, match="gives a job one kind of slot"):
            executor.submit(job)

        assert job.status.state is JobState.NEW

    def test_a_job_with_slots_of_several_kinds_runs_once(
        self, heterogeneous_executor: JobExecutor, tmp_path: Path
    ) -> None:
        proof = Proof(tmp_path / "proof")
        job = _job_of_kinds(proof.job(3))

        heterogeneous_executor.submit(job)

        status = self.end(job)
        assert (status.state, status.exit_code, proof.runs) == (JobState.FAILED, 3, 1)

    def test_each_slot_of_every_kind_has_its_node_in_a_file(
        self, heterogeneous_executor: JobExecutor, tmp_path: Path
    ) -> None:
        node_file = tmp_path / "nodes"
        job = _job_of_kinds(shell('cat "$JPSI_NODEFILE" >"$1"', node_file))

        heterogeneous_executor.submit(job)

        assert self.end(job).state is JobState.COMPLETED
        _, second, third = node_file.read_text().split()
        assert second == third

    def test_a_job_with_slots_of_several_kinds_is_cancelled(
        self, heterogeneous_executor: JobExecutor, tmp_path: Path
    ) -> None:
        job = _job_of_kinds(Gate(tmp_path / "gate").job())
        heterogeneous_executor.submit(job)
        self.active(job)

        job.cancel()

        status = self.end(job)
        assert (status.state, status.evidence is None) == (JobState.CANCELED, False)

    def test_a_job_with_slots_of_several_kinds_is_attached_to(
        self, heterogeneous_executor: JobExecutor, tmp_path: Path
    ) -> None:
        gate = Gate(tmp_path / "gate")
        job, same = _job_of_kinds(gate.job()), Job()
        heterogeneous_executor.submit(job)
        assert job.native_id is not None

        heterogeneous_executor.attach(same, job.native_id)
        gate.open()

        assert self.end(same).state is self.end(job).state is JobState.COMPLETED
