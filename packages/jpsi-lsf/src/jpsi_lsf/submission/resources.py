"""Renders a job's slots, hosts, cores, GPUs and memory as bsub options, and checks that bsub has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import attrs

from jpsi.plugin import JobSpec, Options, ResourceSpecV1, components, node_count, units

from ..config import UNITS, LsfConfig

_MEGABYTE = UNITS["MB"]


def slots_per_process(requested: ResourceSpecV1, config: LsfConfig) -> int:
    """Return the number of slots that a process takes in LSF."""
    return requested.cpu_cores_per_process or 1 if config.cores_as_slots else 1


def resource_options(spec: JobSpec, config: LsfConfig, required: str | None = None) -> Options:
    """Return the bsub options for a job's resources; bsub of LSF 10.1: -n, -R, -x, -gpu, -M.

    Args:
        spec: the job's spec.
        config: the executor's configuration, which says how the site counts slots and memory.
        required: the user's requirements for each of several components.
    """
    all_components = components(spec.resources)
    if len(all_components) > 1:
        return _compound_options(
            [_with_node_count(component) for component in all_components], config, required
        )
    return _single_options(all_components[0], config)


def _single_options(requested: ResourceSpecV1, config: LsfConfig) -> Options:
    slots, gpus, memory = (
        slots_per_process(requested, config),
        requested.gpu_cores_per_process,
        requested.memory,
    )
    requirements = [
        *_span_section(requested, slots),
        *_rusage_section(_memory_usage(requested, config)),
        *_affinity_section(requested, config),
    ]
    return {
        "n": requested.computed_process_count * slots,
        "R": " ".join(requirements) or None,
        "x": requested.exclusive_node_use,
        # counts per process, however many nodes LSF chooses
        "gpu": f"num={gpus}/task" if gpus else None,
        # Depending on the site this limits a process, a node, or the job. With the total memory, a job that
        # stays within its request reaches the limit in none of these cases.
        "M": None if memory is None else _format_amount(memory, 1, config),
    }


def _compound_options(
    all_components: Sequence[ResourceSpecV1], config: LsfConfig, required: str | None
) -> Options:
    """Return the options of a compound requirement; "Resource requirement strings" of the LSF 10.1 manual."""
    terms = [
        (component.computed_process_count * slots_per_process(component, config), component)
        for component in all_components
    ]
    amounts = [component.memory for component in all_components if component.memory is not None]
    return {
        # LSF accepts only the sum of all terms
        "n": sum(slots for slots, _ in terms),
        "R": " + ".join(
            f"{slots}*{{{_requirement_term(component, config, required)}}}" for slots, component in terms
        ),
        # exclusive use is a property of the whole job, if any component requests it
        "x": any(component.exclusive_node_use for component in all_components),
        "M": _format_amount(sum(amounts), 1, config) if len(amounts) == len(all_components) else None,
    }


def _with_node_count(requested: ResourceSpecV1) -> ResourceSpecV1:
    """Return one of several components; without a number of nodes it goes on one node."""
    return requested if node_count(requested) is not None else attrs.evolve(requested, node_count=1)


def _requirement_term(requested: ResourceSpecV1, config: LsfConfig, required: str | None) -> str:
    sections = [
        *([required] if required else []),
        *_span_section(requested, slots_per_process(requested, config)),
        # -gpu is for slots of one kind
        *_rusage_section([*_memory_usage(requested, config), *_gpu_usage(requested, config)]),
        *_affinity_section(requested, config),
    ]
    return " ".join(sections)


def resource_problems(spec: JobSpec, config: LsfConfig) -> Iterator[str]:
    """Yield one sentence for each part of the resources that no bsub option can express."""
    all_components = components(spec.resources)
    if len(all_components) == 1:
        yield from _find_problems("resources", all_components[0], config)
        return
    for index, requested in enumerate(all_components):
        yield from _find_problems(f"resources.components[{index}]", _with_node_count(requested), config)


def _find_problems(field: str, requested: ResourceSpecV1, config: LsfConfig) -> Iterator[str]:
    processes, per_node = requested.computed_process_count, requested.computed_processes_per_node
    if node_count(requested) is not None:
        occupied = -(-processes // per_node)
        if occupied != requested.computed_node_count:
            yield (
                f"{field}: LSF fills nodes with {per_node} processes each, so that "
                f"{processes} of them occupy {occupied} nodes, not {requested.node_count}"
            )
    elif processes > 1:
        if requested.memory is not None and config.memory_unit is not None:
            yield f"{field}.memory: LSF reserves it on each node; give node_count or processes_per_node"
        if slots_per_process(requested, config) > 1:
            yield (
                f"{field}.cpu_cores_per_process: as slots, the cores of a process could be on several "
                "nodes; give node_count or processes_per_node"
            )


def _span_section(requested: ResourceSpecV1, slots: int) -> list[str]:
    if node_count(requested) is not None:
        return [f"span[ptile={requested.computed_processes_per_node * slots}]"]
    return ["span[hosts=1]"] if slots > 1 else []


def _rusage_section(usages: Iterable[str]) -> list[str]:
    text = ",".join(usages)
    return [f"rusage[{text}]"] if text else []


def _memory_usage(requested: ResourceSpecV1, config: LsfConfig) -> list[str]:
    if requested.memory is None:
        return []
    is_per_node = node_count(requested) is not None or requested.computed_process_count == 1
    shares = requested.computed_node_count if is_per_node else requested.computed_process_count
    method = "" if config.memory_unit is not None else "/host" if is_per_node else "/task"
    return [f"mem={_format_amount(requested.memory, shares, config)}{method}"]


def _gpu_usage(requested: ResourceSpecV1, config: LsfConfig) -> list[str]:
    gpus = requested.gpu_cores_per_process
    if not gpus:
        return []
    # an LSF that does not know the suffix for a number's scope takes the number as per node
    if config.memory_unit is not None:
        return [f"ngpus_physical={gpus * requested.computed_processes_per_node}"]
    return [f"ngpus_physical={gpus}/task"]


def _affinity_section(requested: ResourceSpecV1, config: LsfConfig) -> list[str]:
    cores = requested.cpu_cores_per_process
    return [] if cores is None or config.cores_as_slots else [f"affinity[core({cores})]"]


def _format_amount(size: int, shares: int, config: LsfConfig) -> str:
    """Return the share of `size` bytes in the site's unit, or in MB with the unit if none is configured."""
    if config.memory_unit is None:
        return f"{units(size, shares * _MEGABYTE)}MB"
    return str(units(size, shares * UNITS[config.memory_unit]))
