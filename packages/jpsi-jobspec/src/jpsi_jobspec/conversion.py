"""Converts workflows: from and to canonical jobspecs of Flux (RFC 25, version 1), and from jobs of jpsi.

Each conversion reports what it could not keep. Pure.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs
import yaml

from jpsi import (
    HeterogeneousResources,
    InvalidJobException,
    JobAttributes,
    JobSpec,
    ResourceSpecV1,
    write_document,
)
from jpsi_engine import ARRAY, JOB_FIELDS

from .document import ONE_SLOT, Shape, describe_value
from .planning import UNSHARED, Entry

_LABEL = "task"
_SYSTEM = ("duration", "cwd", "environment")
_VERTEX = ("type", "count", "with", "label", "exclusive", "unit")
_REFERENCE = re.compile(r"\$(\$?)\{([A-Za-z_][A-Za-z0-9_]*)\}")
#: The fields that a workflow can express.
_CONVERTED_FIELDS = {
    *("executable", "arguments", "name", "directory", "environment", "launcher", "resources", "attributes"),
    *JOB_FIELDS,
}
_CONVERTED_ATTRIBUTES = {"duration", "custom_attributes", "user", *JOB_FIELDS}
#: Fields without a meaning of their own if the field that they belong to is not set.
_IGNORED_FIELDS = {"cleanup_flags"}


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
    resources, tasks = (_single_mapping(content, key, source) for key in ("resources", "tasks"))
    command = tasks.get("command")
    lost: list[str] = []
    all_attributes = _mapping(_mapping(content).get("attributes"))
    system = _mapping(all_attributes.get("system"))
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
    if all_attributes.get("user") is not None:
        converted["user"] = all_attributes["user"]
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
        raise InvalidJobException(f"{source}: it is neither JSON nor YAML: {e}", e) from e


def _single_mapping(content: object, key: str, source: str) -> dict[str, Any]:
    items = content.get(key) if isinstance(content, dict) else None
    if isinstance(items, list) and len(items) == 1 and isinstance(items[0], dict):
        return items[0]
    raise InvalidJobException(f"{source}: it is no canonical jobspec: {key} must be a list of one mapping")


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
        raise InvalidJobException(f"{source}: {location}.with must be a list, not {describe_value(children)}")
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
    replicas = f"it is one of {entry.replicas} replicas" if entry.replicas > 1 else ""
    inner = entry.replicated
    if inner is not None:
        replicas = f"it is one of {inner.replicas} replicas, which have one allocation"
        outer = {key: getattr(entry, key) for key in ("id", "after", "steps", "lost", "constraints")}
        entry = attrs.evolve(inner, **outer)
    attributes = entry.attributes
    whole = entry.shape or ONE_SLOT
    shape = next(iter(whole.pieces), whole)
    lost = [*_find_lost_parts(entry), *_find_lost_requests(entry, shape, replicas)]
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


def _find_lost_parts(entry: Entry) -> Iterator[str]:
    unset = (name for name, value in entry.attributes.environment.items() if value is None)
    yield from (f"the variable {name} is not unset" for name in unset)
    yield from (f"its dependency is left out: {it.id} ({it.when})" for it in entry.after)
    yield from (f"the option {name} is left out" for name in (*entry.constraints, *entry.attributes.options))
    yield from (f"the attribute {name} is left out" for name in entry.attributes.job)


def _find_lost_requests(entry: Entry, shape: Shape, replicas: str) -> Iterator[str]:
    parts = {
        f"only the first of its pieces is requested: {entry.shape}": entry.shape and entry.shape.pieces,
        "memory is not requested": shape.memory,
        replicas: replicas,
        "its steps are not done": entry.steps,
    }
    yield from (sentence for sentence, is_lost in parts.items() if is_lost)


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


def from_job(spec: JobSpec) -> Converted:
    """Return a workflow of one task; of a group with that task if the job starts its own processes.

    Args:
        spec: a job that is valid.

    Raises:
        InvalidJobException: it is an array.
    """
    _check_single(spec)
    requested = _kinds(spec)
    job_attributes = spec.attributes
    command = [spec.executable or "", *(spec.arguments or ())]
    lost = [
        *_find_lost_fields(spec, _CONVERTED_FIELDS),
        *_find_lost_fields(job_attributes, _CONVERTED_ATTRIBUTES, "attributes."),
        *_find_references(command),
    ]
    name = spec.name or _LABEL
    task: dict[str, Any] = {"name": name, "command": [_literal(it) for it in command]}
    attributes = dict(_job_attributes(spec, job_attributes))
    needed = {"resources": "&".join(requested), **({"attributes": attributes} if attributes else {})}
    resources = {name: _job_resource(it, lost) for name, it in requested.items()}
    found: dict[str, Any] = {"version": 1, "resources": resources}
    if spec.launcher == "single" and sum(it.computed_process_count for it in requested.values()) > 1:
        if len(requested) > 1:
            lost.append("a group has one kind of slot, and the job has several: nothing runs this as it is")
        unshared = sorted(UNSHARED.intersection(attributes))
        lost += [f"attributes.{it} has no place in a group: {attributes.pop(it)}" for it in unshared]
        inner = {**task, "name": f"{name}-once", "local": True}
        found["groups"] = [{"name": name, **needed, "tasks": [inner]}]
    else:
        if spec.launcher not in {None, "single"}:
            lost.append(f"launcher is {spec.launcher}; a workflow leaves it to the executor")
        found["tasks"] = [{**task, **needed}]
    if job_attributes.user is not None:
        found["user"] = job_attributes.user
    return Converted(found, tuple(lost))


def _check_single(spec: JobSpec) -> None:
    indices = (spec.attributes.custom_attributes or {}).get(ARRAY)
    if indices is not None:
        msg = (
            f"it is an array, {indices}, which a workflow cannot have; jpsi convert makes a job document of "
            "a script with all its elements, and jpsi submit -f submits them"
        )
        raise InvalidJobException(msg)


def _kinds(spec: JobSpec) -> dict[str, ResourceSpecV1]:
    """Return the kinds of slots of a job, by the names of their resources."""
    if isinstance(spec.resources, HeterogeneousResources):
        return {f"{_LABEL}-{n}": it for n, it in enumerate(spec.resources.components, 1)}
    return {_LABEL: spec.resources if isinstance(spec.resources, ResourceSpecV1) else ResourceSpecV1()}


def _find_lost_fields(it: JobSpec | JobAttributes, converted: set[str], prefix: str = "") -> Iterator[str]:
    default = type(it)()
    for field in attrs.fields(type(it)):
        name = field.name.removeprefix("_")
        value = getattr(it, name)
        if name not in converted | _IGNORED_FIELDS and value != getattr(default, name):
            yield f"{prefix}{name} has no place in a workflow: {value}"


def _find_references(words: Iterable[str]) -> Iterator[str]:
    for word in words:
        for match in _REFERENCE.finditer(word):
            if not match[1]:
                yield f"{match[0]} in the command stays as it is: in a workflow only a shell expands it"


def _literal(word: str) -> str:
    return _REFERENCE.sub(lambda it: f"${{{it[2]}}}", word)


def _job_attributes(spec: JobSpec, job_attributes: JobAttributes) -> Iterator[tuple[str, Any]]:
    if job_attributes.duration is not None:
        seconds = job_attributes.duration.total_seconds()
        yield "duration", int(seconds) if seconds.is_integer() else seconds
    if spec.directory is not None:
        yield "cwd", str(spec.directory)
    if spec.environment:
        yield "environment", dict(spec.environment)
    yield from (job_attributes.custom_attributes or {}).items()
    system = json.loads(write_document(spec, as_json=True))["attributes"]["system"]
    yield from ((name, it) for name, it in system.get("jpsi", {}).items() if name in JOB_FIELDS)


def _memory_vertex(size: int) -> dict[str, Any]:
    # the part of a process may be smaller than what is refused of a number without a unit
    return {"type": "memory", "size": f"{size}B" if size < 1 << 20 else size}


def _job_resource(requested: ResourceSpecV1, lost: list[str]) -> dict[str, Any]:
    inside: list[dict[str, Any]] = [{"type": "core", "count": requested.cpu_cores_per_process or 1}]
    if requested.gpu_cores_per_process:
        inside.append({"type": "gpu", "count": requested.gpu_cores_per_process})
    for vertex, size in zip(inside, (requested.memory_per_cpu, requested.memory_per_gpu), strict=False):
        if size is not None:
            vertex["with"] = [_memory_vertex(size)]
    has_nodes = requested.node_count is not None or requested.processes_per_node is not None
    nodes, each = requested.computed_node_count, requested.computed_processes_per_node
    processes = requested.computed_process_count
    if has_nodes and nodes * each != processes:
        lost.append(f"{processes} processes become {nodes * each}, {each} on each of {nodes} nodes")
        processes = nodes * each
    if requested.memory is not None:
        # rounded up: the job has no less than it requested
        inside.append(_memory_vertex(-(-requested.memory // processes)))
    slot = {"type": "slot", "count": each if has_nodes else processes, "with": inside}
    outer = {"type": "node", "count": nodes, "with": [slot]} if has_nodes else slot
    return {**outer, "exclusive": True} if requested.exclusive_node_use else outer
