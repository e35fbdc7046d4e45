"""Converts the qsub options for slots, and for resources per slot, into a ResourceSpec."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial

from jpsi.plugin import Draft, Reader, ResourceSpecV1, parse_duration
from jpsi.plugin.kit import read_amount, read_count

from ..config import SLOTS_PLACEHOLDER, GridEngineConfig

# sge_types(5) of 8.1.9, memory_specifier: capital letters are powers of 1024, small ones of 1000
_UNITS = {"": 1} | {
    unit: size
    for power, letter in enumerate("kmgt", 1)
    for unit, size in ((letter, 1000**power), (letter.upper(), 1024**power))
}
_UNLIMITED = "INFINITY"
_NOT_EXPRESSIBLE = "jpsi cannot express it"


def resource_readers(config: GridEngineConfig) -> Mapping[str, Reader]:
    """Return the readers of the qsub options; the second uses the slots that the first has read."""
    return {"pe": partial(_read_parallel_environment, config), "l": partial(_read_requests, config)}


def _read_parallel_environment(config: GridEngineConfig, draft: Draft, value: str) -> None:
    """Read the slots of a configured parallel environment; keep any other as the custom attribute `pe`."""
    name, _, text = value.partition(" ")
    if not text.isdecimal() or not int(text):
        draft.lose("pe", value, "a job of jpsi has one number of slots")
        return
    slots, resources = int(text), draft.resources
    per_node = _slots_per_node(config.parallel_environment, name)
    if per_node and not slots % per_node:
        resources.node_count, resources.processes_per_node = slots // per_node, per_node
        return
    if name == config.node_environment:
        resources.cpu_cores_per_process = slots
        return
    resources.process_count = slots
    if name != config.parallel_environment:
        draft.keep("pe", value)


def _slots_per_node(family: str | None, name: str) -> int | None:
    """Return the slots per node of an environment of a family such as `mpi-{slots}`; None for others."""
    if family is None or SLOTS_PLACEHOLDER not in family:
        return None
    match = re.fullmatch(re.escape(family).replace(re.escape(SLOTS_PLACEHOLDER), "([1-9][0-9]*)"), name)
    return None if match is None else int(match[1])


def _read_requests(config: GridEngineConfig, draft: Draft, value: str) -> None:
    """Read the requests of `-l`, whose amounts are per slot; keep those that a spec cannot express."""
    others = []
    for request in value.split(","):
        name, _, text = request.partition("=")
        try:
            _resource_reader(config, name)(draft, text)
        except ValueError:
            others.append(request)
    if others:
        draft.keep("l", ",".join(others))


def _resource_reader(config: GridEngineConfig, name: str) -> Callable[[Draft, str], None]:
    if name == "h_rt":
        return _read_limit
    if name in config.memory_resource.split(","):
        return _read_memory
    if name in (config.gpu_resource or "").split(","):
        return _read_gpus
    if name == config.exclusive_resource:
        return _read_exclusive
    raise ValueError(_NOT_EXPRESSIBLE)


def _read_limit(draft: Draft, text: str) -> None:
    draft.attributes.duration = timedelta(0) if text.upper() == _UNLIMITED else parse_duration(text)


def _read_memory(draft: Draft, text: str) -> None:
    draft.resources.memory = read_amount(text, _UNITS) * _count_slots(draft.resources)


def _read_gpus(draft: Draft, text: str) -> None:
    draft.resources.gpu_cores_per_process = read_count(text) * (draft.resources.cpu_cores_per_process or 1)


def _read_exclusive(draft: Draft, text: str) -> None:
    if text.lower() not in {"", "true", "1"}:
        raise ValueError(_NOT_EXPRESSIBLE)
    draft.resources.exclusive_node_use = True


def _count_slots(resources: ResourceSpecV1) -> int:
    return resources.computed_process_count * (resources.cpu_cores_per_process or 1)
