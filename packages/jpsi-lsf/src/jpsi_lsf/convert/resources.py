"""Converts the bsub options for slots, hosts, cores, GPUs and memory into a ResourceSpec."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial

import attrs

from jpsi.plugin import (
    Draft,
    HeterogeneousResources,
    JobAttributes,
    JobSpec,
    Reader,
    ResourceSpecV1,
    components,
    node_count,
)
from jpsi.plugin.kit import count_reader, read_amount, read_exclusive

from ..config import UNITS, LsfConfig

_SECTION = re.compile(r"\s*(?P<name>[a-z]+)\[(?P<text>(?:[^\[\]]|\[[^\[\]]*\])*)\]\s*")
_SPAN = re.compile(r"(?P<word>ptile|hosts)=(?P<count>[0-9]+)")
_CORES = re.compile(r"core\((?P<count>[0-9]+)\)")
_MEMORY = re.compile(r"mem=(?P<amount>[0-9.]+ ?[A-Za-z]*)(?P<method>/host|/task)?")
_TERM = re.compile(r"\s*(?:(?P<count>[0-9]+)\s*\*\s*)?\{(?P<text>[^{}]*)\}\s*")
_GPUS = re.compile(r"ngpus_physical=(?P<count>[0-9]+)(?P<method>/host|/task)?")
_GPU = re.compile(r"num=(?P<count>[0-9]+)(?P<method>/task)?")
_NOT_EXPRESSIBLE = "jpsi cannot express it"


def resource_readers(config: LsfConfig) -> Mapping[str, Reader]:
    """Return the readers of the bsub options in order; a reader may use the results of those before it."""
    return {
        "n": count_reader("process_count"),
        "x": read_exclusive,
        # the readers after this one must handle several components
        "R": partial(_read_requirements, config),
        "M": partial(_check_memory_limit, config),
        "gpu": _read_gpus,
    }


def _read_requirements(config: LsfConfig, draft: Draft, value: str) -> None:
    """Read the requirements that a spec can express; keep the rest as the custom attribute `R`."""
    remainder = _read_compound(config, draft, value) if "{" in value else _read_sections(config, draft, value)
    if remainder:
        draft.keep("R", remainder)


def _read_compound(config: LsfConfig, draft: Draft, value: str) -> str:
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
        remainders.add(_read_sections(config, component_draft, term["text"]))
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


def _read_sections(config: LsfConfig, draft: Draft, value: str) -> str:
    """Read the sections that a spec can express into the draft, and return the rest."""
    sections = list(_SECTION.finditer(value))
    if "".join(it[0] for it in sections) != value:
        raise ValueError(_NOT_EXPRESSIBLE)
    # the total memory depends on the nodes, so `span` comes first
    readers: Mapping[str, Callable[[Draft, str], bool]] = {
        "span": _read_span,
        "affinity": _read_cores,
        "rusage": partial(_read_rusage, config),
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


def _read_rusage(config: LsfConfig, draft: Draft, text: str) -> bool:
    """Read memory and GPUs of a `rusage` section, all of it or nothing; return True if it was read."""
    resources, usages = draft.resources, [it.strip() for it in text.split(",")]
    gpus = [match for it in usages if (match := _GPUS.fullmatch(it))]
    memory = [match for it in usages if (match := _MEMORY.fullmatch(it))]
    if len(gpus) + len(memory) != len(usages) or len(gpus) > 1 or len(memory) > 1:
        return False
    try:
        totals = [
            _job_total(resources, it["method"], read_amount(it["amount"], _memory_units(config)))
            for it in memory
        ]
        shares = [_process_share(resources, it["method"], int(it["count"])) for it in gpus]
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


def _process_share(resources: ResourceSpecV1, method: str | None, share: int) -> int:
    """Return the share of each process."""
    per_process, remainder = divmod(_job_total(resources, method, share), resources.computed_process_count)
    if remainder or not per_process:
        msg = "the GPUs cannot be shared equally among the processes"
        raise ValueError(msg)
    return per_process


def _memory_units(config: LsfConfig) -> Mapping[str, int]:
    """Return the units of memory; the empty unit is the site's, and is known only if configured."""
    units = {
        spelling: size
        for unit, size in UNITS.items()
        for spelling in (unit, unit.lower(), unit[0], unit[0].lower())
    }
    return units if config.memory_unit is None else {**units, "": UNITS[config.memory_unit]}


def _check_memory_limit(config: LsfConfig, draft: Draft, value: str) -> None:
    amounts = [component.memory for component in components(draft.spec.resources)]
    known = [amount for amount in amounts if amount is not None]
    if len(known) < len(amounts) or read_amount(value, _memory_units(config)) != sum(known):
        msg = "it may be a limit for a process, for a node, or for the job"
        raise ValueError(msg)


def _read_gpus(draft: Draft, value: str) -> None:
    if isinstance(draft.spec.resources, HeterogeneousResources):
        draft.lose("gpu", value, "it is for slots of one kind")
        return
    match = _GPU.fullmatch(value)
    if match is None:
        raise ValueError(_NOT_EXPRESSIBLE)
    draft.resources.gpu_cores_per_process = _process_share(
        draft.resources, match["method"], int(match["count"])
    )
