"""Converts slots, hosts, cores, GPUs and memory into bsub options, and options into a ResourceSpec."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

import attrs

from jpsi.plugin import (
    HeterogeneousResources,
    JobAttributes,
    JobSpec,
    ResourceSpecV1,
    components,
    node_count,
    units,
)
from jpsi.plugin.kit import Draft, JobRequest, Option, count_option, read_amount, read_exclusive

from .bsub_options import component_requirements
from .config import UNITS, LsfConfig

_MEGABYTE = UNITS["MB"]
_SECTION = re.compile(r"\s*(?P<name>[a-z]+)\[(?P<text>(?:[^\[\]]|\[[^\[\]]*\])*)\]\s*")
_SPAN = re.compile(r"(?P<word>ptile|hosts)=(?P<count>[0-9]+)")
_CORES = re.compile(r"core\((?P<count>[0-9]+)\)")
_MEMORY = re.compile(r"mem=(?P<amount>[0-9.]+ ?[A-Za-z]*)(?P<method>/host|/task)?")
_TERM = re.compile(r"\s*(?:(?P<count>[0-9]+)\s*\*\s*)?\{(?P<text>[^{}]*)\}\s*")
_GPUS = re.compile(r"ngpus_physical=(?P<count>[0-9]+)(?P<method>/host|/task)?")
_GPU = re.compile(r"num=(?P<count>[0-9]+)(?P<method>/task)?")
_NOT_EXPRESSIBLE = "jpsi cannot express it"


def slots_per_process(requested: ResourceSpecV1, config: LsfConfig) -> int:
    """Return the number of slots that a process takes in LSF."""
    return requested.cpu_cores_per_process or 1 if config.cores_as_slots else 1


def resource_problems(spec: JobSpec, config: LsfConfig) -> Iterator[str]:
    """Yield one sentence for each part of the resources that no bsub option can express."""
    kinds = _kinds(spec)
    for index, requested in enumerate(kinds):
        field = "resources" if len(kinds) == 1 else f"resources.components[{index}]"
        yield from _find_problems(field, requested, config)


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


def _kinds(spec: JobSpec) -> list[ResourceSpecV1]:
    """Return the components; each of several goes on one node unless it has a number of nodes."""
    kinds = list(components(spec.resources))
    if len(kinds) == 1:
        return kinds
    return [it if node_count(it) is not None else attrs.evolve(it, node_count=1) for it in kinds]


def _count_slots(requested: ResourceSpecV1, config: LsfConfig) -> int:
    return requested.computed_process_count * slots_per_process(requested, config)


def _write_slots(request: JobRequest) -> int:
    # LSF accepts only the sum of all terms of a compound requirement
    return sum(_count_slots(it, request.config) for it in _kinds(request.spec))


def _write_requirements(request: JobRequest) -> str | None:
    """Return the requirement, compound if there are several components.

    "Resource requirement strings" of the LSF 10.1 manual.
    """
    config, kinds = request.config, _kinds(request.spec)
    if len(kinds) == 1:
        return " ".join(_sections(kinds[0], config, _memory_usage(kinds[0], config))) or None
    terms = []
    for it in kinds:
        # -gpu is for slots of one kind
        usages = [*_memory_usage(it, config), *_gpu_usage(it, config)]
        required = component_requirements(request.spec)
        sections = [*([required] if required else []), *_sections(it, config, usages)]
        terms.append(f"{_count_slots(it, config)}*{{{' '.join(sections)}}}")
    return " + ".join(terms)


def _sections(requested: ResourceSpecV1, config: LsfConfig, usages: Iterable[str]) -> Iterator[str]:
    slots, cores, usage = (
        slots_per_process(requested, config),
        requested.cpu_cores_per_process,
        ",".join(usages),
    )
    if node_count(requested) is not None:
        yield f"span[ptile={requested.computed_processes_per_node * slots}]"
    elif slots > 1:
        yield "span[hosts=1]"
    if usage:
        yield f"rusage[{usage}]"
    if cores is not None and not config.cores_as_slots:
        yield f"affinity[core({cores})]"


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


def _format_amount(size: int, shares: int, config: LsfConfig) -> str:
    """Return the share of `size` bytes in the site's unit, or in MB with the unit if none is configured."""
    if config.memory_unit is None:
        return f"{units(size, shares * _MEGABYTE)}MB"
    return str(units(size, shares * UNITS[config.memory_unit]))


