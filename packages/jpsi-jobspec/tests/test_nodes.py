"""Groups of several nodes: their tasks run in a pilot that is the allocation."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from jobspec_support import planned
from jpsi_jobspec import journal as journals
from jpsi_jobspec.engines import DASK, FLUX, shortcomings
from jpsi_jobspec.flat import flat
from jpsi_jobspec.journal import Journal
from jpsi_jobspec.nodes import slots_of_nodes, spanning
from jpsi_jobspec.plan import Site
from jpsi_jobspec.room import Room
from jpsi_jobspec.shape import Shape

HEAD = """\
version: 1
resources:
  all: {type: node, count: 2, with: [{type: core, count: 2}]}
  one: {type: core, count: 1}
  node: {type: node, count: 1}
  both: {type: node, count: 2}
groups:
- name: g
  resources: all
  tasks:
"""
SLURM = Site(target="slurm")

Log = Callable[[], list[str]]


def run_inside(text: str, path: Path) -> tuple[int, Journal]:
    """Run a group by itself, on two nodes that are both this machine: `multiple` starts what srun would."""
    file = path / "flow.yaml"
    file.write_text(text)
    journal = journals.create(str(file), text, Site(target="local"), {})
    command = [sys.executable, "-m", "jpsi_jobspec.inside", str(journal.path), "g"]
    done = subprocess.run(command, check=False, stdout=subprocess.DEVNULL, timeout=300)
    (allocation,) = journal.plan.entries
    return done.returncode, journals.inner(journal.path, allocation)


def test_tasks_run_on_all_nodes_and_what_is_local_beside_them(tmp_path: Path, log: Log) -> None:
    # each waits until the others are there, for which one node has no room
    meet = "touch $JPSI_REPLICA; until [ -e 1 -a -e 2 -a -e 3 -a -e 4 ]; do sleep 0.1; done; echo $PPID"
    code, inside = run_inside(
        f"{HEAD}  - {{name: begin, local: true, command: kubectl}}\n"
        "  - {name: serve, local: true, service: true, command: [sleep, infinity]}\n"
        f"  - {{name: meet, command: [sh, -c, '{meet}'], resources: one, replicas: 4}}\n"
        "  - {name: bad, command: [sh, -c, ior; exit 3], resources: node, depends_on: [meet]}\n"
        "  - {name: end, local: true, command: spack}\n",
        tmp_path,
    )

    assert {name: {it.value for it in states} for name, states in inside.states.items()} == {
        "g/begin": {"COMPLETED"},
        "g/serve": {"CANCELED"},
        "g/meet": {"COMPLETED"},
        "g/bad": {"FAILED"},
        "g/end": {"COMPLETED"},
    }
    assert (code, inside.parts["g/bad"][0].exit_code) == (3, 3)
    assert [it.split()[3] for it in log() if it.startswith("begin")] == ["kubectl", "ior", "spack"]


def test_nodes_have_as_many_slots_as_was_asked_for_or_as_the_smallest_of_them_has() -> None:
    assert slots_of_nodes(Shape(nodes=2, slots=4), []) == (2, 2)
    assert slots_of_nodes(Shape(slots=5), []) == (5,)
    assert slots_of_nodes(Shape(slots=5), ["a"] * 5) == (5,)
    assert slots_of_nodes(Shape(slots=5), ["a", "a", "a", "b", "b"]) == (2, 2)


def test_a_task_takes_what_one_node_has_left() -> None:
    """Two nodes with a free core each have no room for what needs two cores on one."""
    text = (
        f"{HEAD}  - {{name: a, command: x, resources: one, replicas: 4}}\n"
        "  - {name: b, command: x, resources: node}\n"
    )
    (allocation,) = planned(text, SLURM).entries
    a, b = flat(allocation)
    room = Room(allocation, (1, 1))

    # one on the first node, two on the second once the first is full
    assert [room.take(a, number) is not None for number in (1, 2, 3)] == [True, True, True]
    room.give_back(a, 1)
    assert room.take(b, 1) is None
    room.give_back(a, 2)
    assert room.take(b, 1) is not None


def test_what_needs_several_nodes_has_room_only_where_something_can_run_it() -> None:
    (allocation,) = planned(f"{HEAD}  - {{name: a, command: x, resources: both}}\n", SLURM).entries
    (entry,) = flat(allocation)

    assert not Room(allocation, (1, 1)).can_ever_have(entry)
    assert Room(allocation, (1, 1), can_span=True).take(entry, 1) is not None
    assert [it.id for it in spanning(allocation)] == ["g/a"]


@pytest.mark.parametrize(
    ("task", "engines", "says"),
    [
        ("resources: one", {DASK}, ""),
        ("resources: one", set(), "has 2 nodes, which its tasks can use only by jpsi-pilot and dask"),
        ("resources: both", {DASK}, "has tasks that need several of its nodes each"),
        ("replicas: 2", {DASK}, "has tasks that need several of its nodes each"),
        ("resources: both", {FLUX}, ""),
        ("local: true", {DASK}, ""),
        ("resources: both|one", {DASK}, ""),
    ],
)
def test_a_group_that_nothing_here_can_run_is_named(task: str, engines: set[str], says: str) -> None:
    plan = planned(f"{HEAD}  - {{name: a, command: x, {task}}}\n", SLURM)

    found = list(shortcomings(plan, frozenset(engines)))

    assert [(name, it.startswith(says)) for name, it, _ in found] == ([("g", True)] if says else [])


def test_a_local_service_takes_no_part_of_its_group() -> None:
    text = f"{HEAD}  - {{name: s, local: true, service: true, command: x}}\n"
    (allocation,) = planned(text, SLURM).entries
    (service,) = flat(allocation)

    assert service.shape is None
