"""Conformance tests of a job's resources: the node file, and heterogeneous resources."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import pytest

from jpsi import InvalidJobException, Job, JobExecutor, JobSpec, JobState
from jpsi.plugin import BatchConfig, HeterogeneousResources, ResourceSpecV1
from jpsi_testing.conformance.base import ExecutorTestBase, Gate, Proof, require_room, shell
from jpsi_testing.plugin_directory import PluginDirectory

# Runs the command of a job once, however many processes the job has: these tests do not look at processes.
_LAUNCHER = """
from jpsi.plugin import ShellLine, hookimpl

@hookimpl
def launch():
    return [ShellLine('exec "$@"')]
"""

#: The resources of a job, and the numbers of its processes on each node; an empty list is any layout.
_LAYOUTS: dict[str, tuple[ResourceSpecV1, list[list[int]]]] = {
    "processes": (ResourceSpecV1(process_count=3), []),
    "one node": (ResourceSpecV1(node_count=1, process_count=3), [[3]]),
    "two nodes": (ResourceSpecV1(node_count=2, processes_per_node=2), [[2, 2]]),
    "uneven nodes": (ResourceSpecV1.uneven(process_count=3, processes_per_node=2), [[2, 1]]),
    "a short node": (ResourceSpecV1.uneven(process_count=4, processes_per_node=3), [[3, 1], [2, 2]]),
    "a node with room": (ResourceSpecV1.uneven(process_count=2, processes_per_node=4), [[2]]),
    "uneven processes": (ResourceSpecV1.uneven(process_count=3, node_count=2), [[2, 1]]),
    "cores": (ResourceSpecV1(node_count=1, process_count=2, cpu_cores_per_process=2), [[2]]),
}


_KINDS = HeterogeneousResources([ResourceSpecV1(cpu_cores_per_process=2), ResourceSpecV1(process_count=2)])


def _job_of_kinds(spec: JobSpec) -> Job:
    spec.resources, spec.launcher = _KINDS, "single"
    return Job(spec)


class NodeTests(ExecutorTestBase):
    """Tests of the node file, which `JPSI_NODEFILE` and `PSIJ_NODEFILE` name."""

    @pytest.fixture
    def lead(self, plugin_directory: PluginDirectory) -> str:
        """Return the name of a launcher that runs the command on the first node only."""
        plugin_directory.add(
            "jpsi-lead",
            entry_points={"jpsi.launchers": {"lead": "jpsi_lead"}},
            files={"jpsi_lead.py": _LAUNCHER},
        )
        return "lead"

    @pytest.mark.clause("resources-nodes")
    @pytest.mark.parametrize("layout_name", _LAYOUTS)
    def test_each_process_has_its_node_in_a_file(
        self,
        lead: str,
        executor: JobExecutor,
        tmp_path: Path,
        node_cores: Sequence[int] | None,
        layout_name: str,
    ) -> None:
        """`JPSI_NODEFILE` has a line for each process."""
        resources, layouts = _LAYOUTS[layout_name]
        require_room(resources, node_cores)

        found = self.nodes(executor, tmp_path, resources=resources, launcher=lead)

        names = [name for name, _ in groupby(found)]
        assert len(found) == resources.computed_process_count
        assert len(names) == len(set(names)), "they are grouped by node"
        layout = [len(list(it)) for _, it in groupby(found)]
        assert not layouts or layout in layouts, (
            f"the numbers of processes on each node should be {' or '.join(map(str, layouts))}; "
            f"the node file has {layout}"
        )

    def test_one_process_has_its_node_in_a_file(self, executor: JobExecutor, tmp_path: Path) -> None:
        """`JPSI_NODEFILE` has one line, also if the job asks for no resources."""
        if not issubclass(self.config_class, BatchConfig):
            pytest.skip("one process of this machine has no such file")

        (node,) = self.nodes(executor, tmp_path)

        assert node

    def nodes(
        self,
        executor: JobExecutor,
        directory: Path,
        *,
        resources: ResourceSpecV1 | None = None,
        launcher: str | None = None,
    ) -> list[str]:
        """Return the node file's lines in a job with these resources; skip a test whose job is refused."""
        files = directory / "jpsi", directory / "psij"
        text = 'cat "$JPSI_NODEFILE" >"$1"; cat "$PSIJ_NODEFILE" >"$2"'
        job = Job(shell(text, *files, resources=resources, launcher=launcher))
        try:
            executor.submit(job)
        except InvalidJobException as e:
            pytest.skip(f"the executor refuses such a request: {e}")
        assert self.end(job).state is JobState.COMPLETED
        ours, theirs = (it.read_text().splitlines() for it in files)
        assert ours == theirs
        return ours


