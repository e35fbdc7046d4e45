"""What a script that was written for bsub asks for in slots, hosts, cores, GPUs and memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial

from jpsi.plugin import Draft, Reader, count, node_count, read_amount, read_exclusive

from .config import UNITS, LsfConfig

_SECTION = re.compile(r"\s*(?P<name>[a-z]+)\[(?P<text>(?:[^\[\]]|\[[^\[\]]*\])*)\]\s*")
_SPAN = re.compile(r"(?P<word>ptile|hosts)=(?P<count>[0-9]+)")
_CORES = re.compile(r"core\((?P<count>[0-9]+)\)")
_MEMORY = re.compile(r"mem=(?P<amount>[0-9.]+ ?[A-Za-z]*)(?P<method>/host|/task)?")
_GPU = re.compile(r"num=(?P<count>[0-9]+)(?P<method>/task)?")
_NO_WORD = "jpsi has no word for it"


def resource_readers(config: LsfConfig) -> Mapping[str, Reader]:
    """Readers of the options of bsub; each may count on those before it."""
    return {
        "n": count("process_count"),
        "R": partial(_requirements, config),
        "M": partial(_memory_limit, config),
        "gpu": _gpus,
        "x": read_exclusive,
    }


def _requirements(config: LsfConfig, draft: Draft, value: str) -> None:
    """What jpsi has words for; the rest stays a requirement, to which jpsi adds its own."""
    sections = list(_SECTION.finditer(value))
    if "".join(it[0] for it in sections) != value:
        raise ValueError(_NO_WORD)
    # how much memory there is in all depends on the nodes
    known: Mapping[str, Callable[[Draft, str], bool]] = {
        "span": _span,
        "affinity": _cores,
        "rusage": partial(_reserved, config),
    }
    in_order = [it for name in known for it in sections if it["name"] == name]
    read = [it for it in in_order if known[it["name"]](draft, it["text"])]
    rest = [it[0].strip() for it in sections if it not in read]
    if rest:
        draft.keep("R", " ".join(rest))


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
    found, asked = _MEMORY.fullmatch(text), draft.resources
    if found is None:
        return False
    nodes = node_count(asked)
    is_of_task = found["method"] == "/task"
    if nodes is None and asked.computed_process_count > 1 and not is_of_task:
        return False
    try:
        share = read_amount(found["amount"], _units(config))
    except ValueError:
        return False
    asked.memory = share * (asked.computed_process_count if is_of_task else nodes or 1)
    return True


def _units(config: LsfConfig) -> Mapping[str, int]:
    """Units of memory; none is that of the site, which must be configured to be known."""
    spelled = {
        spelling: size
        for unit, size in UNITS.items()
        for spelling in (unit, unit.lower(), unit[0], unit[0].lower())
    }
    return spelled if config.memory_unit is None else {**spelled, "": UNITS[config.memory_unit]}


def _memory_limit(config: LsfConfig, draft: Draft, value: str) -> None:
    if draft.resources.memory is None or read_amount(value, _units(config)) != draft.resources.memory:
        msg = "it may be a limit for a process, for a node, or for the job"
        raise ValueError(msg)


def _gpus(draft: Draft, value: str) -> None:
    found, asked = _GPU.fullmatch(value), draft.resources
    if found is None:
        raise ValueError(_NO_WORD)
    gpus = int(found["count"])
    if found["method"] is None:
        nodes = node_count(asked) or (1 if asked.computed_process_count == 1 else 0)
        gpus, rest = divmod(gpus * nodes, asked.computed_process_count)
        if rest or not gpus:
            msg = "not so many for each process"
            raise ValueError(msg)
    asked.gpu_cores_per_process = gpus
