"""What a script that was written for qsub asks for in nodes or chunks, processes, cores, GPUs and memory."""

from __future__ import annotations

from collections.abc import Mapping

from jpsi.plugin import Draft, Reader, count, read_amount, read_count

# pbs_resources(7B), size; w is a word of 8 bytes
_UNITS = {"": 1, "b": 1, "B": 1} | {
    spelled: size << 10 * power
    for power, prefix in enumerate(("", "k", "m", "g", "t", "p"))
    for unit, size in (("b", 1), ("w", 8))
    for spelled in (f"{prefix}{unit}", f"{prefix}{unit}".upper())
}
_ALONE = frozenset({"excl", "exclhost"})
_SPREAD = frozenset({"scatter"})
_NO_WORD = "jpsi has no word for it"


def _read_memory(draft: Draft, value: str) -> None:
    draft.resources.memory = read_amount(value, _UNITS)


def _read_place(draft: Draft, value: str) -> None:
    words = set(value.split(":"))
    if words - _ALONE - _SPREAD:
        raise ValueError(_NO_WORD)
    draft.resources.exclusive_node_use = bool(words & _ALONE)


def _read_select(draft: Draft, value: str) -> None:
    """One kind of chunk; pbs_resources(7B)."""
    count, wanted = _counted(value)
    processes = read_count(wanted.pop("mpiprocs", "1"))
    cores, cores_left = divmod(read_count(wanted.pop("ncpus", str(processes))), processes)
    gpus, gpus_left = divmod(int(wanted.pop("ngpus", "0")), processes)
    memory = wanted.pop("mem", None)
    # the number of threads that jpsi sets itself
    threads = wanted.pop("ompthreads", str(cores))
    if wanted or cores_left or gpus_left or not cores or threads != str(cores):
        raise ValueError(_NO_WORD)
    asked, place = draft.resources, set((draft.options.get("l.place") or "").split(":"))
    is_spread = bool(place & _SPREAD)
    if processes == 1 and not is_spread:
        asked.process_count = count
    else:
        asked.node_count, asked.processes_per_node = count, processes
    if count > 1 and processes > 1 and not is_spread:
        draft.lose("l.select", value, "jpsi has each chunk on a node of its own")
    asked.cpu_cores_per_process = cores if cores > 1 else None
    asked.gpu_cores_per_process = gpus or None
    asked.memory = None if memory is None else read_amount(memory, _UNITS) * count


def _read_nodes(draft: Draft, value: str) -> None:
    """As many nodes, with as many processes each; "Requesting Resources" in the Torque manual."""
    count, wanted = _counted(value)
    processes = read_count(wanted.pop("ppn", "1"))
    gpus, left = divmod(int(wanted.pop("gpus", "0")), processes)
    if wanted or left:
        raise ValueError(_NO_WORD)
    draft.resources.node_count, draft.resources.processes_per_node = count, processes
    draft.resources.gpu_cores_per_process = gpus or None


def _counted(value: str) -> tuple[int, dict[str, str]]:
    """How many of a thing, and what each has: `2:ncpus=4:mem=1gb`."""
    first, *parts = value.split(":")
    if "+" in value:
        msg = "jpsi has nodes of one kind"
        raise ValueError(msg)
    if "=" in first:
        # one of them
        first, parts = "1", [first, *parts]
    if not all("=" in part for part in parts):
        raise ValueError(_NO_WORD)
    return read_count(first), {name: text for name, _, text in (part.partition("=") for part in parts)}


#: What PBS and Torque both have; pbs_resources(7B).
RESOURCES: Mapping[str, Reader] = {
    "l.nodes": _read_nodes,
    "l.ncpus": count("cpu_cores_per_process"),
    "l.mem": _read_memory,
}
#: What PBS alone has.
CHUNKS: Mapping[str, Reader] = {"l.place": _read_place, "l.select": _read_select}
