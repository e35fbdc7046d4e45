"""Decides which waiting jobs start on which nodes, and how many pilots to start; all functions are pure.

The scheduling loop calls them for the jobs, and the fleet for the pilots.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import attrs

from ..protocol import Need, pilot_of

#: Jobs to start: their kind, the names of the nodes that each of them takes, and the number of jobs.
Start = tuple["Kind", tuple[str, ...], int]


@attrs.frozen(slots=True, kw_only=True)
class NodeCapacity:
    """The free capacity of one node of a pilot."""

    #: The name of the node.
    name: str
    cores: int
    gpus: int = 0
    #: In bytes; None if memory is not counted.
    memory: int | None = None
    #: The longest time, in seconds, that a job that starts now may run there.
    seconds: float
    #: The key of the settings of its pilot.
    settings: str = ""
    #: The client whose jobs the pilot takes; None if it takes those of every client.
    client: str | None = None

    def count_fitting(self, need: Need) -> int:
        """Return how many jobs with this need fit on the node at the same time.

        Other nodes that such a job needs are not considered.

        >>> NodeCapacity(name="a", cores=4, seconds=60).count_fitting(Need(cores=2, seconds=60))
        2
        >>> NodeCapacity(name="a", cores=4, seconds=60).count_fitting(Need(seconds=61))
        0
        """
        if need.seconds > self.seconds:
            return 0
        counts = [self.cores // need.cores] if need.cores else []
        if need.gpus:
            counts.append(self.gpus // need.gpus)
        if need.memory and self.memory is not None:
            counts.append(self.memory // need.memory)
        return max(0, min(counts, default=0))

    def without(self, need: Need, count: int = 1) -> NodeCapacity:
        """Return the capacity that is left beside such jobs."""
        return attrs.evolve(
            self,
            cores=self.cores - count * need.cores,
            gpus=self.gpus - count * need.gpus,
            memory=None if self.memory is None else self.memory - count * need.memory,
        )


@attrs.frozen(slots=True, kw_only=True)
class Kind:
    """The properties that placement looks at; jobs of one kind are interchangeable for it."""

    need: Need
    settings: str = ""
    #: The client that submitted them; None if that process is gone, or shares pilots.
    client: str | None = None
    #: The number of their array, if it limits how many of its elements run at a time.
    array: int | None = None


@attrs.frozen(slots=True, kw_only=True)
class Waiting:
    """The number of waiting jobs of one kind that may start now."""

    kind: Kind
    count: int


def accepts(capacity: NodeCapacity, kind: Kind) -> bool:
    """Return True if the pilot of this node takes jobs of this kind, however much of it is free."""
    return capacity.settings == kind.settings and capacity.client in {None, kind.client}


def place_jobs(waiting: Iterable[Waiting], capacities: Sequence[NodeCapacity]) -> list[Start]:
    """Return how many jobs of which kind start on which nodes.

    The kinds that have waited longest come first. A job that fits nowhere now does not keep others from
    starting.

    Args:
        waiting: the kinds, in the order in which they are served.
        capacities: the free capacity; the pilot that ends first is filled first, so that others can become
            idle.
    """
    free = {
        capacity.name: capacity
        for capacity in sorted(capacities, key=lambda capacity: (capacity.seconds, capacity.name))
    }
    starts: list[Start] = []
    for it in waiting:
        remaining, need = it.count, it.kind.need
        for group in _group_nodes(it.kind, free.values()):
            while remaining and (fit := _find_nodes(need, [free[name] for name in group])):
                names, fitting = fit
                times = min(remaining, fitting)
                starts.append((it.kind, names, times))
                remaining -= times
                for name in names:
                    free[name] = free[name].without(need, times)
    return starts


def _group_nodes(kind: Kind, capacities: Iterable[NodeCapacity]) -> Iterable[Sequence[str]]:
    """Return the groups of nodes among which one job finds its own.

    A job that needs one node gets a group for each node; a job that needs several gets one for each pilot.
    """
    names = [capacity.name for capacity in capacities if accepts(capacity, kind)]
    if kind.need.nodes == 1:
        return [(name,) for name in names]
    pilots: dict[str, list[str]] = {}
    for name in names:
        pilots.setdefault(pilot_of(name), []).append(name)
    return pilots.values()


def _find_nodes(need: Need, capacities: Sequence[NodeCapacity]) -> tuple[tuple[str, ...], int] | None:
    """Return the nodes that a job gets, and how many such jobs fit there; None if it does not fit.

    The job gets the nodes with the most capacity, so that as many such jobs as possible start together.
    """
    largest = sorted(capacities, key=lambda capacity: -capacity.count_fitting(need))[: need.nodes]
    if len(largest) < need.nodes:
        return None
    fitting = largest[-1].count_fitting(need)
    return (tuple(capacity.name for capacity in largest), fitting) if fitting else None


def count_pilots_to_start(
    waiting: Sequence[Waiting], free: Sequence[NodeCapacity], fresh: Sequence[NodeCapacity], allowed: int
) -> int:
    """Return how many pilots to start so that every waiting job could start now, up to the limit.

    Args:
        waiting: the jobs that could run in such pilots.
        free: the free capacity of existing pilots, and of those that are starting.
        fresh: the capacity of one more pilot.
        allowed: how many more pilots there may be.
    """
    remaining = _remaining(waiting, free)
    count = 0
    while remaining and count < allowed:
        next_remaining = _remaining(remaining, fresh)
        if next_remaining == remaining:
            break
        remaining, count = next_remaining, count + 1
    return count


def _remaining(waiting: Iterable[Waiting], capacities: Sequence[NodeCapacity]) -> list[Waiting]:
    """Return the jobs that would still wait after a placement on nodes with these capacities."""
    waiting = list(waiting)
    started = Counter[Kind]()
    for kind, _, count in place_jobs(waiting, capacities):
        started[kind] += count
    remaining = [attrs.evolve(it, count=it.count - started[it.kind]) for it in waiting]
    return [it for it in remaining if it.count > 0]
