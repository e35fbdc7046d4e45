"""Converts workflows from and to canonical jobspecs of Flux (RFC 25, version 1).

Each conversion reports what it could not keep. Pure.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from typing import Any

import attrs
import yaml

from jpsi import InvalidJobException

from ..document import ONE_SLOT, Shape, describe_value
from ..planning import Entry

_LABEL = "task"
_SYSTEM = ("duration", "cwd", "environment")
_VERTEX = ("type", "count", "with", "label", "exclusive", "unit")


@attrs.frozen(slots=True)
class Converted:
    """The result of a conversion."""

    content: Mapping[str, Any]
    #: What was not kept, one sentence each.
    lost: tuple[str, ...] = ()


def from_canonical(text: str, source: str) -> Converted:
    """Return a workflow of one task from a canonical jobspec, in JSON or YAML.

    Raises:
        InvalidJobException: the text is neither, or no canonical jobspec.
    """
    content = _read(text, source)
    resources, tasks = (
        _single_mapping(content, "resources", source),
        _single_mapping(content, "tasks", source),
    )
    command = tasks.get("command")
    lost: list[str] = []
    system = _mapping(_mapping(_mapping(content).get("attributes")).get("system"))
    task: dict[str, Any] = {
        "name": str(_mapping(system.get("job")).get("name") or _LABEL),
        "resources": _LABEL,
        "command": [command] if isinstance(command, str) else command,
    }
    if attributes := _attributes(system, lost):
        task["attributes"] = attributes
    converted = {
        "version": 1,
        "resources": {_LABEL: _convert_vertex(resources, "resources[0]", lost, source)},
        "tasks": [task],
    }
    user = _mapping(_mapping(content).get("attributes")).get("user")
    if user is not None:
        converted["user"] = user
    count = _mapping(tasks.get("count"))
    if count not in ({"per_slot": 1}, {}):
        lost.append(f"tasks[0].count is {count}; a workflow runs one process in each slot")
    return Converted(converted, tuple(lost))


def _read(text: str, source: str) -> object:
    # YAML does not read two escapes of JSON, a surrogate pair, as one character
    with contextlib.suppress(ValueError):
        return json.loads(text)
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as e:
        msg = f"{source}: it is neither JSON nor YAML: {e}"
        raise InvalidJobException(msg, e) from e


def _single_mapping(content: object, key: str, source: str) -> dict[str, Any]:
    items = content.get(key) if isinstance(content, dict) else None
    if isinstance(items, list) and len(items) == 1 and isinstance(items[0], dict):
        return items[0]
    msg = f"{source}: it is no canonical jobspec: {key} must be a list of one mapping"
    raise InvalidJobException(msg)


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _convert_vertex(vertex: object, location: str, lost: list[str], source: str) -> dict[str, Any]:
    if not isinstance(vertex, dict):
        msg = f"{source}: {location} must be a mapping with a type and a count, not {describe_value(vertex)}"
        raise InvalidJobException(msg)
    converted = {key: vertex[key] for key in ("type", "count", "label", "exclusive") if key in vertex}
    lost += [f"{location}.{key} has no meaning in a workflow" for key in vertex if key not in _VERTEX]
    if isinstance(converted.get("count"), dict):
        converted["count"] = converted["count"].get("min", 1)
        lost.append(f"{location}.count is a range, of which the least is taken: {converted['count']}")
    converted.setdefault("count", 1)
    children = vertex.get("with")
    if children and not isinstance(children, list):
        msg = f"{source}: {location}.with must be a list, not {describe_value(children)}"
        raise InvalidJobException(msg)
    if children:
        converted["with"] = [
            _convert_vertex(it, f"{location}.with[{n}]", lost, source) for n, it in enumerate(children)
        ]
    return converted


def _attributes(system: Mapping[str, Any], lost: list[str]) -> dict[str, Any]:
    lost += [
        f"attributes.system.{key} has no place in a workflow: {value}"
        for key, value in system.items()
        if key not in _SYSTEM and not (key == "job" and set(_mapping(value)) <= {"name"})
    ]
    return {key: system[key] for key in _SYSTEM if system.get(key) not in (None, "", {})}


def to_canonical(entry: Entry, user: object = None) -> Converted:
    """Return the canonical jobspec of one replica of an entry that has a command.

    Args:
        entry: of a plan.
        user: the value of `user` in the document.
    """
    inner = entry.replicated
    if inner is not None:
        document = attrs.evolve(inner, id=entry.id, after=entry.after, steps=entry.steps, lost=entry.lost)
        whole = to_canonical(attrs.evolve(document, constraints=entry.constraints), user)
        replica_note = f"it is one of {inner.replicas} replicas"
        lost = [
            f"{replica_note}, which have one allocation" if it == replica_note else it for it in whole.lost
        ]
        return Converted(whole.content, tuple(lost))
    attributes = entry.attributes
    unset = [name for name, value in attributes.environment.items() if value is None]
    shape = entry.shape or ONE_SLOT
    lost = [f"the variable {name} is not unset" for name in unset]
    lost += [f"its dependency is left out: {it.id} ({it.when})" for it in entry.after]
    lost += [f"the option {name} is left out" for name in (*entry.constraints, *attributes.options)]
    if shape.pieces:
        lost.append(f"of its pieces only the first is asked for: {shape}")
        shape = shape.pieces[0]
    if shape.memory:
        lost.append("memory is not asked for")
    if entry.replicas > 1:
        lost.append(f"it is one of {entry.replicas} replicas")
    if entry.steps:
        lost.append("its steps are not done")
    system: dict[str, Any] = {
        "duration": 0 if attributes.duration is None else attributes.duration.total_seconds(),
        "environment": {k: v for k, v in attributes.environment.items() if v is not None},
        "job": {"name": entry.name},
    }
    if attributes.cwd is not None:
        system["cwd"] = attributes.cwd
    content = {
        "version": 1,
        "resources": [_graph(shape)],
        "tasks": [{"command": list(entry.command), "slot": _LABEL, "count": {"per_slot": 1}}],
        "attributes": {"system": system} if user is None else {"system": system, "user": user},
    }
    return Converted(content, (*lost, *entry.lost))


def _graph(shape: Shape) -> dict[str, Any]:
    inside = [{"type": "core", "count": shape.cores or 1}]
    if shape.gpus:
        inside.append({"type": "gpu", "count": shape.gpus})
    per_node = shape.slots_per_node
    slot = {"type": "slot", "label": _LABEL, "count": per_node or shape.slots, "with": inside}
    if shape.nodes is None:
        return slot
    node: dict[str, Any] = {"type": "node", "count": shape.nodes, "with": [slot]}
    if shape.is_exclusive:
        node["exclusive"] = True
    return node
