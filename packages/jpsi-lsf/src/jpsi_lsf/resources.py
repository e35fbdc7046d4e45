"""What a job asks for in slots, hosts, cores, GPUs and memory, as bsub takes it."""

from __future__ import annotations

from collections.abc import Iterator

from jpsi.plugin import Options, ResourceSpecV1, node_count, units

from .config import UNITS, LsfConfig

_MEGABYTE = UNITS["MB"]


def slots_per_process(asked: ResourceSpecV1, config: LsfConfig) -> int:
    """How many slots LSF counts for one process."""
    return asked.cpu_cores_per_process or 1 if config.cores_as_slots else 1


def resource_options(asked: ResourceSpecV1, config: LsfConfig) -> Options:
    """The options of bsub; bsub of LSF 10.1: -n, -R, -x, -gpu, -M."""
    slots, gpus, memory = slots_per_process(asked, config), asked.gpu_cores_per_process, asked.memory
    requirements = [*_span(asked, slots), *_reserved(asked, config), *_cores(asked, config)]
    return {
        "n": asked.computed_process_count * slots,
        "R": " ".join(requirements) or None,
        "x": asked.exclusive_node_use,
        # for each process, however many nodes LSF chooses
        "gpu": f"num={gpus}/task" if gpus else None,
        # Depending on the site it is a limit for a process, for a node, or for the job: the whole is none
        # that the job could reach while it has no more than it asked for.
        "M": None if memory is None else _amount(memory, 1, config),
    }


def resource_problems(asked: ResourceSpecV1, config: LsfConfig) -> Iterator[str]:
    """What no option can say, one sentence each."""
    processes, per_node = asked.computed_process_count, asked.computed_processes_per_node
    if node_count(asked) is not None:
        filled = -(-processes // per_node)
        if filled != asked.computed_node_count:
            yield (
                f"resources: LSF fills nodes with {per_node} processes each, so that "
                f"{processes} of them occupy {filled} nodes, not {asked.node_count}"
            )
    elif processes > 1:
        if asked.memory is not None and config.memory_unit is not None:
            yield "resources.memory: LSF reserves it on each node; give node_count or processes_per_node"
        if slots_per_process(asked, config) > 1:
            yield (
                "resources.cpu_cores_per_process: as slots, the cores of a process could be on several "
                "nodes; give node_count or processes_per_node"
            )


def _span(asked: ResourceSpecV1, slots: int) -> list[str]:
    if node_count(asked) is not None:
        return [f"span[ptile={asked.computed_processes_per_node * slots}]"]
    return ["span[hosts=1]"] if slots > 1 else []


def _reserved(asked: ResourceSpecV1, config: LsfConfig) -> list[str]:
    if asked.memory is None:
        return []
    by_node = node_count(asked) is not None or asked.computed_process_count == 1
    shares = asked.computed_node_count if by_node else asked.computed_process_count
    method = "" if config.memory_unit is not None else "/host" if by_node else "/task"
    return [f"rusage[mem={_amount(asked.memory, shares, config)}{method}]"]


def _cores(asked: ResourceSpecV1, config: LsfConfig) -> list[str]:
    cores = asked.cpu_cores_per_process
    return [] if cores is None or config.cores_as_slots else [f"affinity[core({cores})]"]


def _amount(size: int, shares: int, config: LsfConfig) -> str:
    """A share of `size` bytes, in the unit that the site counts in or else with its unit."""
    if config.memory_unit is None:
        return f"{units(size, shares * _MEGABYTE)}MB"
    return str(units(size, shares * UNITS[config.memory_unit]))
