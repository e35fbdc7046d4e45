"""Resource specifications: computed counts, and contradictions."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jpsi.model.errors import InvalidJobException
from jpsi.model.resources import (
    HeterogeneousResources,
    ResourceSpec,
    ResourceSpecV1,
    process_count,
)
from jpsi.model.spec_problems import resource_problems

counts = st.none() | st.integers(1, 50)


def v1(nodes: int | None, processes: int | None, per_node: int | None) -> ResourceSpecV1:
    return ResourceSpecV1.uneven(node_count=nodes, process_count=processes, processes_per_node=per_node)


class ResourceSpecV2(ResourceSpec):
    @property
    def version(self) -> int:
        return 2


@pytest.mark.clause("resources-constructor", "resources-per-node")
@pytest.mark.parametrize(
    ("given", "computed"),
    [
        ((None, None, None), (1, 1, 1)),
        ((4, None, None), (4, 4, 1)),
        ((None, 10, None), (1, 10, 10)),
        ((None, None, 3), (1, 3, 3)),
        ((4, None, 3), (4, 12, 3)),
        ((None, 10, 3), (4, 10, 3)),
        ((None, 9, 3), (3, 9, 3)),
        ((4, 10, None), (4, 10, 3)),
        ((4, 10, 3), (4, 10, 3)),
        ((2, 2, 1), (2, 2, 1)),
    ],
    ids=str,
)
def test_counts_are_computed_from_the_given_ones(
    given: tuple[int | None, int | None, int | None], computed: tuple[int, int, int]
) -> None:
    """Nodes, processes, processes per node; 10 processes at 3 per node need 4 nodes."""
    resources = v1(*given)

    assert computed == (
        resources.computed_node_count,
        resources.computed_process_count,
        resources.computed_processes_per_node,
    )


@given(counts, counts, counts)
def test_computed_counts_are_consistent_or_refused(
    nodes: int | None, processes: int | None, per_node: int | None
) -> None:
    resources = v1(nodes, processes, per_node)

    if not resource_problems(resources):
        n, p = resources.computed_node_count, resources.computed_process_count
        k = resources.computed_processes_per_node
        assert p <= n * k
        assert (n - 1) * (k - 1) < p


@pytest.mark.clause("resources-exclusive-counts")
@given(counts, counts, counts)
def test_computed_counts_equal_the_given_ones(
    nodes: int | None, processes: int | None, per_node: int | None
) -> None:
    resources = v1(nodes, processes, per_node)

    assert nodes in (None, resources.computed_node_count)
    assert processes in (None, resources.computed_process_count)
    assert per_node in (None, resources.computed_processes_per_node)


@pytest.mark.clause("resources-per-node")
@given(counts, counts)
def test_two_counts_never_contradict_each_other_with_per_node(one: int | None, other: int | None) -> None:
    assert resource_problems(v1(one, None, other)) == []
    assert resource_problems(v1(None, one, other)) == []


@pytest.mark.clause("resources-exclusive-counts")
@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ((4, 10, 5), "resources: 10 processes at 5 per node need 2 nodes, but node_count is 4"),
        ((2, 10, 3), "resources: 10 processes at 3 per node need 4 nodes, but node_count is 2"),
        ((4, 3, None), "resources: 3 processes cannot occupy 4 nodes"),
    ],
    ids=str,
)
def test_contradiction_is_named(given: tuple[int, int, int], problem: str) -> None:
    assert resource_problems(v1(*given)) == [problem]


@pytest.mark.clause("resources-exclusive-counts")
@pytest.mark.parametrize(
    ("counts", "problem"),
    [
        ({"process_count": 3, "node_count": 2}, "process_count 3 is no multiple of node_count 2; ResourceSp"),
        (
            {"process_count": 3, "processes_per_node": 2},
            "process_count 3 is no multiple of processes_per_node 2; ResourceSpecV1.uneven() permits nodes",
        ),
        (
            {"process_count": 8, "node_count": 2, "processes_per_node": 2},
            "process_count 8 is not node_count 2 times processes_per_node 2",
        ),
    ],
    ids=str,
)
def test_the_constructor_refuses_a_contradiction(counts: dict[str, int], problem: str) -> None:
    with pytest.raises(InvalidJobException, match=re.escape(problem)):
        ResourceSpecV1(**counts)  # type: ignore[arg-type]  # counts, not a flag


@pytest.mark.parametrize(
    ("nodes", "processes", "per_node"),
    [
        (2, 6, 3),
        (None, 6, 3),
        (3, 6, None),
        (2, None, 2),
        ("2", 3, None),
        (2, "3", None),
        (0, 3, 0),
        (2, -3, None),
    ],
    ids=str,
)
def test_the_constructor_takes_counts_that_agree_and_values_that_are_no_counts(
    nodes: Any, processes: Any, per_node: Any
) -> None:
    """`submit` reports the latter."""
    resources = ResourceSpecV1(node_count=nodes, process_count=processes, processes_per_node=per_node)

    assert (resources.node_count, resources.process_count) == (nodes, processes)


@pytest.mark.clause("example-knobs")
def test_counts_may_be_assigned_in_any_order() -> None:
    """The specification's example assigns 10 processes and 3 per node."""
    resources = ResourceSpecV1(node_count=2, processes_per_node=3)

    resources.process_count = 10
    resources.node_count = None

    assert resource_problems(resources) == []
    assert resources == ResourceSpecV1.uneven(process_count=10, processes_per_node=3)


