"""The forms of the fields under `attributes.system.jpsi`, which are those of `plain`.

A shape converts a value of a document to its plain form, or to a harmless value if it is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from jpsi.document.values import Value
from jpsi.model import DependencyKind, StageOutFlags, StagingMode, encode_flags

Shape = Callable[[Value], Any]


def shaped(fields: Mapping[str, Value], shapes: Mapping[str, Shape]) -> dict[str, Any]:
    """Return the plain forms of the fields that have one of these shapes."""
    return {name: shape(fields[name]) for name, shape in shapes.items() if name in fields}


def _or_null(shape: Shape) -> Shape:
    return lambda value: None if value.raw is None else shape(value)


def _path(value: Value) -> str:
    path = value.text()
    if not path:
        value.wrong("must not be empty")
    return path


def _mode(value: Value) -> str:
    return value.one_of([mode.value for mode in StagingMode])


def _flags(value: Value) -> list[str]:
    names = encode_flags(StageOutFlags.IF_PRESENT | StageOutFlags.ALWAYS)
    return [item.one_of(names) for item in value.items()]


def _stage_in(value: Value) -> dict[str, Any]:
    return _stage(value, {"source": Value.text, "target": _path, "mode": _mode})


def _stage_out(value: Value) -> dict[str, Any]:
    return _stage(value, {"source": _path, "target": Value.text, "mode": _mode, "flags": _flags})


def _stage(value: Value, shapes: Mapping[str, Shape]) -> dict[str, Any]:
    return shaped(value.fields(("source", "target"), shapes), shapes)


def _after(value: Value) -> Any:  # noqa: ANN401  text or a mapping
    if not isinstance(value.raw, dict):
        return value.text()
    shapes = {"job": Value.text, "kind": _kind}
    plain = shaped(value.fields(("job",), shapes), shapes)
    return {"kind": DependencyKind.OK.value, **plain}


def _kind(value: Value) -> str:
    return value.one_of([kind.value for kind in DependencyKind])


def _each(shape: Shape) -> Shape:
    return _or_null(lambda value: [shape(item) for item in value.items()])


#: Fields of JobSpec.
SPEC: Mapping[str, Shape] = {
    "create_directory": Value.boolean,
    "inherit_environment": Value.boolean,
    "stdin_path": _or_null(_path),
    "stdout_path": _or_null(_path),
    "stderr_path": _or_null(_path),
    "pre_launch": _or_null(_path),
    "post_launch": _or_null(_path),
    "launcher": _or_null(Value.text),
    "stage_in": _each(_stage_in),
    "stage_out": _each(_stage_out),
    "cleanup": _each(_path),
    "cleanup_flags": _flags,
}
#: Fields of JobAttributes.
ATTRIBUTES: Mapping[str, Shape] = {
    "queue_name": _or_null(Value.text),
    "project_name": _or_null(Value.text),
    "reservation_id": _or_null(Value.text),
    "after": _each(_after),
}
#: Fields of ResourceSpecV1.
RESOURCES: Mapping[str, Shape] = {
    "node_count": _or_null(Value.integer),
    "process_count": _or_null(Value.integer),
    "processes_per_node": _or_null(Value.integer),
    "cpu_cores_per_process": _or_null(Value.integer),
    "gpu_cores_per_process": _or_null(Value.integer),
    "exclusive_node_use": Value.boolean,
    "memory": _or_null(Value.integer),
}
