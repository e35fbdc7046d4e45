"""Converts the qsub options for nodes or chunks, processes, cores, GPUs and memory into a ResourceSpec."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

import attrs

from jpsi.plugin import Draft, HeterogeneousResources, Reader, ResourceSpecV1
from jpsi.plugin.kit import count_reader, read_amount, read_count

from ..submission import Part, spread_processes

# pbs_resources(7B), size; w is a word of 8 bytes
_UNITS = {"": 1, "b": 1, "B": 1} | {
    spelling: size << 10 * power
    for power, prefix in enumerate(("", "k", "m", "g", "t", "p"))
    for unit, size in (("b", 1), ("w", 8))
    for spelling in (f"{prefix}{unit}", f"{prefix}{unit}".upper())
}
_EXCLUSIVE_PLACES = frozenset({"excl", "exclhost"})
_SCATTER = frozenset({"scatter"})
_NOT_EXPRESSIBLE = "jpsi cannot express it"


def _read_memory(draft: Draft, value: str) -> None:
    draft.resources.memory = read_amount(value, _UNITS)


def read_place(draft: Draft, value: str) -> None:
    """Read `-l place`, from which a spec can take exclusive use of the nodes."""
    words = set(value.split(":"))
    if words - _EXCLUSIVE_PLACES - _SCATTER:
        raise ValueError(_NOT_EXPRESSIBLE)
    draft.resources.exclusive_node_use = bool(words & _EXCLUSIVE_PLACES)


def read_select(draft: Draft, value: str) -> None:
    """Read `-l select`: chunks of one kind or of several; pbs_resources(7B)."""
    if "l.nodes" in draft.options:
        msg = "l.nodes requests other resources"
        raise ValueError(msg)
    chunks = _merge_kinds([_parse_chunk(text) for text in value.split("+")])
    place = set((draft.options.get("l.place") or "").split(":")) - {""}
    is_spread = bool(place & _SCATTER)
    if len(chunks) == 1 and chunks[0].processes_per_node == 1 and not is_spread:
        # chunks of one process each, which PBS may place anywhere
        number = chunks[0].node_count
        chunks = [attrs.evolve(chunks[0], process_count=number, node_count=None, processes_per_node=None)]
    elif not place - _EXCLUSIVE_PLACES and sum(it.node_count or 0 for it in chunks) > 1:
        draft.lose("l.select", value, "jpsi has each chunk on a node of its own")
    _set_resources(draft, chunks)


def _parse_chunk(text: str) -> ResourceSpecV1:
    """Parse one term of `select`: a number of identical chunks."""
    nodes, resources = _split_count(text)
    processes = read_count(resources.pop("mpiprocs", "1"))
    cores, cores_left = divmod(read_count(resources.pop("ncpus", str(processes))), processes)
    gpus, gpus_left = divmod(int(resources.pop("ngpus", "0")), processes)
    memory = resources.pop("mem", None)
    # jpsi sets the same number of threads itself
    threads = resources.pop("ompthreads", str(cores))
    if resources or cores_left or gpus_left or not cores or threads != str(cores):
        raise ValueError(_NOT_EXPRESSIBLE)
    return ResourceSpecV1(
        node_count=nodes,
        processes_per_node=processes,
        cpu_cores_per_process=cores if cores > 1 else None,
        gpu_cores_per_process=gpus or None,
        memory=None if memory is None else read_amount(memory, _UNITS) * nodes,
    )


def read_nodes(draft: Draft, value: str) -> None:
    """Read `-l nodes`: nodes of one kind or of several; "Requesting Resources" in the Torque manual."""
    kinds, resources = _merge_kinds([_parse_nodes(text) for text in value.split("+")]), draft.resources
    if len(kinds) > 1 and (resources.process_count, resources.cpu_cores_per_process) != (None, None):
        raise ValueError(_NOT_EXPRESSIBLE)
    if len(kinds) == 1:
        kinds[0].process_count = kinds[0].process_count or resources.process_count
        kinds[0].cpu_cores_per_process = resources.cpu_cores_per_process
    for kind, share in zip(kinds, _shares(resources.memory, kinds), strict=True):
        kind.memory = share
    _set_resources(draft, kinds)


def _parse_nodes(text: str) -> ResourceSpecV1:
    """Parse one term of `nodes`: a number of identical nodes."""
    nodes, resources = _split_count(text)
    processes = read_count(resources.pop("ppn", "1"))
    gpus, remainder = divmod(int(resources.pop("gpus", "0")), processes)
    if resources or remainder:
        raise ValueError(_NOT_EXPRESSIBLE)
    return ResourceSpecV1(node_count=nodes, processes_per_node=processes, gpu_cores_per_process=gpus or None)


def _merge_kinds(kinds: list[ResourceSpecV1]) -> list[ResourceSpecV1]:
    """Merge kinds that differ only in the processes per node into one kind, if a spec can express it."""
    per_process = {
        (it.cpu_cores_per_process, it.gpu_cores_per_process, Fraction(it.memory or 0, _kind_processes(it)))
        for it in kinds
    }
    if len(per_process) > 1:
        return kinds
    parts = [Part(it.node_count or 0, it.processes_per_node or 0) for it in kinds]
    filled = attrs.evolve(
        kinds[0],
        node_count=None,
        process_count=sum(map(_kind_processes, kinds)),
        memory=sum(it.memory or 0 for it in kinds) or None,
    )
    spread = attrs.evolve(filled, node_count=sum(it.nodes for it in parts), processes_per_node=None)
    return next(([it] for it in (filled, spread) if len(kinds) > 1 and spread_processes(it) == parts), kinds)


def _kind_processes(kind: ResourceSpecV1) -> int:
    return kind.computed_process_count


def _shares(memory: int | None, kinds: Sequence[ResourceSpecV1]) -> Iterator[int | None]:
    """Yield each kind's share of the whole job's memory, proportional to its processes."""
    total, before = sum(map(_kind_processes, kinds)), 0
    for kind in kinds:
        after = before + _kind_processes(kind)
        yield None if memory is None else memory * after // total - memory * before // total
        before = after


def _set_resources(draft: Draft, kinds: Sequence[ResourceSpecV1]) -> None:
    """Set the draft's resources to these kinds, and keep its exclusive use of nodes."""
    exclusive = draft.resources.exclusive_node_use
    found = [attrs.evolve(it, exclusive_node_use=exclusive) for it in kinds]
    draft.spec.resources = found[0] if len(found) == 1 else HeterogeneousResources(found)


def _split_count(value: str) -> tuple[int, dict[str, str]]:
    """Parse a term such as `2:ncpus=4:mem=1gb` into the count and the resources of each."""
    first, *parts = value.split(":")
    if "=" in first:
        # without a number it is one
        first, parts = "1", [first, *parts]
    if not all("=" in part for part in parts):
        raise ValueError(_NOT_EXPRESSIBLE)
    return read_count(first), {name: text for name, _, text in (part.partition("=") for part in parts)}


#: The readers of resources that PBS and Torque share; pbs_resources(7B).
RESOURCES: Mapping[str, Reader] = {"l.ncpus": count_reader("cpu_cores_per_process"), "l.mem": _read_memory}
