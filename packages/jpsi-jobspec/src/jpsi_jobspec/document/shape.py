"""The total shape of a resource: nodes, slots, and the hardware of each slot. Pure.

The specs of jobs get their resources from it; the rules compare a task with the group around it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

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
    everything = list(vertices(root))
    explicit = next((it for it in everything if it.is_slot), None)
    slot = explicit or next((it for it in everything if it.type == "node"), None)
    # the amounts of each type in each slot, and outside of the slots
    each: Counter[str] = Counter()
    shared: Counter[str] = Counter()
    slots = 1
    nodes: int | None = None
    for vertex, outside, inside in _walk(root, slot, 1, None if slot else 1):
        amount = 1 if vertex.size is None else vertex.size
        if vertex is slot:
            slots = outside
        if inside is not None and (vertex is not slot or vertex.type != "node"):
            each[vertex.type] += inside * amount
        elif inside is None:
            shared[vertex.type] += outside * amount
        if vertex.type == "node" and (inside is None or (vertex is slot and explicit is None)):
            nodes = outside
    return Shape(
        nodes=nodes,
        slots=slots,
        cores=each["core"],
        gpus=each["gpu"] + shared["gpu"] // slots,
        memory=each["memory"] * slots + shared["memory"],
        storage=each["storage"] * slots + shared["storage"],
        racks=each["rack"] * slots + shared["rack"],
        nodes_per_slot=each["node"],
        is_exclusive=any(it.is_exclusive for it in everything),
        is_detailed=any(it.type in {"core", "gpu", "socket"} for it in everything),
    )


def vertices(root: Vertex) -> Iterator[Vertex]:
    """Yield a vertex and all vertices inside of it."""
    yield root
    for vertex in root.children:
        yield from vertices(vertex)


def _walk(
    vertex: Vertex, slot: Vertex | None, outside: int, inside: int | None
) -> Iterator[tuple[Vertex, int, int | None]]:
    """Yield each vertex with its number outside of slots, and in each slot; None if it is outside."""
    if inside is not None:
        inside *= vertex.count
    else:
        outside *= vertex.count
        inside = 1 if vertex is slot else None
    yield vertex, outside, inside
    for child in vertex.children:
        yield from _walk(child, slot, outside, inside)


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


# How the parts of several shapes make those of all.
_COMBINED: Mapping[str, Callable[[Iterable[Any]], Any]] = {
    **dict.fromkeys(("slots", "memory", "storage", "racks"), sum),
    **dict.fromkeys(("cores", "gpus"), max),
    **dict.fromkeys(("is_exclusive", "is_detailed"), any),
}


def _sum(pieces: Sequence[Shape]) -> Shape:
    nodes = [it.nodes for it in pieces if it.nodes is not None]
    combined = {name: combine([getattr(it, name) for it in pieces]) for name, combine in _COMBINED.items()}
    return Shape(nodes=sum(nodes) if len(nodes) == len(pieces) else None, **combined)


def as_resources(shape: Shape) -> ResourceSpec:
    """Return the resources of a job with this shape."""
    pieces = [as_one_kind(it) for it in shape.pieces]
    return HeterogeneousResources(pieces) if pieces else as_one_kind(shape)


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
    parts = (
        (shape.racks, "racks are not requested: jobs do not name them"),
        (shape.storage, "storage is not requested: jobs do not name it"),
    )
    return [sentence for amount, sentence in parts if amount]


def find_excess(child: Shape, parent: Shape) -> list[str]:
    """Return what a child asks for that its parent does not have, one phrase each."""
    found = []
    if parent.nodes is not None and (child.nodes or 0) > parent.nodes:
        found.append(f"{child.nodes} nodes of {parent.nodes}")
    if parent.nodes is None and not child.cores and child.slots > parent.slots:
        found.append(f"{child.slots} slots of {parent.slots}")
    if parent.memory and child.memory > parent.memory:
        found.append(f"{child.memory / 2**30:g} GiB of memory of {parent.memory / 2**30:g} GiB")
    if parent.is_detailed:
        found += filter(None, (_excess_of(what, child, parent) for what in ("cores", "gpus")))
    return found


def _excess_of(what: str, child: Shape, parent: Shape) -> str | None:
    requested, available = (getattr(it, what) * it.slots for it in (child, parent))
    if requested > available and (available or what == "gpus"):
        return f"{requested} {what} of {available}"
    each, limit = (getattr(it, what) * (it.slots_per_node or 0) for it in (child, parent))
    return f"{each} {what} on a node that has {limit}" if limit and each > limit else None
