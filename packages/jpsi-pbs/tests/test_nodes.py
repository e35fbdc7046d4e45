"""The node of each process, as a POSIX shell derives it from the batch system's node file."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import attrs
import pytest

from jpsi.plugin import JobAttributes, JobSpec, ResourceSpecV1
from jpsi_pbs import openpbs, torque
from pbs_support import SITE, site, spec_of_kinds


def _printed(lines: list[Any], nodes: str, tmp_path: Path) -> str:
    file = tmp_path / "nodes of the job"
    file.write_text("".join(f"{name}\n" for name in nodes))
    done = subprocess.run(
        ["sh", "-euc", "\n".join(lines)],
        env={"PATH": "/usr/bin:/bin", "PBS_NODEFILE": str(file)},
        capture_output=True,
        check=True,
        text=True,
    )
    return "".join(done.stdout.split())


@pytest.mark.parametrize(
    ("nodes", "expected"), [("a", "a"), ("aabb", "aabb"), ("abab", "aabb"), ("bacb", "bbac")]
)
def test_a_line_for_each_process_grouped_by_node(nodes: str, expected: str, tmp_path: Path) -> None:
    assert _printed(openpbs.hooks.nodes(), nodes, tmp_path) == expected


@pytest.mark.parametrize(
    ("cores", "nodes", "expected"),
    [(None, "aabb", "aabb"), (1, "aab", "aab"), (2, "aaaabbbb", "aabb"), (3, "aaaaaabbb", "aab")],
)
def test_torque_has_a_line_for_each_core(
    cores: int | None, nodes: str, expected: str, tmp_path: Path
) -> None:
    spec = JobSpec("/bin/true", resources=ResourceSpecV1(cpu_cores_per_process=cores))

    assert _printed(torque.hooks.nodes(spec, SITE), nodes, tmp_path) == expected


def test_surplus_cores_are_ignored(tmp_path: Path) -> None:
    """A queue with default nodes allocates these in addition to `procs` of a user."""
    custom = JobAttributes(custom_attributes={"torque.l.procs": 3})
    spec = JobSpec("/bin/true", resources=ResourceSpecV1(process_count=3), attributes=custom)

    assert _printed(torque.hooks.nodes(spec, SITE), "aabb", tmp_path) == "aab"


@pytest.mark.parametrize(
    ("resources", "nodes", "expected"),
    [
        ({"process_count": 3, "processes_per_node": 2}, "aabb", "aab"),
        ({"process_count": 3, "node_count": 2}, "aabb", "aab"),
        ({"process_count": 5, "processes_per_node": 2, "cpu_cores_per_process": 2}, "aaaabbbbcccc", "aabbc"),
    ],
)
def test_a_node_with_fewer_processes_has_lines_to_spare(
    resources: dict[str, Any], nodes: str, expected: str, tmp_path: Path
) -> None:
    spec = JobSpec("/bin/true", resources=ResourceSpecV1.uneven(**resources))

    assert _printed(torque.hooks.nodes(spec, SITE), nodes, tmp_path) == expected


def test_processes_that_fill_nodes_of_the_configured_size_have_a_line_each(tmp_path: Path) -> None:
    spec = JobSpec("/bin/true", resources=ResourceSpecV1(process_count=5))

    assert _printed(torque.hooks.nodes(spec, site(cores_per_node=3)), "aaabbb", tmp_path) == "aaabb"


def test_slots_of_several_kinds_have_their_lines_kind_by_kind(tmp_path: Path) -> None:
    spec = spec_of_kinds(
        {"cpu_cores_per_process": 3},
        {"node_count": 2, "processes_per_node": 2},
        {"process_count": 2, "cpu_cores_per_process": 2},
    )
    own = attrs.evolve(
        spec, attributes=JobAttributes(custom_attributes={"torque.l.nodes": "1:ppn=3+2:ppn=2"})
    )

    assert _printed(torque.hooks.nodes(spec, SITE), "aaaabbbbccccdddd", tmp_path) == "abbccdd"
    assert _printed(torque.hooks.nodes(own, SITE), "aaabbccdddd", tmp_path) == "abbccdd"
    assert _printed(openpbs.hooks.nodes(), "abbccdd", tmp_path) == "abbccdd"
