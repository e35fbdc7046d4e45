"""Nodes of an allocation, and the tasks that need several of them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ..document import ONE_SLOT, Shape
from .flattening import flatten
from .plan import Entry


def slots_of_nodes(shape: Shape, names: Sequence[str]) -> tuple[int, ...]:
    """Return the number of slots on each node of an allocation.

    Where slots may be on any nodes, one node may have more of them than another; each node counts with the
    fewest, since pilots use the same share of each node.

    Args:
        shape: the resources of the job.
        names: the node of each slot, as the batch system names them; empty if it does not.
    """
    if shape.nodes is not None:
        return (shape.slots // shape.nodes,) * shape.nodes
    counts = Counter(names)
    if len(counts) < 2:  # noqa: PLR2004  several
        return (shape.slots,)
    return (min(counts.values()),) * len(counts)


def spread_evenly(slots: int, maximum: int) -> int:
    """Return how many slots are on each node, where they are spread evenly over as few as can be.

    >>> spread_evenly(9, maximum=4), spread_evenly(4, maximum=4)
    (3, 4)
    """
    return -(-slots // -(-slots // maximum))


def is_spread(allocation: Entry) -> bool:
    """Return True if an allocation asks for several nodes.

    An allocation whose slots may be on any nodes can get several, too; it returns False.
    """
    return allocation.shape is not None and (allocation.shape.nodes or 1) > 1


def multinode_entries(allocation: Entry) -> Iterator[Entry]:
    """Yield the entries inside of an allocation that can run only on several of its nodes."""
    whole = allocation.shape
    if whole is None or not is_spread(allocation):
        return
    for entry in flatten(allocation):
        if entry.is_local:
            continue
        shapes = [entry.shape or ONE_SLOT, *(it for _, it in entry.others)]
        if all(_needs_several_nodes(it, whole) for it in shapes):
            yield entry


def _needs_several_nodes(shape: Shape, whole: Shape) -> bool:
    """Return True if a shape needs several nodes: it asks for them, or one node has too little."""
    if (shape.nodes or 1) > 1:
        return True
    slots_per_node = whole.slots_per_node or whole.slots
    if whole.cores:
        return (shape.cores or whole.cores) * shape.slots > whole.cores * slots_per_node
    return shape.slots > slots_per_node
