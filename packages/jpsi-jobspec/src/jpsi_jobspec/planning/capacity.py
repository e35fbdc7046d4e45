"""The capacity of an allocation: no more runs in it at a time than it has room for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import attrs

from ..document import ONE_SLOT, Shape
from .nodes import even
from .plan import Entry, Kind


@attrs.frozen(slots=True)
class Amount:
    """An amount of slots, cores and GPUs: of an allocation, a node, or a task."""

    slots: int = 0
    cores: int = 0
    gpus: int = 0

    @classmethod
    def of(cls, shape: Shape, whole: Shape, slots: int | None = None) -> Amount:
        """Return the amount that slots of a shape take of a whole, all of its slots by default.

        Where a shape says nothing of cores, each of its slots takes as many as a slot of the whole.
        """
        count = shape.slots if slots is None else slots
        return cls(count, (shape.cores or whole.cores) * count, shape.gpus * count)

    def without(self, other: Amount) -> Amount:
        """Return the amount that is left without another one."""
        return Amount(self.slots - other.slots, self.cores - other.cores, self.gpus - other.gpus)

    def has(self, wanted: Amount, *, counts_cores: bool) -> bool:
        """Return True if the amount is enough; slots are compared where cores are not counted."""
        if wanted.gpus > self.gpus:
            return False
        return wanted.cores <= self.cores if counts_cores else wanted.slots <= self.slots


#: The amount on each node, by the node's index in the list of nodes.
Places = Mapping[int, Amount]


@attrs.frozen(slots=True)
class _Taken:
    shape: Shape
    places: Places


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
        self._whole = {it.id: it.shape for it in groups if it.shape is not None}
        self._shape = self._whole.get(allocation.id, ONE_SLOT)
        self._nodes = [Amount.of(self._shape, self._shape, it) for it in nodes or [self._shape.slots]]
        self._can_span = can_span
        self._taken: dict[tuple[str, int], _Taken] = {}
        # the indexes of the nodes that a pilot has named, by those names
        self._known: dict[str, int] = {}

    def take(self, entry: Entry, replica: int) -> Shape | None:
        """Take the share of a replica, by the first of its alternatives that is free; None if none is."""
        if entry.shape is None or entry.is_local:
            return ONE_SLOT
        for shape in _alternatives(entry):
            if all(self._has_room(group, shape) for group in self._groups(entry)):
                places = self._places(shape, self._beside(self._taken.values()))
                if places is not None:
                    self._taken[entry.id, replica] = _Taken(shape, places)
                    return shape
        return None

    def give_back(self, entry: Entry, replica: int) -> None:
        """Give back the share of a replica that has ended."""
        self._taken.pop((entry.id, replica), None)

    @property
    def is_spread(self) -> bool:
        """True if there are several nodes, among which a pilot may choose otherwise than this model does."""
        return len(self._nodes) > 1

    def move(self, entry: Entry, replica: int, name: str) -> None:
        """Record that a replica runs on the node with this name; all nodes are alike."""
        taken = self._taken.get((entry.id, replica))
        if taken is None or len(taken.places) != 1:
            return
        ((number, amount),) = taken.places.items()
        if name not in self._known:
            others = [it for it in range(len(self._nodes)) if it not in self._known.values()]
            self._known[name] = number if number in others else min(others, default=number)
        self._taken[entry.id, replica] = attrs.evolve(taken, places={self._known[name]: amount})

    def is_kept_by(self, staying: Collection[tuple[str, int]], entry: Entry, replica: int) -> bool:
        """Return True if the shares of `staying`, by entry id and replica, leave no room for this replica."""
        wanted = self._taken.get((entry.id, replica))
        taken = (it for key, it in self._taken.items() if key in staying)
        return wanted is not None and self._places(wanted.shape, self._beside(taken)) is None

    def can_ever_have(self, entry: Entry) -> bool:
        """Return True if there is room for an entry once nothing else runs."""
        shapes, groups = _alternatives(entry), list(self._groups(entry))
        return not shapes or any(
            all(self._fit([it], group) for group in groups) and self._places(it, self._nodes) is not None
            for it in shapes
        )

    def _groups(self, entry: Entry) -> Iterator[str]:
        """Yield the groups around an entry."""
        parts = entry.id.split("/")[:-1]
        names = ("/".join(parts[: length + 1]) for length in range(len(parts)))
        return (it for it in names if it in self._whole)

    def _has_room(self, group: str, wanted: Shape) -> bool:
        taken = [it.shape for (name, _), it in self._taken.items() if name.startswith(f"{group}/")]
        return self._fit([*taken, wanted], group)

    def _fit(self, shapes: Sequence[Shape], group: str) -> bool:
        """Return True if all shapes fit into a group together."""
        whole = self._whole[group]
        left = Amount.of(whole, whole)
        for shape in shapes:
            left = left.without(Amount.of(shape, whole))
        return left.has(Amount(), counts_cores=bool(whole.cores))

    def _beside(self, others: Iterable[_Taken]) -> list[Amount]:
        """Return what is free of each node beside others."""
        free = list(self._nodes)
        for taken in others:
            for number, amount in taken.places.items():
                free[number] = free[number].without(amount)
        return free

    def _places(self, shape: Shape, free: Sequence[Amount]) -> Places | None:
        """Return where a shape fits: on the first node with enough room, else on several if it can span."""
        if (shape.nodes or 1) == 1:
            wanted = Amount.of(shape, self._shape)
            for number, it in enumerate(free):
                if self._is_enough(it, wanted):
                    return {number: wanted}
        return self._spread(shape, free) if self._can_span else None

    def _spread(self, shape: Shape, free: Sequence[Amount]) -> Places | None:
        """Return where the slots fit on several nodes, with the number on each that the shape gives.

        Without a number per node, the slots are spread evenly over as few nodes as possible. A pilot takes as
        much of each node of a job as the fullest of them needs.
        """
        each = self._amount(shape, shape.slots_per_node or self._evenly(shape))
        found: dict[int, Amount] = {}
        left = shape.slots
        for number, it in enumerate(free):
            if left > 0 and each.slots and self._is_enough(it, each):
                found[number] = each
                left -= each.slots
        return None if left > 0 else found

    def _evenly(self, shape: Shape) -> int:
        """Return how many slots are on each of as few nodes as have room for all; 0 if none has."""
        sizes = range(shape.slots, 0, -1)
        most = next((n for n in sizes if self._is_enough(self._nodes[0], self._amount(shape, n))), 0)
        return even(shape.slots, most) if most else 0

    def _amount(self, shape: Shape, slots: int) -> Amount:
        return Amount.of(shape, self._shape, slots)

    def _is_enough(self, free: Amount, wanted: Amount) -> bool:
        return free.has(wanted, counts_cores=bool(self._shape.cores))


def _alternatives(entry: Entry) -> list[Shape]:
    return [] if entry.shape is None else [entry.shape, *(it for _, it in entry.others)]
