"""The total shape of a resource: nodes, slots, and the hardware of each slot. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from jpsi import HeterogeneousResources, ResourceSpec, ResourceSpecV1

from .model import Vertex


@attrs.frozen(slots=True, kw_only=True)
class Shape:
    """The totals of a resource; a process runs in each slot."""

    #: The number of nodes to ask for; None where slots may be on any nodes.
    nodes: int | None = None
    slots: int = 1
    #: For each slot; 0 if the document does not say.
    cores: int = 0
    gpus: int = 0
    #: Bytes in total.
    memory: int = 0
    storage: int = 0
    #: The number of racks to ask for.
    racks: int = 0
    #: The nodes of each slot, where a slot has several.
    nodes_per_slot: int = 0
    is_exclusive: bool = False
    #: True if the document details the hardware of a node.
    is_detailed: bool = False
    #: The pieces of a resource whose slots differ; the fields above are their totals then.
    pieces: tuple[Shape, ...] = ()

    @property
    def slots_per_node(self) -> int | None:
        """Slots on each node, where nodes are counted."""
        return None if not self.nodes else self.slots // self.nodes

    def __str__(self) -> str:
        if self.pieces:
            return " & ".join(map(str, self.pieces))
        nodes = "anywhere" if self.nodes is None else f"on {_pluralize(self.nodes, 'node')}"
        parts = [f"{_pluralize(self.slots, 'slot')} {nodes}"]
        each = [_pluralize(n, what) for n, what in ((self.cores, "core"), (self.gpus, "gpu")) if n]
        if each:
            parts.append(f"{' and '.join(each)} each")
        if self.memory:
            parts.append(f"{self.memory / 2**30:g} GiB of memory")
        return ", ".join(parts)


#: The shape of a task without resources of its own.
ONE_SLOT = Shape()


def _pluralize(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def measure(root: Vertex) -> Shape:
    """Return the shape of a resource; counts are per holding vertex, so totals are products.

    Without a slot, each node is one; without a node as well, the whole resource is one slot.
    """
    return _Measure(next((it for it in vertices(root) if it.is_slot), None), root).shape()


def vertices(root: Vertex) -> Iterator[Vertex]:
    """Yield a vertex and all vertices inside of it."""
    yield root
    for vertex in root.children:
        yield from vertices(vertex)


class _Measure:
    def __init__(self, slot: Vertex | None, root: Vertex) -> None:
        self._root = root
        self._slot = slot or next((it for it in vertices(root) if it.type == "node"), None)
        self._has_slot = slot is not None
        self._nodes: int | None = None
        self._slots = 1
        self._each: dict[str, int] = {}
        self._shared: dict[str, int] = {}

    def shape(self) -> Shape:
        self._walk(self._root, 1, None if self._slot is not None else 1)
        each, shared, slots = self._each, self._shared, self._slots
        return Shape(
            nodes=self._nodes,
            slots=slots,
            cores=each.get("core", 0),
            gpus=each.get("gpu", 0) + shared.get("gpu", 0) // slots,
            memory=each.get("memory", 0) * slots + shared.get("memory", 0),
            storage=each.get("storage", 0) * slots + shared.get("storage", 0),
            racks=shared.get("rack", 0) + each.get("rack", 0) * slots,
            nodes_per_slot=each.get("node", 0),
            is_exclusive=any(it.is_exclusive for it in vertices(self._root)),
            is_detailed=any(it.type in {"core", "gpu", "socket"} for it in vertices(self._root)),
        )

    def _walk(self, vertex: Vertex, outer_count: int, inner_count: int | None) -> None:
        """Count a vertex, with the products of the counts around it outside and inside of the slot."""
        amount = vertex.count if vertex.size is None else vertex.count * vertex.size
        if inner_count is not None:
            inner_count *= vertex.count
            self._add(self._each, vertex, inner_count // vertex.count * amount)
        elif vertex is self._slot:
            outer_count *= vertex.count
            self._slots, inner_count = outer_count, 1
            if vertex.type == "node":
                self._nodes = None if self._has_slot else outer_count
            else:
                self._add(self._each, vertex, 1)
        else:
            outer_count *= vertex.count
            if vertex.type == "node":
                self._nodes = outer_count
            self._add(self._shared, vertex, outer_count // vertex.count * amount)
        for child in vertex.children:
            self._walk(child, outer_count, inner_count)

    @staticmethod
    def _add(counts: dict[str, int], vertex: Vertex, amount: int) -> None:
        counts[vertex.type] = counts.get(vertex.type, 0) + amount


def merge_alike(pieces: Sequence[Shape]) -> Shape | None:
    """Return the shape of several shapes together; None if their slots differ."""
    cores = {it.cores for it in pieces if it.cores}
    kinds = {(it.gpus, it.slots_per_node, it.nodes_per_slot) for it in pieces}
    if len(cores) > 1 or len(kinds) > 1:
        return None
    return attrs.evolve(_sum(pieces), gpus=pieces[0].gpus, nodes_per_slot=pieces[0].nodes_per_slot)


def combine_pieces(pieces: Sequence[Shape]) -> Shape:
    """Return the shape of several shapes together, each with its own kind of slots."""
    return attrs.evolve(_sum(pieces), pieces=tuple(pieces))


def _sum(pieces: Sequence[Shape]) -> Shape:
    has_nodes = all(it.nodes is not None for it in pieces)
    return Shape(
        nodes=sum(it.nodes or 0 for it in pieces) if has_nodes else None,
        slots=sum(it.slots for it in pieces),
        cores=max(it.cores for it in pieces),
        gpus=max(it.gpus for it in pieces),
        memory=sum(it.memory for it in pieces),
        storage=sum(it.storage for it in pieces),
        racks=sum(it.racks for it in pieces),
        is_exclusive=any(it.is_exclusive for it in pieces),
        is_detailed=any(it.is_detailed for it in pieces),
    )


def as_resources(shape: Shape) -> ResourceSpec:
    """Return the resources of a job with this shape."""
    if shape.pieces:
        return HeterogeneousResources([as_one_kind(it) for it in shape.pieces])
    return as_one_kind(shape)


def as_one_kind(shape: Shape) -> ResourceSpecV1:
    """Return the resources of a job with this shape, whose slots must be alike."""
    return ResourceSpecV1(
        node_count=shape.nodes,
        processes_per_node=shape.slots_per_node,
        process_count=shape.slots if shape.nodes is None else None,
        cpu_cores_per_process=shape.cores or None,
        gpu_cores_per_process=shape.gpus or None,
        memory=shape.memory or None,
        exclusive_node_use=shape.is_exclusive,
    )


def unsupported_parts(shape: Shape) -> list[str]:
    """Return what a job cannot ask for of a shape, one sentence each."""
    found = []
    if shape.racks:
        found.append("racks are not asked for: jobs do not name them")
    if shape.storage:
        found.append("storage is not asked for: jobs do not name it")
    return found


def find_excess(child: Shape, parent: Shape) -> list[str]:
    """Return what a child asks for that its parent does not have, one phrase each."""
    found = []
    if parent.nodes is not None and (child.nodes or 0) > parent.nodes:
        found.append(f"{child.nodes} nodes of {parent.nodes}")
    if parent.nodes is None and not child.cores and child.slots > parent.slots:
        found.append(f"{child.slots} slots of {parent.slots}")
    if parent.memory and child.memory > parent.memory:
        found.append(f"{child.memory / 2**30:g} GiB of memory of {parent.memory / 2**30:g} GiB")
    if not parent.is_detailed:
        return found
    for what in ("cores", "gpus"):
        requested, available = getattr(child, what) * child.slots, getattr(parent, what) * parent.slots
        if requested > available and (available or what == "gpus"):
            found.append(f"{requested} {what} of {available}")
            continue
        requested_per_node, available_per_node = (
            (child.slots_per_node or 0) * getattr(child, what),
            _per_node(parent, what),
        )
        if available_per_node and requested_per_node > available_per_node:
            found.append(f"{requested_per_node} {what} on a node that has {available_per_node}")
    return found


def _per_node(shape: Shape, what: str) -> int:
    return int(getattr(shape, what)) * (shape.slots_per_node or 0)
