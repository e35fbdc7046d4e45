"""The shell text that prints the nodes of a job's processes, run by real shells."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from jpsi.plugin import HeterogeneousResources, JobAttributes, JobSpec, ResourceSpecV1
from jpsi_lsf import hooks
from lsf_support import site


def _printed(environment: dict[str, str], spec: JobSpec, **config: Any) -> list[str]:
    text = "set -u\n" + "\n".join(hooks.nodes(spec, site(**config)))
    environment = {"PATH": "/usr/bin:/bin", **environment}
    done = subprocess.run(
        ["/bin/sh", "-c", text], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_a_file_has_the_node_of_each_slot(tmp_path: Path) -> None:
    file = tmp_path / "host file"
    file.write_text("n1\nn1\nn2\nn2\n")
    environment = {"LSB_DJOB_HOSTFILE": str(file), "LSB_MCPU_HOSTS": "other 9 "}

    assert _printed(environment, JobSpec("x")) == ["n1", "n1", "n2", "n2"]


@pytest.mark.parametrize("environment", [{}, {"LSB_DJOB_HOSTFILE": "/no/such/file"}])
def test_without_the_host_file_the_host_list_is_used(environment: dict[str, str]) -> None:
    assert _printed({**environment, "LSB_MCPU_HOSTS": "n1 2 n2 1 "}, JobSpec("x")) == ["n1", "n1", "n2"]


def test_a_process_of_several_slots_is_one_line() -> None:
    spec = JobSpec("x", resources=ResourceSpecV1(node_count=2, processes_per_node=2, cpu_cores_per_process=3))
    environment = {"LSB_MCPU_HOSTS": "n1 6 n2 6 "}

    assert _printed(environment, spec, cores_as_slots=True) == ["n1", "n1", "n2", "n2"]


def test_slots_of_several_kinds_have_their_lines_kind_by_kind() -> None:
    kinds = [ResourceSpecV1(cpu_cores_per_process=3), ResourceSpecV1(node_count=2, processes_per_node=2)]
    spec = JobSpec("x", resources=HeterogeneousResources(kinds))

    assert _printed({"LSB_MCPU_HOSTS": "n1 1 n2 2 n3 2 "}, spec) == ["n1", "n2", "n2", "n3", "n3"]
    slots = {"LSB_MCPU_HOSTS": "n1 3 n2 2 n3 2 "}
    assert _printed(slots, spec, cores_as_slots=True) == ["n1", "n2", "n2", "n3", "n3"]


def test_without_host_variables_no_nodes_are_printed() -> None:
    assert _printed({}, JobSpec("x")) == []


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({"process_count": 2}, ["n1", "n2"]),
        ({"process_count": 3}, ["n1", "n1", "n2"]),
        ({"process_count": 4, "processes_per_node": 2}, ["n1", "n1", "n2", "n2"]),
        ({"process_count": 9, "processes_per_node": 3}, ["n1", "n1", "n1", "n2", "n2", "n2"]),
    ],
    ids=str,
)
def test_the_node_that_launches_a_job_runs_no_process(
    tmp_path: Path, resources: dict[str, Any], expected: list[str]
) -> None:
    """If jobs get whole nodes, LSF lists the launching node before all their cores."""
    file = tmp_path / "hosts"
    file.write_text("batch1\n" + 42 * "n1\n" + 42 * "n2\n")
    attributes = JobAttributes(custom_attributes={"lsf.nnodes": 2})
    spec = JobSpec("x", resources=ResourceSpecV1.uneven(**resources), attributes=attributes)

    assert _printed({"LSB_DJOB_HOSTFILE": str(file)}, spec) == expected
    assert _printed({}, spec) == []
