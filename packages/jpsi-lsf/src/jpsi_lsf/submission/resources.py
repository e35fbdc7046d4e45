"""Renders a job's slots, hosts, cores, GPUs and memory as bsub options, and checks that bsub has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import attrs

from jpsi.plugin import JobSpec, Options, ResourceSpecV1, components, node_count, units

from ..config import UNITS, LsfConfig

_MEGABYTE = UNITS["MB"]


def slots_per_process(asked: ResourceSpecV1, config: LsfConfig) -> int:
    """Return the number of slots that a process takes in LSF."""
    return asked.cpu_cores_per_process or 1 if config.cores_as_slots else 1


def resource_options(spec: JobSpec, config: LsfConfig, required: str | None = None) -> Options:
    """Return the bsub options for a job's resources; bsub of LSF 10.1: -n, -R, -x, -gpu, -M.

    Args:
        spec: the job's spec.
        config: the executor's configuration, which says how the site counts slots and memory.
        required: the user's requirements for each of several components.
    """
    kinds = components(spec.resources)
    if len(kinds) > 1:
        return _options_of_several([_on_nodes(it) for it in kinds], config, required)
    return _options_of_one(kinds[0], config)


def _options_of_one(asked: ResourceSpecV1, config: LsfConfig) -> Options:
    slots, gpus, memory = slots_per_process(asked, config), asked.gpu_cores_per_process, asked.memory
    requirements = [*_span(asked, slots), *_reserved(_memory(asked, config)), *_cores(asked, config)]
    return {
        "n": asked.computed_process_count * slots,
        "R": " ".join(requirements) or None,
        "x": asked.exclusive_node_use,
        # counts per process, however many nodes LSF chooses
        "gpu": f"num={gpus}/task" if gpus else None,
        # Depending on the site this limits a process, a node, or the job. With the total memory, a job that
        # stays within its request reaches the limit in none of these cases.
        "M": None if memory is None else _amount(memory, 1, config),
    }


def _options_of_several(kinds: Sequence[ResourceSpecV1], config: LsfConfig, required: str | None) -> Options:
    """Return the options of a compound requirement; "Resource requirement strings" of the LSF 10.1 manual."""
    terms = [(it.computed_process_count * slots_per_process(it, config), it) for it in kinds]
    amounts = [it.memory for it in kinds if it.memory is not None]
    return {
        # LSF accepts only the sum of all terms
        "n": sum(slots for slots, _ in terms),
        "R": " + ".join(f"{slots}*{{{_term(it, config, required)}}}" for slots, it in terms),
        # exclusive use is a property of the whole job, if any component requests it
        "x": any(it.exclusive_node_use for it in kinds),
        "M": _amount(sum(amounts), 1, config) if len(amounts) == len(kinds) else None,
    }


def _on_nodes(asked: ResourceSpecV1) -> ResourceSpecV1:
    """Return one of several components; without a number of nodes it goes on one node."""
    return asked if node_count(asked) is not None else attrs.evolve(asked, node_count=1)


def _term(asked: ResourceSpecV1, config: LsfConfig, required: str | None) -> str:
    sections = [
        *([required] if required else []),
        *_span(asked, slots_per_process(asked, config)),
        # -gpu is for slots of one kind
        *_reserved([*_memory(asked, config), *_gpus(asked, config)]),
        *_cores(asked, config),
    ]
    return " ".join(sections)


def resource_problems(spec: JobSpec, config: LsfConfig) -> Iterator[str]:
    """Yield one sentence for each part of the resources that no bsub option can express."""
    kinds = components(spec.resources)
    if len(kinds) == 1:
        yield from _problems("resources", kinds[0], config)
        return
    for index, asked in enumerate(kinds):
        yield from _problems(f"resources.components[{index}]", _on_nodes(asked), config)


def _problems(where: str, asked: ResourceSpecV1, config: LsfConfig) -> Iterator[str]:
    processes, per_node = asked.computed_process_count, asked.computed_processes_per_node
    if node_count(asked) is not None:
        filled = -(-processes // per_node)
        if filled != asked.computed_node_count:
            yield (
                f"{where}: LSF fills nodes with {per_node} processes each, so that "
                f"{processes} of them occupy {filled} nodes, not {asked.node_count}"
            )
    elif processes > 1:
        if asked.memory is not None and config.memory_unit is not None:
            yield f"{where}.memory: LSF reserves it on each node; give node_count or processes_per_node"
        if slots_per_process(asked, config) > 1:
            yield (
                f"{where}.cpu_cores_per_process: as slots, the cores of a process could be on several "
                "nodes; give node_count or processes_per_node"
            )


def _span(asked: ResourceSpecV1, slots: int) -> list[str]:
    if node_count(asked) is not None:
        return [f"span[ptile={asked.computed_processes_per_node * slots}]"]
    return ["span[hosts=1]"] if slots > 1 else []


def _reserved(usages: Iterable[str]) -> list[str]:
    text = ",".join(usages)
    return [f"rusage[{text}]"] if text else []


def _memory(asked: ResourceSpecV1, config: LsfConfig) -> list[str]:
    if asked.memory is None:
        return []
    by_node = node_count(asked) is not None or asked.computed_process_count == 1
    shares = asked.computed_node_count if by_node else asked.computed_process_count
    method = "" if config.memory_unit is not None else "/host" if by_node else "/task"
    return [f"mem={_amount(asked.memory, shares, config)}{method}"]


def _gpus(asked: ResourceSpecV1, config: LsfConfig) -> list[str]:
    gpus = asked.gpu_cores_per_process
    if not gpus:
        return []
    # an LSF that does not know the suffix for a number's scope takes the number as per node
    if config.memory_unit is not None:
        return [f"ngpus_physical={gpus * asked.computed_processes_per_node}"]
    return [f"ngpus_physical={gpus}/task"]


def _cores(asked: ResourceSpecV1, config: LsfConfig) -> list[str]:
    cores = asked.cpu_cores_per_process
    return [] if cores is None or config.cores_as_slots else [f"affinity[core({cores})]"]


def _amount(size: int, shares: int, config: LsfConfig) -> str:
    """Return the share of `size` bytes in the site's unit, or in MB with the unit if none is configured."""
    if config.memory_unit is None:
        return f"{units(size, shares * _MEGABYTE)}MB"
    return str(units(size, shares * UNITS[config.memory_unit]))
