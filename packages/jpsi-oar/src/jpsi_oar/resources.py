"""Writes the resources of a job as the hierarchies of `oarsub -l`, and reads those that jpsi can express."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta

from jpsi.plugin import JobSpec, ResourceSpecV1, kit, node_count, resources, units, walltime

from .config import OarConfig

_SECOND = timedelta(seconds=1)
# oarsub(1), -l: hour:mn:sec, hour:mn or hour, after the last comma
_WALLTIME = re.compile(
    r"(?:(?P<hierarchy>.*),|)walltime=(?P<hours>\d+)(?::(?P<minutes>\d+))?(?::(?P<seconds>\d+))?"
)


def resource_problems(spec: JobSpec, config: OarConfig) -> Iterator[str]:
    """Yield why no tree expresses the resources of a spec, one sentence each."""
    requested = resources(spec)
    is_exclusive, gpus = requested.exclusive_node_use, requested.gpu_cores_per_process
    if requested.memory is not None and not is_exclusive:
        yield "resources.memory: OAR limits no memory; leave it out, or have whole nodes (exclusive_node_use)"
    if is_exclusive and node_count(requested) is None and requested.computed_process_count > 1:
        yield "resources.exclusive_node_use: OAR gives whole nodes by their number, so node_count is needed"
    if is_exclusive and gpus:
        yield "resources.gpu_cores_per_process: with exclusive_node_use, a job has all GPUs of its nodes"
    if gpus and config.gpu_resource is None:
        yield "GPUs: name the resource that counts them as `gpu_resource` in the executor's configuration"


def write_resources(request: kit.JobRequest, own: str | None) -> str | None:
    """Return the value of `-l`; `own` is what the user has set past jpsi, to which this is appended."""
    limit = walltime(request.spec, request.config, _SECOND)
    hours = "" if limit is None else f"walltime={limit // 3600}:{limit // 60 % 60}:{limit % 60}"
    if own is not None:
        return f",{hours}" if hours and "walltime" not in own else None
    asked = request.spec.resources
    hierarchy = "" if asked is None else _hierarchy(request.resources, request.config)
    return ",".join(filter(None, (hierarchy, hours))) or None


def _hierarchy(requested: ResourceSpecV1, config: OarConfig) -> str:
    """Return the tree of a job's nodes, GPUs and cores."""
    processes, nodes = requested.computed_process_count, node_count(requested)
    cores, gpus = requested.cpu_cores_per_process or 1, requested.gpu_cores_per_process or 0
    if requested.exclusive_node_use:
        return f"/{config.node_resource}={nodes or 1}"

    def leaves(count: int) -> str:
        if not gpus:
            return f"/{config.core_resource}={count * cores}"
        # below a GPU are the cores next to it
        per_gpu = requested.cpu_cores_per_process and f"/{config.core_resource}={units(cores, gpus)}"
        return f"/{config.gpu_resource}={count * gpus}{per_gpu or ''}"

    if nodes is not None:
        return f"/{config.node_resource}={nodes}{leaves(units(processes, nodes))}"
    if cores == 1 and gpus <= 1:
        return leaves(processes)
    # what a process needs is on one node
    return "+".join([f"/{config.node_resource}=1{leaves(1)}"] * processes)


def read_resources(draft: kit.Draft, value: str) -> None:
    """Read the walltime and a tree of nodes and cores; keep any other tree."""
    limit = _WALLTIME.fullmatch(value)
    hierarchy = value if limit is None else limit["hierarchy"] or ""
    if limit is not None:
        hours, minutes, seconds = (int(limit[it] or 0) for it in ("hours", "minutes", "seconds"))
        draft.attributes.duration = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    config = draft.config
    node = rf"(?:(?:{config.node_resource}|nodes|host|network_address)=(?P<nodes>[1-9]\d*))?"
    core = rf"(?:(?:{config.core_resource}|core)=(?P<cores>[1-9]\d*))?"
    tree = re.fullmatch(rf"/?{node}/?{core}", hierarchy)
    if tree is None:
        draft.keep("resource", hierarchy)
        return
    requested, cores = draft.resources, tree["cores"]
    if tree["nodes"]:
        requested.node_count = int(tree["nodes"])
        requested.processes_per_node = int(cores) if cores else None
        requested.exclusive_node_use = not cores
    elif cores:
        requested.process_count = int(cores)
