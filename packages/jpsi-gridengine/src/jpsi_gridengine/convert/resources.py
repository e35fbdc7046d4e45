"""Converts the qsub options for slots, and for resources per slot, into a ResourceSpec."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial

from jpsi.plugin import Draft, Reader, ResourceSpecV1, parse_duration
from jpsi.plugin.kit import read_amount, read_count

from ..config import SLOTS, GridEngineConfig

# sge_types(5) of 8.1.9, memory_specifier: capital letters are powers of 1024, small ones of 1000
_UNITS = {"": 1} | {
    unit: size
    for power, letter in enumerate("kmgt", 1)
    for unit, size in ((letter, 1000**power), (letter.upper(), 1024**power))
}
_ENDLESS = "INFINITY"
_NO_WORD = "jpsi has no word for it"


def resource_readers(config: GridEngineConfig) -> Mapping[str, Reader]:
    """Return the readers of the qsub options; the second uses the slots that the first has read."""
    return {"pe": partial(_environment, config), "l": partial(_requests, config)}


def _environment(config: GridEngineConfig, draft: Draft, value: str) -> None:
    """Read the slots of a configured parallel environment; keep any other as the custom attribute `pe`."""
    name, _, text = value.partition(" ")
    if not text.isdecimal() or not int(text):
        draft.lose("pe", value, "a job of jpsi has one number of slots")
        return
    slots, asked = int(text), draft.resources
    each = _slots_on_a_node(config.parallel_environment, name)
    if each and not slots % each:
        asked.node_count, asked.processes_per_node = slots // each, each
        return
    if name == config.node_environment:
        asked.cpu_cores_per_process = slots
        return
    asked.process_count = slots
    if name != config.parallel_environment:
        draft.keep("pe", value)


def _slots_on_a_node(family: str | None, name: str) -> int | None:
    """Return the slots per node of an environment of a family such as `mpi-{slots}`; None for others."""
    if family is None or SLOTS not in family:
        return None
    found = re.fullmatch(re.escape(family).replace(re.escape(SLOTS), "([1-9][0-9]*)"), name)
    return None if found is None else int(found[1])


def _requests(config: GridEngineConfig, draft: Draft, value: str) -> None:
    """Read the requests of `-l`, whose amounts are per slot; keep those that a spec cannot express."""
    kept = []
    for request in value.split(","):
        name, _, text = request.partition("=")
        try:
            _resource(config, name)(draft, text)
        except ValueError:
            kept.append(request)
    if kept:
        draft.keep("l", ",".join(kept))


def _resource(config: GridEngineConfig, name: str) -> Callable[[Draft, str], None]:
    if name == "h_rt":
        return _limit
    if name in config.memory_resource.split(","):
        return _memory
    if name in (config.gpu_resource or "").split(","):
        return _gpus
    if name == config.exclusive_resource:
        return _exclusive
    raise ValueError(_NO_WORD)


def _limit(draft: Draft, text: str) -> None:
    draft.attributes.duration = timedelta(0) if text.upper() == _ENDLESS else parse_duration(text)


def _memory(draft: Draft, text: str) -> None:
    draft.resources.memory = read_amount(text, _UNITS) * _slots(draft.resources)


def _gpus(draft: Draft, text: str) -> None:
    draft.resources.gpu_cores_per_process = read_count(text) * (draft.resources.cpu_cores_per_process or 1)


def _exclusive(draft: Draft, text: str) -> None:
    if text.lower() not in {"", "true", "1"}:
        raise ValueError(_NO_WORD)
    draft.resources.exclusive_node_use = True


def _slots(asked: ResourceSpecV1) -> int:
    return asked.computed_process_count * (asked.cpu_cores_per_process or 1)
