"""What a job asks for in slots, hosts, cores, GPUs and memory, as bsub takes it."""

from __future__ import annotations

from collections.abc import Iterator

from jpsi.plugin import ResourceSpecV1, units

from .config import UNITS, LsfConfig

_MEGABYTE = UNITS["MB"]


def slots_per_process(resources: object, config: LsfConfig) -> int:
    """How many slots LSF counts for one process."""
    if isinstance(resources, ResourceSpecV1) and config.cores_as_slots:
        return resources.cpu_cores_per_process or 1
    return 1


def resource_options(resources: object, config: LsfConfig) -> dict[str, str | None]:
    """The options of bsub; bsub of LSF 10.1: -n, -R, -x, -gpu, -M."""
    if not isinstance(resources, ResourceSpecV1):
        return {"n": "1"}
    slots = slots_per_process(resources, config)
    options: dict[str, str | None] = {"n": str(resources.computed_process_count * slots)}
    requirements = [*_span(resources, slots), *_reserved(resources, config), *_cores(resources, config)]
    if requirements:
        options["R"] = " ".join(requirements)
    if resources.exclusive_node_use:
        options["x"] = None
    if resources.gpu_cores_per_process:
        # for each process, however many nodes LSF chooses
        options["gpu"] = f"num={resources.gpu_cores_per_process}/task"
    if resources.memory is not None:
        # Depending on the site it is a limit for a process, for a node, or for the job: the whole is none
        # that the job could reach while it has no more than it asked for.
        options["M"] = _amount(resources.memory, 1, config)
    return options


def resource_problems(resources: object, config: LsfConfig) -> Iterator[str]:
    """What no option can say, one sentence each."""
    if not isinstance(resources, ResourceSpecV1):
        return
    if _is_spread(resources):
        per_node = resources.computed_processes_per_node
        filled = -(-resources.computed_process_count // per_node)
        if filled != resources.computed_node_count:
            yield (
                f"resources: LSF fills nodes with {per_node} processes each, so that "
                f"{resources.computed_process_count} of them occupy {filled} nodes, "
                f"not {resources.node_count}"
            )
    elif resources.computed_process_count > 1:
        if resources.memory is not None and config.memory_unit is not None:
            yield "resources.memory: LSF reserves it on each node; give node_count or processes_per_node"
        if slots_per_process(resources, config) > 1:
            yield (
                "resources.cpu_cores_per_process: as slots, the cores of a process could be on several "
                "nodes; give node_count or processes_per_node"
            )


def _is_spread(resources: ResourceSpecV1) -> bool:
    """Whether the job says how its processes are spread over nodes; else that is LSF's to choose."""
    return resources.node_count is not None or resources.processes_per_node is not None


def _span(resources: ResourceSpecV1, slots: int) -> list[str]:
    if _is_spread(resources):
        return [f"span[ptile={resources.computed_processes_per_node * slots}]"]
    return ["span[hosts=1]"] if slots > 1 else []


def _reserved(resources: ResourceSpecV1, config: LsfConfig) -> list[str]:
    if resources.memory is None:
        return []
    by_node = _is_spread(resources) or resources.computed_process_count == 1
    shares = resources.computed_node_count if by_node else resources.computed_process_count
    method = "" if config.memory_unit is not None else "/host" if by_node else "/task"
    return [f"rusage[mem={_amount(resources.memory, shares, config)}{method}]"]


def _cores(resources: ResourceSpecV1, config: LsfConfig) -> list[str]:
    cores = resources.cpu_cores_per_process
    return [] if cores is None or config.cores_as_slots else [f"affinity[core({cores})]"]


def _amount(size: int, shares: int, config: LsfConfig) -> str:
    """A share of `size` bytes, in the unit that the site counts in or else with its unit."""
    if config.memory_unit is None:
        return f"{units(size, shares * _MEGABYTE)}MB"
    return str(units(size, shares * UNITS[config.memory_unit]))
