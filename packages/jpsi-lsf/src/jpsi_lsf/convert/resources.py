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
_NO_WORD = "jpsi has no word for it"


def resource_readers(config: LsfConfig) -> Mapping[str, Reader]:
    """Return the readers of the bsub options in order; a reader may use the results of those before it."""
    return {
        "n": count_reader("process_count"),
        "x": read_exclusive,
        # the readers after this one must handle several components
        "R": partial(_requirements, config),
        "M": partial(_memory_limit, config),
        "gpu": _gpus,
    }


def _requirements(config: LsfConfig, draft: Draft, value: str) -> None:
    """Read the requirements that a spec can express; keep the rest as the custom attribute `R`."""
    rest = _compound(config, draft, value) if "{" in value else _read_sections(config, draft, value)
    if rest:
        draft.keep("R", rest)


def _compound(config: LsfConfig, draft: Draft, value: str) -> str:
    """Read terms such as `2*{span[ptile=1]}`, and return the requirements that a spec cannot express.

    These must be the same in all terms. The last term needs no number of slots if the total is known.
    """
    asked, kinds, rests = draft.resources, [], set()
    terms = [_TERM.fullmatch(text) for text in value.split("+")]
    left = asked.process_count
    for term in terms:
        if term is None or (term["count"] is None and (left is None or term is not terms[-1])):
            raise ValueError(_NO_WORD)
        processes = left if term["count"] is None else int(term["count"])
        part = attrs.evolve(draft, spec=JobSpec(attributes=JobAttributes()))
        part.spec.resources = ResourceSpecV1(
            process_count=processes, exclusive_node_use=asked.exclusive_node_use
        )
        rests.add(_read_sections(config, part, term["text"]))
        kinds.append(part.resources)
        left = None if left is None else left - (processes or 0)
    if left or len(kinds) == 1 or len(rests) > 1 or any((it.process_count or 0) < 1 for it in kinds):
        raise ValueError(_NO_WORD)
    if any(node_count(it) is None and it.computed_process_count > 1 for it in kinds):
        draft.lose("R", value, "jpsi has the slots of a term on one node if it has no span")
    draft.spec.resources = HeterogeneousResources(kinds)
    return rests.pop()


def _read_sections(config: LsfConfig, draft: Draft, value: str) -> str:
    """Read the sections that a spec can express into the draft, and return the rest."""
    sections = list(_SECTION.finditer(value))
    if "".join(it[0] for it in sections) != value:
        raise ValueError(_NO_WORD)
    # the total memory depends on the nodes, so `span` comes first
    known: Mapping[str, Callable[[Draft, str], bool]] = {
        "span": _span,
        "affinity": _cores,
        "rusage": partial(_reserved, config),
    }
    in_order = [it for name in known for it in sections if it["name"] == name]
    read = [it for it in in_order if known[it["name"]](draft, it["text"])]
    return " ".join(it[0].strip() for it in sections if it not in read)


def _span(draft: Draft, text: str) -> bool:
    found = _SPAN.fullmatch(text)
    if found is None or not int(found["count"]):
        return False
    if found["word"] == "ptile":
        draft.resources.processes_per_node = int(found["count"])
    elif found["count"] != "1":
        return False
    else:
        draft.resources.node_count = 1
    return True


def _cores(draft: Draft, text: str) -> bool:
    found = _CORES.fullmatch(text)
    if found is None or not int(found["count"]):
        return False
    draft.resources.cpu_cores_per_process = int(found["count"])
    return True


def _reserved(config: LsfConfig, draft: Draft, text: str) -> bool:
    """Read memory and GPUs of a `rusage` section, all of it or nothing; return True if it was read."""
    asked, usages = draft.resources, [it.strip() for it in text.split(",")]
    gpus = [found for it in usages if (found := _GPUS.fullmatch(it))]
    memory = [found for it in usages if (found := _MEMORY.fullmatch(it))]
    if len(gpus) + len(memory) != len(usages) or len(gpus) > 1 or len(memory) > 1:
        return False
    try:
        whole = [_whole(asked, it["method"], read_amount(it["amount"], _units(config))) for it in memory]
        each = [_of_each(asked, it["method"], int(it["count"])) for it in gpus]
    except ValueError:
        return False
    asked.memory = next(iter(whole), asked.memory)
    asked.gpu_cores_per_process = next(iter(each), asked.gpu_cores_per_process)
    return True


def _whole(asked: ResourceSpecV1, method: str | None, share: int) -> int:
    """Return the job's total of a resource from the share of each node or process."""
    if method == "/task":
        return share * asked.computed_process_count
    nodes = node_count(asked) or (1 if asked.computed_process_count == 1 else 0)
    if not nodes:
        msg = "nobody knows on how many nodes the job will be"
        raise ValueError(msg)
    return share * nodes


def _of_each(asked: ResourceSpecV1, method: str | None, share: int) -> int:
    """Return the share of each process."""
    each, rest = divmod(_whole(asked, method, share), asked.computed_process_count)
    if rest or not each:
        msg = "not so many for each process"
        raise ValueError(msg)
    return each


def _units(config: LsfConfig) -> Mapping[str, int]:
    """Return the units of memory; the empty unit is the site's, and is known only if configured."""
    spelled = {
        spelling: size
        for unit, size in UNITS.items()
        for spelling in (unit, unit.lower(), unit[0], unit[0].lower())
    }
    return spelled if config.memory_unit is None else {**spelled, "": UNITS[config.memory_unit]}


def _memory_limit(config: LsfConfig, draft: Draft, value: str) -> None:
    amounts = [it.memory for it in components(draft.spec.resources)]
    known = [it for it in amounts if it is not None]
    if len(known) < len(amounts) or read_amount(value, _units(config)) != sum(known):
        msg = "it may be a limit for a process, for a node, or for the job"
        raise ValueError(msg)


def _gpus(draft: Draft, value: str) -> None:
    if isinstance(draft.spec.resources, HeterogeneousResources):
        draft.lose("gpu", value, "it is for slots of one kind")
        return
    found = _GPU.fullmatch(value)
    if found is None:
        raise ValueError(_NO_WORD)
    draft.resources.gpu_cores_per_process = _of_each(draft.resources, found["method"], int(found["count"]))
