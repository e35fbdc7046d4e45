"""Converts slots, hosts, cores, GPUs and memory into bsub options, and options into a ResourceSpec.

`directives` uses it to write the script of a job, and to read a script of a user.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping

import attrs

from jpsi.plugin import (
    HeterogeneousResources,
    JobAttributes,
    JobSpec,
    ResourceSpecV1,
    components,
    kit,
    node_count,
    units,
)

from .config import UNITS, LsfConfig
from .custom_options import component_requirements

_MEGABYTE = UNITS["MB"]
_SECTION = re.compile(r"\s*(?P<name>[a-z]+)\[(?P<text>(?:[^\[\]]|\[[^\[\]]*\])*)\]\s*")
_SPAN = re.compile(r"(?P<word>ptile|hosts)=(?P<count>[0-9]+)")
_CORES = re.compile(r"core\((?P<count>[0-9]+)\)")
_MEMORY = re.compile(r"mem=(?P<amount>[0-9.]+ ?[A-Za-z]*)(?P<method>/host|/task)?")
_TERM = re.compile(r"\s*(?:(?P<count>[0-9]+)\s*\*\s*)?\{(?P<text>[^{}]*)\}\s*")
_GPUS = re.compile(r"ngpus_physical=(?P<count>[0-9]+)(?P<method>/host|/task)?")
# bsub of LSF 10.1, -gpu
_GPU = re.compile(r"num=(?P<count>[0-9]+)(?P<method>/task)?(?::gmodel=(?P<model>[\w.-]+))?", re.ASCII)
# lsf.shared of LSF 10.1, RESOURCENAME
_RESOURCE = re.compile(r"\w+", re.ASCII)
# "Built-in load indices" of the LSF 10.1 manual
_LOAD_INDEX = re.compile("io|it|ls|mem|pg|r15m|r15s|r1m|status|swp|tmp|ut")
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


def _write_slots(request: kit.JobRequest) -> int:
    # LSF accepts only the sum of all terms of a compound requirement
    return sum(_count_slots(it, request.config) for it in _kinds(request.spec))


def _write_requirements(request: kit.JobRequest) -> str | None:
    """Return the requirement, compound if there are several components.

    "Resource requirement strings" of the LSF 10.1 manual.
    """
    config, kinds, licenses = request.config, _kinds(request.spec), _license_usage(request.spec)
    if len(kinds) == 1:
        return " ".join(_sections(kinds[0], config, [*_memory_usage(kinds[0], config), *licenses])) or None
    terms = []
    for index, it in enumerate(kinds):
        # -gpu is for slots of one kind
        usages = [*_memory_usage(it, config), *_gpu_usage(it, config), *([] if index else licenses)]
        required = component_requirements(request.spec)
        sections = [*([required] if required else []), *_sections(it, config, usages)]
        terms.append(f"{_count_slots(it, config)}*{{{' '.join(sections)}}}")
    return " + ".join(terms)


def _sections(requested: ResourceSpecV1, config: LsfConfig, usages: Iterable[str]) -> Iterator[str]:
    slots, usage = slots_per_process(requested, config), ",".join(usages)
    if node_count(requested) is not None:
        yield f"span[ptile={requested.computed_processes_per_node * slots}]"
    elif slots > 1:
        yield "span[hosts=1]"
    if usage:
        yield f"rusage[{usage}]"
    if requested.cpu_cores_per_process is not None and not config.cores_as_slots:
        yield f"affinity[core({requested.cpu_cores_per_process})]"


def _memory_usage(requested: ResourceSpecV1, config: LsfConfig) -> list[str]:
    if requested.memory is None:
        return []
    is_per_node = node_count(requested) is not None or requested.computed_process_count == 1
    size = requested.computed_memory_per_node if is_per_node else None
    shares = requested.computed_process_count if size is None else 1
    method = "" if config.memory_unit is not None else "/host" if is_per_node else "/task"
    return [f"mem={_format_amount(size or requested.memory, shares, config)}{method}"]


def _license_usage(spec: JobSpec) -> list[str]:
    counts = spec.attributes.license_counts()
    if own := sorted(filter(_LOAD_INDEX.fullmatch, counts)):
        raise ValueError(f"attributes.licenses: {', '.join(own)} is a load index of LSF, and no license")
    wrong = [name for name in counts if not _RESOURCE.fullmatch(name)]
    if wrong:
        msg = f"attributes.licenses: {wrong[0]!r} is no resource of LSF: letters, digits and _ alone"
        raise ValueError(msg)
    return [f"{name}={count}" for name, count in counts.items()]


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


def _write_gpus(request: kit.JobRequest) -> str | None:
    kinds, model = _kinds(request.spec), kit.gpu_type(request)
    if model and len(kinds) > 1 and any(it.gpu_cores_per_process for it in kinds):
        raise ValueError("attributes.gpu_type: LSF has it for slots of one kind alone")
    gpus = kinds[0].gpu_cores_per_process if len(kinds) == 1 else None
    # counts per process, however many nodes LSF chooses
    return f"num={gpus}/task{f':gmodel={model}' if model else ''}" if gpus else None


def _write_memory_limit(request: kit.JobRequest) -> str | None:
    # Depending on the site this limits a process, a node, or the job. With the total memory, a job that stays
    # within its request reaches the limit in none of these cases.
    amounts = [it.memory for it in _kinds(request.spec)]
    known = [it for it in amounts if it is not None]
    return _format_amount(sum(known), 1, request.config) if len(known) == len(amounts) else None


def _read_requirements(draft: kit.Draft, value: str) -> None:
    """Read the requirements that a spec can express; keep the rest as the custom attribute `R`."""
    remainder = _read_compound(draft, value) if "{" in value else _read_sections(draft, value)
    if remainder:
        draft.keep("R", remainder)


def _read_compound(draft: kit.Draft, value: str) -> str:
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
    is_whole = not remaining and all((it.process_count or 0) > 0 for it in parsed_components)
    if not is_whole or len(parsed_components) == 1 or len(remainders) > 1:
        raise ValueError(_NOT_EXPRESSIBLE)
    if any(node_count(it) is None and it.computed_process_count > 1 for it in parsed_components):
        draft.lose("R", value, "jpsi has the slots of a term on one node if it has no span")
    draft.spec.resources = HeterogeneousResources(parsed_components)
    return remainders.pop()


def _read_sections(draft: kit.Draft, value: str) -> str:
    """Read the sections that a spec can express into the draft, and return the rest."""
    sections = list(_SECTION.finditer(value))
    if "".join(it[0] for it in sections) != value:
        raise ValueError(_NOT_EXPRESSIBLE)
    rest = list(sections)
    for name, read in _SECTION_READERS.items():
        for section in [it for it in sections if it["name"] == name]:
            with contextlib.suppress(ValueError):
                read(draft, section["text"])
                rest.remove(section)
    return " ".join(it[0].strip() for it in rest)


def _match(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    match = pattern.fullmatch(text)
    if match is None:
        raise ValueError(_NOT_EXPRESSIBLE)
    return match


def _read_span(draft: kit.Draft, text: str) -> None:
    span = _match(_SPAN, text)
    if span["word"] == "ptile":
        draft.resources.processes_per_node = kit.read_count(span["count"])
    elif span["count"] == "1":
        draft.resources.node_count = 1
    else:
        raise ValueError(_NOT_EXPRESSIBLE)


def _read_cores(draft: kit.Draft, text: str) -> None:
    draft.resources.cpu_cores_per_process = kit.read_count(_match(_CORES, text)["count"])


def _read_usage(draft: kit.Draft, text: str) -> None:
    """Read memory and GPUs of a `rusage` section, all of it or nothing."""
    resources = draft.resources
    found: dict[str, int] = {}
    for usage in map(str.strip, text.split(",")):
        memory = _MEMORY.fullmatch(usage)
        if memory is None:
            name, value = "gpu_cores_per_process", _process_share(resources, _match(_GPUS, usage))
        else:
            name, value = "memory", _job_total(resources, memory["method"], _amount(draft, memory["amount"]))
        if name in found:
            raise ValueError(_NOT_EXPRESSIBLE)
        found[name] = value
    for name, value in found.items():
        setattr(resources, name, value)


# the total memory depends on the nodes, so `span` comes first
_SECTION_READERS: Mapping[str, kit.Reader] = {
    "span": _read_span,
    "affinity": _read_cores,
    "rusage": _read_usage,
}


def _job_total(resources: ResourceSpecV1, method: str | None, share: int) -> int:
    """Return the job's total of a resource from the share of each node or process."""
    if method == "/task":
        return share * resources.computed_process_count
    nodes = node_count(resources) or (1 if resources.computed_process_count == 1 else 0)
    if not nodes:
        raise ValueError("the number of nodes is unknown until LSF places the job")
    # the last node may have fewer processes
    processes = resources.computed_process_count
    return share * processes // min(resources.computed_processes_per_node, processes)


