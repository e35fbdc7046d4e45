"""The four resource graphs and the task counts, and the resources that they stand for."""

from __future__ import annotations

import json

import pytest

from documents import changed, document_problems
from jpsi.document.documents import read_document, write_document
from jpsi.model.resources import ResourceSpecV1
from jpsi.model.spec_problems import problems

GRAPHS = {
    "slot > core": (
        "[{type: slot, label: s, count: 6, with: [{type: core, count: 2}]}]",
        ResourceSpecV1(process_count=6, cpu_cores_per_process=2),
    ),
    "slot > core, with as mapping": (
        "[{type: slot, label: s, count: 6, with: {type: core, count: 2}}]",
        ResourceSpecV1(process_count=6, cpu_cores_per_process=2),
    ),
    "slot > core + gpu": (
        "[{type: slot, label: s, count: 6, with: [{type: core, count: 2}, {type: gpu, count: 1}]}]",
        ResourceSpecV1(process_count=6, cpu_cores_per_process=2, gpu_cores_per_process=1),
    ),
    "slot > gpu + core": (
        "[{type: slot, label: s, count: 6, with: [{type: gpu, count: 1}, {type: core, count: 2}]}]",
        ResourceSpecV1(process_count=6, cpu_cores_per_process=2, gpu_cores_per_process=1),
    ),
    "node > slot > core": (
        "[{type: node, count: 2, with: [{type: slot, label: s, count: 3, with: [{type: core, count: 2}]}]}]",
        ResourceSpecV1(node_count=2, processes_per_node=3, cpu_cores_per_process=2),
    ),
    "node > slot > core, with as mappings": (
        "[{type: node, count: 2, with: {type: slot, label: s, count: 3, with: {type: core, count: 2}}}]",
        ResourceSpecV1(node_count=2, processes_per_node=3, cpu_cores_per_process=2),
    ),
    "node > slot > core + gpu": (
        """
  - type: node
    count: 2
    label: n
    with:
      - type: slot
        label: s
        count: 3
        with:
          - type: core
            count: 2
          - type: gpu
            count: 4
""",
        ResourceSpecV1(node_count=2, processes_per_node=3, cpu_cores_per_process=2, gpu_cores_per_process=4),
    ),
}


@pytest.mark.clause("document-with", "document-slot", "document-graphs")
@pytest.mark.parametrize(("graph", "expected"), GRAPHS.values(), ids=GRAPHS)
def test_four_graphs_are_read(graph: str, expected: ResourceSpecV1) -> None:
    text = (
        f"version: 1\nresources: {graph}\ntasks: [{{command: [a], slot: s, count: {{per_slot: 1}}}}]\n"
        "attributes: {system: {duration: 0}}\n"
    )

    spec = read_document(text)

    assert spec.resources == expected
    assert read_document(write_document(spec)) == spec


def graph_document(nodes: int | None, slots: int, cores: int, gpus: int, count: dict[str, int]) -> str:
    inside = [{"type": "core", "count": cores}, *([{"type": "gpu", "count": gpus}] if gpus else [])]
    slot = {"type": "slot", "label": "s", "count": slots, "with": inside}
    root = slot if nodes is None else {"type": "node", "count": nodes, "with": [slot]}
    task = {"command": ["a"], "slot": "s", "count": count}
    return json.dumps(
        {"version": 1, "resources": [root], "tasks": [task], "attributes": {"system": {"duration": 0}}},
        indent=1,
    )


@pytest.mark.clause("document-tasks-per-slot")
@pytest.mark.parametrize(
    ("graph", "nodes", "processes", "per_node", "cores", "gpus"),
    [
        ((None, 4, 2, 0, {"total": 4}), 1, 4, 4, 2, 0),
        ((None, 4, 2, 4, {"per_slot": 2}), 1, 8, 8, 1, 2),
        ((None, 4, 2, 0, {"total": 8}), 1, 8, 8, 1, 0),
        ((None, 4, 2, 0, {"total": 8, "per_slot": 2}), 1, 8, 8, 1, 0),
        ((2, 3, 2, 2, {"per_slot": 2}), 2, 12, 6, 1, 1),
        ((4, 3, 2, 0, {"total": 10}), 4, 10, 3, 2, 0),
        ((4, 3, 2, 0, {"total": 10, "per_slot": 1}), 4, 10, 3, 2, 0),
        ((4, 2, 1, 0, {"total": 5}), 4, 5, 2, 1, 0),
        ((2, 2, 4, 0, {"total": 7}), 2, 7, 4, 2, 0),
        ((1, 5, 1, 0, {"total": 2}), 1, 2, 5, 1, 0),
    ],
)
def test_counts_follow_from_graph_and_tasks(
    graph: tuple[int | None, int, int, int, dict[str, int]],
    nodes: int,
    processes: int,
    per_node: int,
    cores: int,
    gpus: int,
) -> None:
    spec = read_document(graph_document(*graph))

    resources = spec.resources
    assert isinstance(resources, ResourceSpecV1)
    assert resources.computed_node_count == nodes
    assert resources.computed_process_count == processes
    assert resources.computed_processes_per_node == per_node
    assert resources.cpu_cores_per_process == cores
    assert (resources.gpu_cores_per_process or 0) == gpus
    assert problems(spec) == []
    assert read_document(write_document(spec)) == spec


@pytest.mark.clause("document-graphs")
@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        ((None, 4, 1, 0, {"per_slot": 2}), "2 tasks in a slot do not get equal parts of its 1 cores"),
        ((None, 4, 4, 3, {"per_slot": 2}), "2 tasks in a slot do not get equal parts of its 3 gpus"),
        ((None, 4, 1, 0, {"total": 3}), "3 tasks do not fill 4 slots"),
        ((None, 4, 6, 0, {"total": 10}), "10 tasks do not fill 4 slots"),
        ((4, 3, 1, 0, {"total": 5}), "5 tasks do not fill 12 slots on 4 nodes"),
        ((4, 3, 1, 0, {"total": 3}), "3 tasks do not fill 12 slots on 4 nodes"),
    ],
)
def test_a_graph_that_resources_cannot_express_is_refused(
    graph: tuple[int | None, int, int, int, dict[str, int]], expected: str
) -> None:
    (found,) = document_problems(graph_document(*graph))

    assert found.endswith(f": tasks[0].count: cannot be expressed: {expected}")


@pytest.mark.clause("document-tasks-per-slot", "document-task-count")
def test_per_slot_and_total_must_agree() -> None:
    assert document_problems(changed("per_slot: 1", "{per_slot: 2, total: 4}")) == [
        "12: tasks[0].count: contradicts itself: 4 tasks on 4 slots are not 2 per slot"
    ]
