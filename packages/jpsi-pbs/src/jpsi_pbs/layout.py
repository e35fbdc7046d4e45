"""Spreads the processes of a job over nodes, and reads such layouts from the values of options.

`chunks` and `nodes` use it to write the resources of a job, and to read those of a script.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import attrs

from jpsi.plugin import HeterogeneousResources, JobSpec, ResourceSpecV1, components
from jpsi.plugin.kit import Draft, read_count

#: The reason for a request that no field of a spec can express.
NOT_EXPRESSIBLE = "jpsi cannot express it"


class Part(NamedTuple):
    """A number of nodes with the same number of processes each."""

    nodes: int
    processes: int


class Layout(NamedTuple):
    """The layout of one component of a job's resources over nodes."""

    requested: ResourceSpecV1
    #: The nodes in the order of the ranks; None if the batch system chooses their number.
    parts: list[Part] | None


def lay_out(spec: JobSpec) -> list[Layout]:
    """Return the layout of each component of a job.

    If there are several components, each has its own nodes: one node, unless it says how many.
    """
    layouts = [Layout(it, spread_processes(it)) for it in components(spec.resources)]
    if len(layouts) == 1:
        return layouts
    return [Layout(it, parts or [Part(1, it.computed_process_count)]) for it, parts in layouts]


def spread_processes(resources: ResourceSpecV1) -> list[Part] | None:
    """Return the nodes in the order of the ranks; None if the batch system chooses their number.

    >>> spread_processes(ResourceSpecV1.uneven(process_count=10, processes_per_node=3))
    [Part(nodes=3, processes=3), Part(nodes=1, processes=1)]
    >>> spread_processes(ResourceSpecV1.uneven(process_count=10, node_count=4))
    [Part(nodes=2, processes=3), Part(nodes=2, processes=2)]
    """
    total = resources.computed_process_count
    if resources.processes_per_node is not None:
        full, remainder = divmod(total, resources.processes_per_node)
        parts = [Part(full, resources.processes_per_node), Part(1, remainder)]
    elif resources.node_count is not None:
        least, more = divmod(total, resources.node_count)
        parts = [Part(more, least + 1), Part(resources.node_count - more, least)]
    elif total == 1:
        parts = [Part(1, 1)]
    else:
        return None
    return [part for part in parts if part.nodes and part.processes]


def split_count(value: str) -> tuple[int, dict[str, str]]:
    """Parse a term such as `2:ncpus=4:mem=1gb` into the count and the resources of each."""
    first, *parts = value.split(":")
    if "=" in first:
        # without a number it is one
        first, parts = "1", [first, *parts]
    if not all("=" in part for part in parts):
        raise ValueError(NOT_EXPRESSIBLE)
    return read_count(first), {name: text for name, _, text in (part.partition("=") for part in parts)}


def merge_kinds(kinds: list[ResourceSpecV1]) -> list[ResourceSpecV1]:
    """Merge kinds that differ only in the processes per node into one kind, if a spec can express it."""
    per_process = {
        (
            it.cpu_cores_per_process,
            it.gpu_cores_per_process,
            Fraction(it.memory or 0, it.computed_process_count),
        )
        for it in kinds
    }
    if len(per_process) > 1:
        return kinds
    parts = [Part(it.node_count or 0, it.processes_per_node or 0) for it in kinds]
    memory = sum(it.memory or 0 for it in kinds) or None
    filled = attrs.evolve(kinds[0], node_count=None, memory=memory)
    spread = attrs.evolve(filled, node_count=sum(it.nodes for it in parts), processes_per_node=None)
    for it in (filled, spread):
        it.process_count = sum(kind.computed_process_count for kind in kinds)
    return next(([it] for it in (filled, spread) if len(kinds) > 1 and spread_processes(it) == parts), kinds)


def set_resources(draft: Draft, kinds: Sequence[ResourceSpecV1]) -> None:
    """Set the draft's resources to these kinds, and keep its exclusive use of nodes."""
    for it in kinds:
        it.exclusive_node_use = draft.resources.exclusive_node_use
    draft.spec.resources = kinds[0] if len(kinds) == 1 else HeterogeneousResources(list(kinds))
