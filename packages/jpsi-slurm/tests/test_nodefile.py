"""The node of each process, as the job itself derives it from Slurm's variables."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from jpsi.plugin import JobSpec, ResourceSpecV1
from jpsi_slurm.sbatch import nodes

SHELLS = [found for name in ("dash", "bash") if (found := shutil.which(name))]
# The output of `scontrol show hostnames`, one name on a line
HOSTNAMES = (
    "#!/bin/sh\n[ \"$1 $2 $3\" = 'show hostnames node[01-03]' ] && printf '%s\\n' node01 node02 node03\n"
)


def run_nodes(
    shell: str, directory: Path, resources: ResourceSpecV1 | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    scontrol = directory / "scontrol"
    scontrol.write_text(HOSTNAMES)
    scontrol.chmod(0o755)
    environment = {"PATH": f"{directory}:/usr/bin:/bin", **variables}
    text = "\n".join(nodes(JobSpec("/bin/true", resources=resources)))
    return subprocess.run([shell, "-c", text], env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("names", "tasks", "expected"),
    [
        ("node01", "1", ["node01"]),
        ("node01", "4", ["node01"] * 4),
        ("node[01-03]", "2(x3)", ["node01", "node01", "node02", "node02", "node03", "node03"]),
        ("node[01-03]", "2(x2),1", ["node01", "node01", "node02", "node02", "node03"]),
        ("node[01-03]", "3,1(x2)", ["node01", "node01", "node01", "node02", "node03"]),
    ],
)
def test_each_task_has_its_node(
    shell: str, tmp_path: Path, names: str, tasks: str, expected: list[str]
) -> None:
    done = run_nodes(shell, tmp_path, SLURM_JOB_NODELIST=names, SLURM_TASKS_PER_NODE=tasks)

    assert (done.stdout.split(), done.stderr, done.returncode) == (expected, "", 0)


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("resources", "tasks", "expected"),
    [
        (ResourceSpecV1.uneven(process_count=7, processes_per_node=3), "3(x3)", [3, 3, 1]),
        (ResourceSpecV1.uneven(process_count=4, node_count=3), "2(x3)", [2, 1, 1]),
        (ResourceSpecV1.uneven(process_count=2, processes_per_node=4), "4", [2, 0, 0]),
        (ResourceSpecV1(process_count=6, node_count=3), "2(x3)", [2, 2, 2]),
        (ResourceSpecV1(process_count=4), "1,2,1", [1, 2, 1]),
    ],
    ids=str,
)
def test_slurm_reports_too_many_tasks_on_uneven_nodes(
    shell: str, tmp_path: Path, resources: ResourceSpecV1, tasks: str, expected: list[int]
) -> None:
    done = run_nodes(shell, tmp_path, resources, SLURM_JOB_NODELIST="node[01-03]", SLURM_TASKS_PER_NODE=tasks)

    assert [done.stdout.split().count(f"node{it:02d}") for it in (1, 2, 3)] == expected


@pytest.mark.parametrize("shell", SHELLS)
def test_missing_variables_are_an_error(shell: str, tmp_path: Path) -> None:
    for variables in ({}, {"SLURM_JOB_NODELIST": "a"}, {"SLURM_JOB_NODELIST": "b[1-2]"}):
        done = run_nodes(shell, tmp_path, **variables)

        assert (done.stdout, done.returncode != 0) == ("", True)