def _write_gpus(request: JobRequest) -> str | None:
    kinds = _kinds(request.spec)
    gpus = kinds[0].gpu_cores_per_process if len(kinds) == 1 else None
    # counts per process, however many nodes LSF chooses
    return f"num={gpus}/task" if gpus else None


def _write_memory_limit(request: JobRequest) -> str | None:
    # Depending on the site this limits a process, a node, or the job. With the total memory, a job that stays
    # within its request reaches the limit in none of these cases.
    amounts = [it.memory for it in _kinds(request.spec)]
    known = [it for it in amounts if it is not None]
    return _format_amount(sum(known), 1, request.config) if len(known) == len(amounts) else None


def _read_requirements(draft: Draft, value: str) -> None:
    """Read the requirements that a spec can express; keep the rest as the custom attribute `R`."""
    remainder = _read_compound(draft, value) if "{" in value else _read_sections(draft, value)
    if remainder:
        draft.keep("R", remainder)


def _read_compound(draft: Draft, value: str) -> str:
    """Read terms such as `2*{span[ptile=1]}`, and return the requirements that a spec cannot express.

    These must be the same in all terms. The last term needs no number of slots if the total is known.
    """
    resources, parsed_components, remainders = draft.resources, [], set()
    terms = [_TERM.fullmatch(text) for text in value.split("+")]
    remaining = resources.process_count
    for term in terms:
        if term is None or (term["count"] is None and (remaining is None or term is not terms[-1])):
            raise ValueError(_NOT_EXPRESSIBLE)
        processes = remaining if term["count"] is None else int(term["count"])
        component_draft = attrs.evolve(draft, spec=JobSpec(attributes=JobAttributes()))
        component_draft.spec.resources = ResourceSpecV1(
            process_count=processes, exclusive_node_use=resources.exclusive_node_use
        )
        remainders.add(_read_sections(component_draft, term["text"]))
        parsed_components.append(component_draft.resources)
        remaining = None if remaining is None else remaining - (processes or 0)
    if (
        remaining
        or len(parsed_components) == 1
        or len(remainders) > 1
        or any((it.process_count or 0) < 1 for it in parsed_components)
    ):
        raise ValueError(_NOT_EXPRESSIBLE)
    if any(node_count(it) is None and it.computed_process_count > 1 for it in parsed_components):
        draft.lose("R", value, "jpsi has the slots of a term on one node if it has no span")
    draft.spec.resources = HeterogeneousResources(parsed_components)
    return remainders.pop()


def _read_sections(draft: Draft, value: str) -> str:
    """Read the sections that a spec can express into the draft, and return the rest."""
    sections = list(_SECTION.finditer(value))
    if "".join(it[0] for it in sections) != value:
        raise ValueError(_NOT_EXPRESSIBLE)
    # the total memory depends on the nodes, so `span` comes first
    readers: Mapping[str, Callable[[Draft, str], bool]] = {
        "span": _read_span,
        "affinity": _read_cores,
        "rusage": _read_usage,
    }
    ordered = [it for name in readers for it in sections if it["name"] == name]
    expressed = [it for it in ordered if readers[it["name"]](draft, it["text"])]
    return " ".join(it[0].strip() for it in sections if it not in expressed)


def _read_span(draft: Draft, text: str) -> bool:
    match = _SPAN.fullmatch(text)
    if match is None or not int(match["count"]):
        return False
    if match["word"] == "ptile":
        draft.resources.processes_per_node = int(match["count"])
    elif match["count"] != "1":
        return False
    else:
        draft.resources.node_count = 1
    return True