FEW_BYTES = "4 is a number of bytes, too few for any job: 4 GiB are 4294967296, 4 MiB are 4194304"


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("node_count", 0, "resources.node_count must be at least 1, not 0"),
        ("process_count", -1, "resources.process_count must be at least 1, not -1"),
        ("processes_per_node", 0, "resources.processes_per_node must be at least 1, not 0"),
        ("cpu_cores_per_process", 0, "resources.cpu_cores_per_process must be at least 1, not 0"),
        ("gpu_cores_per_process", -1, "resources.gpu_cores_per_process must be at least 0, not -1"),
        ("memory", 0, "resources.memory must be at least 1, not 0"),
        ("memory", 4, f"resources.memory: {FEW_BYTES}"),
        ("node_count", "4", "resources.node_count must be a whole number, not '4'"),
        (
            "memory",
            "4G",
            "resources.memory must be a whole number of bytes, such as 4294967296, not '4G'",
        ),
        ("node_count", 4.0, "resources.node_count must be a whole number, not 4.0"),
        ("node_count", True, "resources.node_count must be a whole number, not True"),
        ("exclusive_node_use", 1, "resources.exclusive_node_use must be True or False, not 1"),
        ("exclusive_node_use", None, "resources.exclusive_node_use must be True or False, not None"),
    ],
    ids=lambda value: repr(value) if not isinstance(value, str) or len(value) < 30 else "",
)
def test_wrong_value_is_named(name: str, value: object, problem: str) -> None:
    resources = ResourceSpecV1()

    setattr(resources, name, value)

    assert resource_problems(resources) == [problem]


def test_memory_is_given_once() -> None:
    resources = ResourceSpecV1(memory=5 << 20, memory_per_cpu=1 << 20, memory_per_gpu=2 << 20)

    assert resource_problems(resources) == [
        "resources: give only one of memory and memory_per_cpu and memory_per_gpu",
        "resources.memory_per_gpu: the job has no GPUs; set gpu_cores_per_process",
    ]


def test_memory_of_gpus_is_that_of_all_processes() -> None:
    resources = ResourceSpecV1(node_count=2, processes_per_node=3, gpu_cores_per_process=2, memory_per_gpu=5)

    assert (resources.computed_memory, ResourceSpecV1().computed_memory) == (60, None)


def test_no_gpu_and_no_exclusive_node_are_valid() -> None:
    assert resource_problems(ResourceSpecV1(gpu_cores_per_process=0, exclusive_node_use=False)) == []


def test_every_wrong_value_is_named_at_once() -> None:
    resources = ResourceSpecV1(node_count=0, process_count=-2, memory=0)

    assert [
        problem.partition(" ")[0].removeprefix("resources.") for problem in resource_problems(resources)
    ] == ["node_count", "process_count", "memory"]


@pytest.mark.parametrize(
    ("resources", "problem"),
    [
        ({"node_count": 1}, "resources must be a ResourceSpec, not dict"),
        (ResourceSpecV2(), "resources of version 2 are not supported; use ResourceSpecV1"),
    ],
    ids=["no resources", "another version"],
)
def test_an_unknown_version_is_named(resources: object, problem: str) -> None:
    assert resource_problems(resources) == [problem]


def test_mistyped_name_raises() -> None:
    with pytest.raises(AttributeError):
        ResourceSpecV1().nodes_count = 1  # type: ignore[attr-defined]  # what is tested


@pytest.mark.clause("resources-abstract")
def test_resource_spec_is_abstract() -> None:
    with pytest.raises(TypeError, match="abstract"):
        ResourceSpec()  # type: ignore[abstract]  # what is tested


@pytest.mark.clause("resources-version")
def test_version_is_1() -> None:
    assert ResourceSpecV1().version == 1


def test_counts_of_several_kinds_are_sums() -> None:
    few = ResourceSpecV1(node_count=2, processes_per_node=3, cpu_cores_per_process=4)
    resources = HeterogeneousResources([few, ResourceSpecV1(process_count=5), ResourceSpecV1()])

    assert process_count(resources) == 12


def test_every_wrong_component_is_named() -> None:
    parts = [ResourceSpecV1(process_count=0, memory=0), v1(4, 3, None)]

    assert resource_problems(HeterogeneousResources([*parts, ResourceSpecV1()])) == [
        "resources.components[0].process_count must be at least 1, not 0",
        "resources.components[0].memory must be at least 1, not 0",
        "resources.components[1]: 3 processes cannot occupy 4 nodes",
    ]


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ([], "resources.components must be at least 2, not 0"),
        ([ResourceSpecV1()], "resources.components must be at least 2, not 1"),
        (None, "resources.components must be a list of ResourceSpecV1, not None"),
        (
            [ResourceSpecV1(), HeterogeneousResources([ResourceSpecV1(), ResourceSpecV1()])],
            "resources.components[1] must be a ResourceSpecV1, not HeterogeneousResources",
        ),
    ],
    ids=["none", "one", "no list", "nested"],
)
def test_a_value_that_is_no_component_is_named(parts: Any, problem: str) -> None:
    assert resource_problems(HeterogeneousResources(parts)) == [problem]


def test_a_list_that_is_assigned_is_a_tuple() -> None:
    resources = HeterogeneousResources([])

    resources.components = [ResourceSpecV1(), ResourceSpecV1()]  # type: ignore[assignment]  # what is tested

    assert resources == HeterogeneousResources((ResourceSpecV1(), ResourceSpecV1()))
    assert resources.version == 1
