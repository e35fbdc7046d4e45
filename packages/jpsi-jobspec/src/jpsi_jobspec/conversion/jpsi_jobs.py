"""Converts jobs of jpsi to workflows, from job documents and submit scripts; reports what is lost. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import attrs

from jpsi import HeterogeneousResources, JobAttributes, JobSpec, ResourceSpecV1

from .canonical import Converted

_REFERENCE = re.compile(r"\$(\$?)\{([A-Za-z_][A-Za-z0-9_]*)\}")
#: The fields that a workflow can express.
_CONVERTED_FIELDS = {
    "executable",
    "arguments",
    "name",
    "directory",
    "environment",
    "launcher",
    "resources",
    "attributes",
}
_CONVERTED_ATTRIBUTES = {"duration", "custom_attributes", "user"}
#: Fields without a meaning of their own if the field that they belong to is not set.
_IGNORED_FIELDS = {"cleanup_flags"}
_RESOURCE = "task"


def from_job(spec: JobSpec) -> Converted:
    """Return a workflow of one task; of a group with that task if the job starts its own processes.

    Args:
        spec: a job that is valid.
    """
    requested = _kinds(spec)
    job_attributes = spec.attributes
    command = [spec.executable or "", *(spec.arguments or ())]
    lost = [
        *_find_lost_fields(spec, _CONVERTED_FIELDS),
        *_find_lost_fields(job_attributes, _CONVERTED_ATTRIBUTES, "attributes."),
        *_find_references(command),
    ]
    name = spec.name or _RESOURCE
    task: dict[str, Any] = {"name": name, "command": [_literal(it) for it in command]}
    attributes = dict(_attributes(spec, job_attributes))
    resources = {name: _resource(it, lost) for name, it in requested.items()}
    found: dict[str, Any] = {"version": 1, "resources": resources}
    if spec.launcher == "single" and sum(it.computed_process_count for it in requested.values()) > 1:
        if len(requested) > 1:
            lost.append("a group has one kind of slot, and the job has several: nothing runs this as it is")
        inner = {**task, "name": f"{name}-once", "local": True}
        group = {
            "name": name,
            "resources": "&".join(requested),
            "attributes": attributes,
            "tasks": [inner],
        }
        found["groups"] = [{key: it for key, it in group.items() if it}]
    else:
        if spec.launcher not in {None, "single"}:
            lost.append(f"launcher is {spec.launcher}; a workflow leaves it to the executor")
        found["tasks"] = [
            {
                **task,
                "resources": "&".join(requested),
                **({"attributes": attributes} if attributes else {}),
            }
        ]
    if job_attributes.user is not None:
        found["user"] = job_attributes.user
    return Converted(found, tuple(lost))


def _kinds(spec: JobSpec) -> dict[str, ResourceSpecV1]:
    """Return the kinds of slots of a job, by the names of their resources."""
    if isinstance(spec.resources, HeterogeneousResources):
        return {f"{_RESOURCE}-{n}": it for n, it in enumerate(spec.resources.components, 1)}
    return {_RESOURCE: spec.resources if isinstance(spec.resources, ResourceSpecV1) else ResourceSpecV1()}


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


def _attributes(spec: JobSpec, job_attributes: JobAttributes) -> Iterator[tuple[str, Any]]:
    if job_attributes.duration is not None:
        seconds = job_attributes.duration.total_seconds()
        yield "duration", int(seconds) if seconds.is_integer() else seconds
    if spec.directory is not None:
        yield "cwd", str(spec.directory)
    if spec.environment:
        yield "environment", dict(spec.environment)
    yield from (job_attributes.custom_attributes or {}).items()


def _resource(requested: ResourceSpecV1, lost: list[str]) -> dict[str, Any]:
    inside: list[dict[str, Any]] = [{"type": "core", "count": requested.cpu_cores_per_process or 1}]
    if requested.gpu_cores_per_process:
        inside.append({"type": "gpu", "count": requested.gpu_cores_per_process})
    has_nodes = requested.node_count is not None or requested.processes_per_node is not None
    nodes, each = requested.computed_node_count, requested.computed_processes_per_node
    processes = requested.computed_process_count
    if has_nodes and nodes * each != processes:
        lost.append(f"{processes} processes become {nodes * each}, {each} on each of {nodes} nodes")
        processes = nodes * each
    if requested.memory is not None:
        # rounded up: the job has no less than it asked for
        inside.append({"type": "memory", "size": -(-requested.memory // processes)})
    slot = {"type": "slot", "count": each if has_nodes else processes, "with": inside}
    outer = {"type": "node", "count": nodes, "with": [slot]} if has_nodes else slot
    return {**outer, "exclusive": True} if requested.exclusive_node_use else outer
