"""Counts what is free in a group's allocation, so that no more runs there at a time than fits.

The planner checks by it that each task can fit at all; in the job of the group, the starter reserves the
share of each task before the task starts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import attrs

from ..document import ONE_SLOT, Shape
from .plan import Entry, Kind


@attrs.frozen(slots=True)
class Amount:
    """An amount of slots, cores and GPUs: of an allocation, a node, or a task."""

    slots: int = 0
    cores: int = 0
    gpus: int = 0

    @classmethod
    def for_shape(cls, shape: Shape, whole: Shape, slots: int | None = None) -> Amount:
        """Return the amount that slots of a shape take of a whole, all of its slots by default.

        Where a shape says nothing of cores, each of its slots takes as many as a slot of the whole.
        """
        count = shape.slots if slots is None else slots
        return cls(count, (shape.cores or whole.cores) * count, shape.gpus * count)

    def __sub__(self, other: Amount) -> Amount:
        return Amount(self.slots - other.slots, self.cores - other.cores, self.gpus - other.gpus)

    def covers(self, requested: Amount, *, counts_cores: bool) -> bool:
        """Return True if the amount is enough; slots are compared where cores are not counted."""
        if requested.gpus > self.gpus:
            return False
        return requested.cores <= self.cores if counts_cores else requested.slots <= self.slots


#: The amount on each node, by the node's index in the list of nodes.
NodeAmounts = Mapping[int, Amount]


@attrs.frozen(slots=True)
class _Share:
    shape: Shape
    amounts: NodeAmounts


class Capacity:
    """The free part of an allocation, and of each group in it. Used by one thread."""

    def __init__(self, allocation: Entry, nodes: Sequence[int] = (), *, can_span: bool = False) -> None:
        """Begin with all of it free.

        Args:
            allocation: the group.
            nodes: the number of slots on each node; by default there is one node with all of them.
            can_span: True if a task can run on several nodes.
        """
        groups = [it for it in allocation.walk() if it.kind in {Kind.ALLOCATION, Kind.POOL}]
        self._group_shapes = {it.id: it.shape for it in groups if it.shape is not None}
        self._shape = self._group_shapes.get(allocation.id, ONE_SLOT)
        self._nodes = [Amount.for_shape(self._shape, self._shape, it) for it in nodes or [self._shape.slots]]
        self._can_span = can_span
        self._shares: dict[tuple[str, int], _Share] = {}
        # the indexes of the nodes that a pilot has named, by those names
        self._node_indexes: dict[str, int] = {}

    def reserve(self, entry: Entry, replica: int) -> Shape | None:
        """Take the share of a replica, by the first of its alternatives that is free; None if none is."""
        if entry.shape is None or entry.is_local:
            return ONE_SLOT
        for shape in entry.shapes:
            if all(self._fits_beside_others(shape, group) for group in self._groups_around(entry)):
                amounts = self._find_nodes(shape, self._free_beside(self._shares.values()))
                if amounts is not None:
                    self._shares[entry.id, replica] = _Share(shape, amounts)
                    return shape
        return None

    def release(self, entry: Entry, replica: int) -> None:
        """Give back the share of a replica that has ended."""
        self._shares.pop((entry.id, replica), None)

    @property
    def is_spread(self) -> bool:
        """True if there are several nodes, among which a pilot may choose otherwise than this model does."""
        return len(self._nodes) > 1

    def set_node(self, entry: Entry, replica: int, name: str) -> None:
        """Record that a replica runs on the node with this name; all nodes are alike."""
        share = self._shares.get((entry.id, replica))
        if share is None or len(share.amounts) != 1:
            return
        ((number, amount),) = share.amounts.items()
        if name not in self._node_indexes:
            others = [it for it in range(len(self._nodes)) if it not in self._node_indexes.values()]
            self._node_indexes[name] = number if number in others else min(others, default=number)
        self._shares[entry.id, replica] = attrs.evolve(share, amounts={self._node_indexes[name]: amount})

    def is_blocked_by(self, remaining: Collection[tuple[str, int]], entry: Entry, replica: int) -> bool:
        """Return True if the shares `remaining`, by entry id and replica, leave no room for this replica."""
        requested = self._shares.get((entry.id, replica))
        share = (it for key, it in self._shares.items() if key in remaining)
        return requested is not None and self._find_nodes(requested.shape, self._free_beside(share)) is None

    def can_ever_fit(self, entry: Entry) -> bool:
        """Return True if there is room for an entry once nothing else runs."""
        groups = list(self._groups_around(entry))
        return not entry.shapes or any(
            all(self._fit_together([it], group) for group in groups)
            and self._find_nodes(it, self._nodes) is not None
            for it in entry.shapes
        )

    def _groups_around(self, entry: Entry) -> Iterator[str]:
        """Yield the groups around an entry."""
        parts = entry.id.split("/")[:-1]
        names = ("/".join(parts[: length + 1]) for length in range(len(parts)))
        return (it for it in names if it in self._group_shapes)

    def _fits_beside_others(self, requested: Shape, group: str) -> bool:
        share = [it.shape for (name, _), it in self._shares.items() if name.startswith(f"{group}/")]
        return self._fit_together([*share, requested], group)

    def _fit_together(self, shapes: Sequence[Shape], group: str) -> bool:
        """Return True if all shapes fit into a group together."""
        whole = self._group_shapes[group]
        free = Amount.for_shape(whole, whole)
        for shape in shapes:
            free -= Amount.for_shape(shape, whole)
        return free.covers(Amount(), counts_cores=bool(whole.cores))

    def _free_beside(self, others: Iterable[_Share]) -> list[Amount]:
        """Return what is free of each node beside others."""
        free = list(self._nodes)
        for share in others:
            for number, amount in share.amounts.items():
                free[number] -= amount
        return free

    def _find_nodes(self, shape: Shape, free: Sequence[Amount]) -> NodeAmounts | None:
        """Return where a shape fits: on the first node with enough room, else on several if it can span."""
        if (shape.nodes or 1) == 1:
            requested = Amount.for_shape(shape, self._shape)
            for number, it in enumerate(free):
                if self._is_enough(it, requested):
                    return {number: requested}
        return self._spread(shape, free) if self._can_span else None

    def _spread(self, shape: Shape, free: Sequence[Amount]) -> NodeAmounts | None:
        """Return where the slots fit on several nodes, with the number on each that the shape gives.

        Without a number per node, the slots are spread evenly over as few nodes as possible. A pilot takes as
        much of each node of a job as the fullest of them needs.
        """
        each = Amount.for_shape(shape, self._shape, shape.slots_per_node or self._even_slots_per_node(shape))
        found: dict[int, Amount] = {}
        remaining = shape.slots
        for number, it in enumerate(free):
            if remaining > 0 and each.slots and self._is_enough(it, each):
                found[number] = each
                remaining -= each.slots
        return None if remaining > 0 else found

    def _even_slots_per_node(self, shape: Shape) -> int:
        """Return how many slots are on each of as few nodes as have room for all; 0 if none has."""
        for most in range(shape.slots, 0, -1):
            if self._is_enough(self._nodes[0], Amount.for_shape(shape, self._shape, most)):
                nodes = -(-shape.slots // most)
                return -(-shape.slots // nodes)
        return 0

    def _is_enough(self, free: Amount, requested: Amount) -> bool:
        return free.covers(requested, counts_cores=bool(self._shape.cores))
