"""The node of each process, as the job itself derives it from Grid Engine's host file."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from jpsi.plugin import JobSpec, ResourceSpecV1
from jpsi_gridengine import hooks

SHELLS = [found for name in ("dash", "bash") if (found := shutil.which(name))]
# sge_pe(5): node, slots, queue, processors
HOSTFILE = "node01 4 all.q@node01 UNDEFINED\nnode02 2 all.q@node02 UNDEFINED\n"


def run_nodes(shell: str, cores: int | None, processes: int = 6, **variables: str) -> list[str]:
    resources = ResourceSpecV1(process_count=processes, cpu_cores_per_process=cores)
    spec = JobSpec("/bin/true", resources=resources)
    text = "\n".join(hooks.nodes(spec))
    environment = {"PATH": "/usr/bin:/bin", **variables}
    return subprocess.run(
        [shell, "-c", text], env=environment, capture_output=True, text=True, check=True
    ).stdout.split()


@pytest.mark.parametrize("shell", SHELLS)
def test_each_slot_is_a_process_of_one_core(shell: str, tmp_path: Path) -> None:
    (tmp_path / "pe hostfile").write_text(HOSTFILE)

    found = run_nodes(shell, None, PE_HOSTFILE=f"{tmp_path}/pe hostfile")

    assert found == ["node01"] * 4 + ["node02"] * 2


@pytest.mark.parametrize("shell", SHELLS)
def test_processes_of_several_cores_have_as_many_slots(shell: str, tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text(HOSTFILE)

    assert run_nodes(shell, 2, PE_HOSTFILE=f"{tmp_path}/hosts") == ["node01", "node01", "node02"]


@pytest.mark.parametrize("shell", SHELLS)
def test_slots_without_a_process_are_not_listed(shell: str, tmp_path: Path) -> None:
    """A user's own parallel environment may have more slots than the job's processes need."""
    (tmp_path / "hosts").write_text(HOSTFILE)

    assert run_nodes(shell, None, 5, PE_HOSTFILE=f"{tmp_path}/hosts") == ["node01"] * 4 + ["node02"]


@pytest.mark.parametrize("shell", SHELLS)
def test_slots_of_one_node_may_come_from_several_queues(shell: str, tmp_path: Path) -> None:
    """The node then has a line for each queue, and one process may have a slot of both."""
    lines = (
        "node01 3 main.q@node01 <NULL>",
        "node02 2 main.q@node02 <NULL>",
        "node01 1 debug.q@node01 <NULL>",
    )
    (tmp_path / "hosts").write_text("".join(f"{line}\n" for line in lines))

    assert run_nodes(shell, 2, PE_HOSTFILE=f"{tmp_path}/hosts") == ["node01", "node01", "node02"]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_job_without_a_parallel_environment_runs_on_its_own_node(shell: str) -> None:
    assert run_nodes(shell, None) == [os.uname().nodename]