class ComponentTests(ExecutorTestBase):
    """Tests of `HeterogeneousResources`, and of the capability `heterogeneous`."""

    @pytest.fixture
    def heterogeneous_executor(self, executor: JobExecutor, node_cores: Sequence[int] | None) -> JobExecutor:
        """Return the executor, or skip the test if it refuses such jobs or has no room for them."""
        if not executor.system.capabilities.heterogeneous:
            pytest.skip("its capabilities are for one kind of slot")
        require_room(_KINDS, node_cores)
        return executor

    def test_slots_of_several_kinds_are_refused_without_the_capability(self, executor: JobExecutor) -> None:
        """Such a job is invalid unless the backend declares `heterogeneous`."""
        if executor.system.capabilities.heterogeneous:
            pytest.skip("it takes them")
        job = _job_of_kinds(JobSpec("/bin/true"))

        with pytest.raises(InvalidJobException, match="gives a job one kind of slot"):
            executor.submit(job)

        assert job.status.state is JobState.NEW

    def test_a_job_with_slots_of_several_kinds_runs_once(
        self, heterogeneous_executor: JobExecutor, tmp_path: Path
    ) -> None:
        """The command runs once, and the job has its exit code."""
        proof = Proof(tmp_path / "proof")
        job = _job_of_kinds(proof.job(3))

        heterogeneous_executor.submit(job)

        status = self.end(job)
        assert (status.state, status.exit_code, proof.runs) == (JobState.FAILED, 3, 1)

    def test_each_slot_of_every_kind_has_its_node_in_a_file(
        self, heterogeneous_executor: JobExecutor, tmp_path: Path
    ) -> None:
        """`JPSI_NODEFILE` has a line for each slot of each kind."""
        node_file = tmp_path / "nodes"
        job = _job_of_kinds(shell('cat "$JPSI_NODEFILE" >"$1"', node_file))

        heterogeneous_executor.submit(job)

        assert self.end(job).state is JobState.COMPLETED
        _, second, third = node_file.read_text().split()
        assert second == third

    def test_a_job_with_slots_of_several_kinds_is_cancelled(
        self, heterogeneous_executor: JobExecutor, tmp_path: Path
    ) -> None:
        """The job is CANCELED, and its status names the evidence."""
        job = _job_of_kinds(Gate(tmp_path / "gate").job())
        heterogeneous_executor.submit(job)
        self.active(job)

        job.cancel()

        status = self.end(job)
        assert (status.state, status.evidence is None) == (JobState.CANCELED, False)

    def test_a_job_with_slots_of_several_kinds_is_attached_to(
        self, heterogeneous_executor: JobExecutor, tmp_path: Path
    ) -> None:
        """A second executor attaches it by its native id and gets its exit code."""
        gate = Gate(tmp_path / "gate")
        job, same = _job_of_kinds(gate.job()), Job()
        heterogeneous_executor.submit(job)
        assert job.native_id is not None

        heterogeneous_executor.attach(same, job.native_id)
        gate.open()

        assert self.end(same).state is self.end(job).state is JobState.COMPLETED
