"""The node of each process, as the job itself finds out."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from jpsi_slurm import hooks

SHELLS = [found for name in ("dash", "bash") if (found := shutil.which(name))]
# What `scontrol show hostnames` prints, one on a line
HOSTNAMES = (
    "#!/bin/sh\n[ \"$1 $2 $3\" = 'show hostnames node[01-03]' ] && printf '%s\\n' node01 node02 node03\n"
)


def told(shell: str, directory: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    stand_in = directory / "scontrol"
    stand_in.write_text(HOSTNAMES)
    stand_in.chmod(0o755)
    environment = {"PATH": f"{directory}:/usr/bin:/bin", **variables}
    text = "\n".join(hooks.nodes())
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
    done = told(shell, tmp_path, SLURM_JOB_NODELIST=names, SLURM_TASKS_PER_NODE=tasks)

    assert (done.stdout.split(), done.stderr, done.returncode) == (expected, "", 0)


@pytest.mark.parametrize("shell", SHELLS)
def test_what_slurm_does_not_tell_is_not_made_up(shell: str, tmp_path: Path) -> None:
    for variables in ({}, {"SLURM_JOB_NODELIST": "a"}, {"SLURM_JOB_NODELIST": "b[1-2]"}):
        done = told(shell, tmp_path, **variables)

        assert (done.stdout, done.returncode != 0) == ("", True)
