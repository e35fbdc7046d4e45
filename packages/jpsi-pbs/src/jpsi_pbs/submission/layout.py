"""Spreads the processes of a job over nodes."""

from __future__ import annotations

from typing import NamedTuple

from jpsi.plugin import JobSpec, ResourceSpecV1, components


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

    >>> spread_processes(ResourceSpecV1(process_count=10, processes_per_node=3))
    [Part(nodes=3, processes=3), Part(nodes=1, processes=1)]
    >>> spread_processes(ResourceSpecV1(process_count=10, node_count=4))
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