def _read_cores(draft: Draft, text: str) -> bool:
    match = _CORES.fullmatch(text)
    if match is None or not int(match["count"]):
        return False
    draft.resources.cpu_cores_per_process = int(match["count"])
    return True


def _read_usage(draft: Draft, text: str) -> bool:
    """Read memory and GPUs of a `rusage` section, all of it or nothing; return True if it was read."""
    resources, usages = draft.resources, [it.strip() for it in text.split(",")]
    gpus = [match for it in usages if (match := _GPUS.fullmatch(it))]
    memory = [match for it in usages if (match := _MEMORY.fullmatch(it))]
    if len(gpus) + len(memory) != len(usages) or len(gpus) > 1 or len(memory) > 1:
        return False
    try:
        totals = [_job_total(resources, it["method"], _amount(draft, it["amount"])) for it in memory]
        shares = [_process_share(resources, it) for it in gpus]
    except ValueError:
        return False
    resources.memory = next(iter(totals), resources.memory)
    resources.gpu_cores_per_process = next(iter(shares), resources.gpu_cores_per_process)
    return True


def _job_total(resources: ResourceSpecV1, method: str | None, share: int) -> int:
    """Return the job's total of a resource from the share of each node or process."""
    if method == "/task":
        return share * resources.computed_process_count
    nodes = node_count(resources) or (1 if resources.computed_process_count == 1 else 0)
    if not nodes:
        msg = "the number of nodes is unknown until LSF places the job"
        raise ValueError(msg)
    return share * nodes


def _process_share(resources: ResourceSpecV1, gpus: re.Match[str]) -> int:
    """Return the GPUs of each process."""
    total = _job_total(resources, gpus["method"], int(gpus["count"]))
    per_process, remainder = divmod(total, resources.computed_process_count)
    if remainder or not per_process:
        msg = "the GPUs cannot be shared equally among the processes"
        raise ValueError(msg)
    return per_process


def _amount(draft: Draft, text: str) -> int:
    """Return an amount of memory; a number without a unit is in the site's unit, if that is configured."""
    unit = draft.config.memory_unit
    sizes = {
        spelling: size
        for name, size in UNITS.items()
        for spelling in (name, name.lower(), name[0], name[0].lower())
    }
    return read_amount(text, sizes if unit is None else {**sizes, "": UNITS[unit]})


def _check_memory_limit(draft: Draft, value: str) -> None:
    amounts = [component.memory for component in components(draft.spec.resources)]
    known = [amount for amount in amounts if amount is not None]
    if len(known) < len(amounts) or _amount(draft, value) != sum(known):
        msg = "it may be a limit for a process, for a node, or for the job"
        raise ValueError(msg)


def _read_gpus(draft: Draft, value: str) -> None:
    if isinstance(draft.spec.resources, HeterogeneousResources):
        draft.lose("gpu", value, "it is for slots of one kind")
        return
    match = _GPU.fullmatch(value)
    if match is None:
        raise ValueError(_NOT_EXPRESSIBLE)
    draft.resources.gpu_cores_per_process = _process_share(draft.resources, match)


#: bsub of LSF 10.1: the options for resources, in the order in which they are written.
RESOURCE_OPTIONS: Mapping[str, Option] = {
    "n": count_option("process_count", _write_slots),
    # the readers of the options that are read last must handle several components
    "R": Option(_write_requirements, _read_requirements, is_read_last=True),
    # exclusive use is a property of the whole job, if any component requests it
    "x": Option(lambda it: any(kind.exclusive_node_use for kind in _kinds(it.spec)), read_exclusive),
    "gpu": Option(_write_gpus, _read_gpus, is_read_last=True),
    "M": Option(_write_memory_limit, _check_memory_limit, is_read_last=True),
}
