"""Converts the sbatch options for nodes, processes, CPUs, GPUs and memory into a ResourceSpec."""

from __future__ import annotations

import re
from collections.abc import Mapping

from jpsi.plugin import Draft, Reader, node_count
from jpsi.plugin.kit import count_reader, read_amount, read_count, read_exclusive

_MEBIBYTE = 1 << 20
# sbatch(1): --mem; without a unit it is megabytes, and all of them are powers of 1024
_UNITS = {"": _MEBIBYTE} | {
    spelled: 1 << 10 * power
    for power, unit in enumerate("kmgt", 1)
    for spelled in (unit, unit.upper(), f"{unit}b", f"{unit.upper()}B")
}
_GPUS = re.compile("gpu(?::([0-9]+))?")


def _tasks_per_node(draft: Draft, value: str) -> None:
    each, asked = read_count(value), draft.resources
    nodes, processes = asked.node_count, asked.process_count
    if nodes is not None and processes is not None and -(-processes // each) != nodes:
        msg = f"{processes} tasks on {nodes} nodes are not {each} on each"
        raise ValueError(msg)
    asked.processes_per_node = each


def _gpus(draft: Draft, value: str) -> None:
    _share_gpus(draft, read_count(value))


def _gpus_per_node(draft: Draft, value: str) -> None:
    _share_gpus(draft, read_count(value) * _known_nodes(draft))


def _generic(draft: Draft, value: str) -> None:
    found = _GPUS.fullmatch(value)
    if found is None:
        msg = "jpsi has a word for GPUs of any type alone"
        raise ValueError(msg)
    _share_gpus(draft, int(found[1] or 1) * _known_nodes(draft))


def _share_gpus(draft: Draft, gpus: int) -> None:
    each, rest = divmod(gpus, draft.resources.computed_process_count)
    if rest or not each:
        msg = "not so many for each process"
        raise ValueError(msg)
    draft.resources.gpu_cores_per_process = each


def _known_nodes(draft: Draft) -> int:
    """Return the number of nodes that the job will have; raise ValueError if Slurm chooses it."""
    nodes = node_count(draft.resources)
    if nodes is None and draft.resources.computed_process_count > 1:
        msg = "the number of nodes is Slurm's choice"
        raise ValueError(msg)
    return nodes or 1


def _memory(draft: Draft, value: str) -> None:
    draft.resources.memory = read_amount(value, _UNITS) * _known_nodes(draft)


def _memory_per_cpu(draft: Draft, value: str) -> None:
    asked = draft.resources
    cpus = asked.computed_process_count * (asked.cpu_cores_per_process or 1)
    asked.memory = read_amount(value, _UNITS) * cpus


#: sbatch(1), OPTIONS, in the order in which they are read; a reader may use the results of those before it.
RESOURCES: Mapping[str, Reader] = {
    "nodes": count_reader("node_count"),
    "ntasks": count_reader("process_count"),
    "ntasks-per-node": _tasks_per_node,
    "cpus-per-task": count_reader("cpu_cores_per_process"),
    "gpus-per-task": count_reader("gpu_cores_per_process"),
    "gpus": _gpus,
    "gpus-per-node": _gpus_per_node,
    "gres": _generic,
    "mem": _memory,
    "mem-per-cpu": _memory_per_cpu,
    "exclusive": read_exclusive,
}
