"""Allocations: their nodes, the tasks in them, and the shares of replicas. Pure.

The planner uses it, and so does the job of a group, which runs the tasks.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

import attrs

from ..document import ONE_SLOT, Shape, Task
from .plan import After, Entry, Kind

#: Attributes that the job of an allocation cannot have: its process would have to continue, or pass on a
#: signal.
UNSHARED = frozenset({"retry", "warn"})
# `group_run` ends the tasks of an allocation that long before its walltime is over.
_CLEANUP_TIME = timedelta(minutes=1)
# Dependants wait for the members of a group instead of the group, and not for its services.
_ENDLESS = {Kind.POOL, Kind.SERVICE}


def flatten(allocation: Entry) -> tuple[Entry, ...]:
    """Return all entries that run inside of an allocation, in their order: also those of nested groups.

    Dependants of a nested group wait for all entries in it, except services, and all entries in it wait for
    the dependencies of the group. An entry without resources has those of the group around it.
    """
    pools = [it for it in allocation.walk() if it.kind is Kind.POOL]
    ends = {it.id: [inner.id for inner in it.walk() if inner.kind not in _ENDLESS] for it in pools}
    return tuple(_flatten(allocation, (), ends))


def _flatten(
    outer: Entry, inherited: tuple[After, ...], ends: Mapping[str, Sequence[str]]
) -> Iterator[Entry]:
    for entry in outer.inside:
        # a group that has services alone has no end to wait for
        expanded = (
            [After(end, it.when) for end in ends[it.id]] if it.id in ends else [it] for it in entry.after
        )
        after = tuple(dict.fromkeys((*inherited, *itertools.chain.from_iterable(expanded))))
        shape = entry.shape if entry.is_local else entry.shape or outer.shape
        flat = attrs.evolve(entry, after=after, shape=shape)
        if entry.kind is Kind.POOL:
            yield from _flatten(flat, after, ends)
        else:
            yield flat


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


def is_spread(allocation: Entry) -> bool:
    """Return True if an allocation asks for several nodes.

    An allocation whose slots may be on any nodes can get several, too; it returns False.
    """
    return allocation.shape is not None and (allocation.shape.nodes or 1) > 1


def multinode_entries(allocation: Entry) -> list[Entry]:
    """Return the entries inside of an allocation that can run only on several of its nodes."""
    whole = allocation.shape
    if whole is None or not is_spread(allocation):
        return []
    entries = (it for it in flatten(allocation) if not it.is_local)
    return [
        it for it in entries if all(_needs_several_nodes(shape, whole) for shape in it.shapes or [ONE_SLOT])
    ]


def _needs_several_nodes(shape: Shape, whole: Shape) -> bool:
    """Return True if a shape needs several nodes: it asks for them, or one node has too little."""
    if (shape.nodes or 1) > 1:
        return True
    slots_per_node = whole.slots_per_node or whole.slots
    if whole.cores:
        return (shape.cores or whole.cores) * shape.slots > whole.cores * slots_per_node
    return shape.slots > slots_per_node


def share_allocation(task: Task) -> bool:
    """Return True if the replicas of a task at the top run in one allocation; those of services do not."""
    return task.replicas > 1 and not task.is_service


def one_slot(shape: Shape) -> Shape:
    """Return the shape of one slot of a shape, on any node."""
    nodes = 1 if shape.slots_per_node == 1 else None
    memory = shape.memory // shape.slots
    return attrs.evolve(shape, nodes=nodes, slots=1, memory=memory, storage=0, racks=0, is_exclusive=False)


def total_duration(replicas: int, slots: int, each: timedelta) -> timedelta:
    """Return how long the replicas take at most, with as many at a time as there are slots.

    >>> print(total_duration(5, slots=2, each=timedelta(hours=1)))
    3:01:00
    """
    return -(-replicas // slots) * each + _CLEANUP_TIME if each else each
