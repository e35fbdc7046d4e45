"""Converts the sbatch options for nodes, processes, CPUs, GPUs and memory into a ResourceSpec."""

from __future__ import annotations

import re
from collections.abc import Mapping

from jpsi.plugin import Draft, Reader, node_count
from jpsi.plugin.kit import count_reader, read_amount, read_count, read_exclusive

_MEBIBYTE = 1 << 20
# sbatch(1): --mem; without a unit it is megabytes, and all of them are powers of 1024
_UNITS = {"": _MEBIBYTE} | {
    spelling: 1 << 10 * power
    for power, unit in enumerate("kmgt", 1)
    for spelling in (unit, unit.upper(), f"{unit}b", f"{unit.upper()}B")
}
_GPUS = re.compile("gpu(?::([0-9]+))?")


def _read_tasks_per_node(draft: Draft, value: str) -> None:
    per_node, resources = read_count(value), draft.resources
    nodes, processes = resources.node_count, resources.process_count
    if nodes is not None and processes is not None and -(-processes // per_node) != nodes:
        msg = f"{processes} tasks on {nodes} nodes are not {per_node} on each"
        raise ValueError(msg)
    resources.processes_per_node = per_node


def _read_gpus(draft: Draft, value: str) -> None:
    _share_gpus(draft, read_count(value))


def _read_gpus_per_node(draft: Draft, value: str) -> None:
    _share_gpus(draft, read_count(value) * _require_node_count(draft))


def _read_gres(draft: Draft, value: str) -> None:
    match = _GPUS.fullmatch(value)
    if match is None:
        msg = "jpsi can request only GPUs of any type"
        raise ValueError(msg)
    _share_gpus(draft, int(match[1] or 1) * _require_node_count(draft))


def _share_gpus(draft: Draft, gpus: int) -> None:
    per_process, remainder = divmod(gpus, draft.resources.computed_process_count)
    if remainder or not per_process:
        msg = "the GPUs cannot be shared equally among the processes"
        raise ValueError(msg)
    draft.resources.gpu_cores_per_process = per_process


def _require_node_count(draft: Draft) -> int:
    """Return the number of nodes that the job will have; raise ValueError if Slurm chooses it."""
    nodes = node_count(draft.resources)
    if nodes is None and draft.resources.computed_process_count > 1:
        msg = "Slurm chooses the number of nodes"
        raise ValueError(msg)
    return nodes or 1


def _read_memory(draft: Draft, value: str) -> None:
    draft.resources.memory = read_amount(value, _UNITS) * _require_node_count(draft)


def _read_memory_per_cpu(draft: Draft, value: str) -> None:
    resources = draft.resources
    cpus = resources.computed_process_count * (resources.cpu_cores_per_process or 1)
    resources.memory = read_amount(value, _UNITS) * cpus


#: sbatch(1), OPTIONS, in the order in which they are read; a reader may use the results of those before it.
RESOURCE_READERS: Mapping[str, Reader] = {
    "nodes": count_reader("node_count"),
    "ntasks": count_reader("process_count"),
    "ntasks-per-node": _read_tasks_per_node,
    "cpus-per-task": count_reader("cpu_cores_per_process"),
    "gpus-per-task": count_reader("gpu_cores_per_process"),
    "gpus": _read_gpus,
    "gpus-per-node": _read_gpus_per_node,
    "gres": _read_gres,
    "mem": _read_memory,
    "mem-per-cpu": _read_memory_per_cpu,
    "exclusive": read_exclusive,
}
