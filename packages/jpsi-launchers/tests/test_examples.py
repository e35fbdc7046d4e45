"""The example examples/mpi.py, on this machine and on the fake of Slurm, and the program of the README."""

from __future__ import annotations

import re
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import jpsi
from jpsi_testing.fake import FakeScheduler

MPI = runpy.run_path(str(Path(__file__).parents[3] / "examples/mpi.py"))


def test_four_processes_run_on_this_machine(
    fake_commands: Callable[..., FakeScheduler], capsys: pytest.CaptureFixture[str]
) -> None:
    fake_commands("slurm")

    code = MPI["main"]("local", "multiple", "/bin/sh", "-c", 'echo "$JPSI_RANK"')

    assert code == 0
    assert sorted(capsys.readouterr().out.split()) == ["0", "1", "2", "3"]


def test_eight_processes_are_started_on_two_nodes_of_a_cluster(
    fake_commands: Callable[..., FakeScheduler],
) -> None:
    fake_commands("slurm")

    preview = jpsi.JobExecutor("slurm").preview(jpsi.Job(MPI["spec"]("slurm", "srun", "./program")))

    assert preview.script is not None
    assert {"#SBATCH --nodes=2", "#SBATCH --ntasks=8"} <= {*preview.script.splitlines()}
    (srun,) = (line for line in preview.run.splitlines() if "exec srun" in line)
    assert {"'--ntasks=8'", "'--nodes=2'"} <= {*srun.split()}


def test_the_program_of_the_readme_is_started_by_mpirun(fake_commands: Callable[..., FakeScheduler]) -> None:
    """The nodes of a fake are this machine, so that the job is not run."""
    fake_commands("slurm")
    readme = (Path(__file__).parents[1] / "README.md").read_text()
    (program,) = re.findall(
        r"^```python\n(.*?)executor\.submit\(job\)\n.*?^```$", readme, re.DOTALL | re.MULTILINE
    )
    names: dict[str, Any] = {}

    exec(program, names)
    preview = names["executor"].preview(names["job"])

    assert "#SBATCH --ntasks=32" in preview.script.splitlines()
    assert "mpirun" in preview.run
