"""The documents of the language, each run to its end on a real Slurm with two nodes."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import TARGET
from example_runs import SystemSize, begun_tasks, check_ended, check_order, runnable
from jobspec_support import INVALID, VALID, drive_run, example
from jpsi_jobspec.planning import Kind

Log = Callable[[], list[str]]
#: Two nodes with eight cores each, and fewer GPUs than some documents request.
NODES = SystemSize(nodes=2, slots=4, replicas=4, nodes_of_a_task=2)
#: The short form's documents: dependencies, replicas in one allocation, and groups.
SHORT = {"00-spack-and-ior", "07-count", "08-replicas", "16-services-mended", "17-nested"}


@pytest.mark.parametrize(
    "name", [pytest.param(it, marks=[] if it in SHORT else [pytest.mark.long]) for it in VALID]
)
def test_a_document_of_the_language_runs_to_its_end(name: str, tmp_path: Path, log: Log) -> None:
    """The tasks ran as often and in the order that the document says, on the right nodes."""
    journal = drive_run(runnable(name, NODES, tmp_path), TARGET, tmp_path)

    check_ended(journal)
    check_order(name, NODES, log())
    home = tmp_path / ("pennant" if name == "14-cwd" else "home")
    assert {directory for _, directory in begun_tasks(log(), "directory")} <= {str(home)}
    groups = {it.id for it in journal.plan.entries if it.kind is Kind.ALLOCATION}
    jobs = {job for task, job in begun_tasks(log(), "job") if task.partition("/")[0] in groups}
    assert len(jobs) == len(groups)
    if name in {"09-one-command", "11-requires-of-a-resource"}:
        nodes = [node for _, node in begun_tasks(log(), "node")]
        assert nodes.count("node01") == nodes.count("node02") == len(nodes) / 2


@pytest.mark.parametrize("name", sorted(INVALID))
def test_an_invalid_document_is_reported_with_a_position_and_not_submitted(
    name: str, tmp_path: Path, log: Log
) -> None:
    (tmp_path / "flow.yaml").write_text(example(name))

    run = workflow(tmp_path, "run", "-x", TARGET)

    assert (run.returncode, log()) == (2, [])
    assert re.search(r"^jpsi: flow\.yaml:\d+:\d+: JS0", run.stderr, re.MULTILINE)


def workflow(folder: Path, command: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run a command on the document of a folder."""
    words = [sys.executable, "-m", "jpsi_cli", "workflow", command, *options, "flow.yaml"]
    return subprocess.run(words, check=False, cwd=folder, capture_output=True, text=True)


def test_dependents_of_a_failure_never_run_and_leave_the_queue(tmp_path: Path, log: Log) -> None:
    (tmp_path / "flow.yaml").write_text(
        "version: 1\nresources: {r: {type: core, count: 1}}\ntasks:\n"
        "- {name: bad, command: [sh, -c, 'sleep 3; exit 4'], resources: r}\n"
        "- {name: never, command: ior, resources: r, depends_on: [bad]}\n"
        "- {name: neither, command: ior, resources: r, depends_on: [never]}\n"
        "- {name: mend, command: spack, resources: r, depends_on: [{name: bad, when: failed}]}\n"
    )

    run = workflow(tmp_path, "run", "-x", TARGET)

    assert run.returncode == 4
    assert [task for task, _ in begun_tasks(log(), "job")] == ["mend"]
    states = {it.split()[1]: it for it in workflow(tmp_path, "status").stdout.splitlines()}
    assert all("CANCELED" in states[it] and "dependency_failed" in states[it] for it in ("never", "neither"))
    queue = ["squeue", "--noheader", "--me", "--format=%i %r"]
    waiting = subprocess.run(queue, check=True, capture_output=True, text=True).stdout
    assert "DependencyNeverSatisfied" not in waiting