def _process_share(resources: ResourceSpecV1, gpus: re.Match[str]) -> int:
    """Return the GPUs of each process."""
    return kit.share_gpus(_job_total(resources, gpus["method"], int(gpus["count"])), resources)


def _amount(draft: kit.Draft, text: str) -> int:
    """Return an amount of memory; a number without a unit is in the site's unit, if that is configured."""
    unit = draft.config.memory_unit
    sizes = {
        spelling: size
        for name, size in UNITS.items()
        for spelling in (name, name.lower(), name[0], name[0].lower())
    }
    return kit.read_amount(text, sizes if unit is None else {**sizes, "": UNITS[unit]})


def _check_memory_limit(draft: kit.Draft, value: str) -> None:
    amounts = [component.memory for component in components(draft.spec.resources)]
    known = [amount for amount in amounts if amount is not None]
    if len(known) < len(amounts) or _amount(draft, value) != sum(known):
        raise ValueError("it may be a limit for a process, for a node, or for the job")


def _read_gpus(draft: kit.Draft, value: str) -> None:
    if isinstance(draft.spec.resources, HeterogeneousResources):
        draft.lose("gpu", value, "it is for slots of one kind")
        return
    gpus = _match(_GPU, value)
    draft.resources.gpu_cores_per_process = _process_share(draft.resources, gpus)
    draft.attributes.gpu_type = gpus["model"]


#: bsub of LSF 10.1: the options for resources, in the order in which they are written.
RESOURCE_OPTIONS: Mapping[str, kit.Option] = {
    "n": kit.count_option("process_count", _write_slots),
    # the readers of the options that are read last must handle several components
    "R": kit.Option(_write_requirements, _read_requirements, expresses=("licenses",), is_read_last=True),
    # exclusive use is a property of the whole job, if any component requests it
    "x": kit.Option(lambda it: any(kind.exclusive_node_use for kind in _kinds(it.spec)), kit.read_exclusive),
    "gpu": kit.Option(_write_gpus, _read_gpus, expresses=("gpu_type",), is_read_last=True),
    "M": kit.Option(_write_memory_limit, _check_memory_limit, is_read_last=True),
}
