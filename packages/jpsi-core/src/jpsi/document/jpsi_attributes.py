"""`attributes.system.jpsi`: the part of a job document beyond J/PSI Appendix A.

It has the fields of a spec for which Appendix A has no place, as `encode` writes them, and it marks values in
the standard part that the spec does not have: for example resources that are not set. It must never
contradict the standard part. If there are several kinds of slots, the standard part has the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs

from jpsi.document.graph import COUNT_KEYS
from jpsi.document.values import Value, shown
from jpsi.model import (
    DependencyKind,
    HeterogeneousResources,
    JobAttributes,
    JobSpec,
    ResourceSpec,
    ResourceSpecV1,
    StageOutFlags,
    StagingMode,
    components,
    resource_problems,
    serialization,
)

#: The seconds that stand for a duration that is not set: the 10 minutes of J/PSI 0, setDuration.
DURATION = 600
_COMPONENTS = serialization.COMPONENTS


def standard_attributes(custom_attributes: Mapping[str, Any] | None, kind: str) -> dict[str, Any]:
    """Return the custom attributes that the standard part can hold, without the `<kind>.` of their names.

    `job.<key>` belongs in attributes.system.job, if it is text, and `count.<key>` in tasks[0].count.
    """
    return {
        name.removeprefix(f"{kind}."): value
        for name, value in (custom_attributes or {}).items()
        if _standard_kind(name, value) == kind
    }


def _standard_kind(name: str, value: object) -> str | None:
    kind, dot, key = name.partition(".")
    is_job = kind == "job" and key != "name" and isinstance(value, str)
    is_count = kind == "count" and key not in COUNT_KEYS
    return kind if dot and (is_job or is_count) else None


def write_extension(spec: JobSpec, standard: ResourceSpecV1) -> dict[str, Any]:
    """Return the extension for a valid spec whose standard part has the resources `standard`."""
    plain, attributes = serialization.encode(spec), serialization.encode_attributes(spec.attributes)
    extension = {name: plain[name] for name in _SPEC if name in plain}
    if spec.arguments is not None and not spec.arguments:
        extension["arguments"] = []
    if spec.resources != standard:
        extension["resources"] = _differing_resources(spec.resources, standard)
    extension |= {name: attributes[name] for name in _ATTRIBUTES if name in attributes}
    if spec.attributes.duration is None:
        extension["duration"] = None
    custom = spec.attributes.custom_attributes
    rest = {name: value for name, value in (custom or {}).items() if _standard_kind(name, value) is None}
    if rest or custom == {}:
        extension["custom_attributes"] = rest
    return extension


def _differing_resources(resources: ResourceSpec | None, standard: ResourceSpecV1) -> dict[str, Any] | None:
    if isinstance(resources, HeterogeneousResources):
        return serialization.encode_resources(resources)
    if not isinstance(resources, ResourceSpecV1):
        return None
    own, other = attrs.asdict(resources), attrs.asdict(standard)
    return {name: own[name] for name in own if own[name] != other[name]}


def read_extension(jpsi: Value, plain: dict[str, Any], standard: ResourceSpecV1 | None) -> None:
    """Complete `plain`, the spec of the standard part, from the extension.

    `standard` are the resources of the standard part; None if there was a problem in them.
    """
    fields = jpsi.fields((), KEYS, PLACES)
    plain.update(_shaped(fields, _SPEC))
    plain["attributes"].update(_shaped(fields, _ATTRIBUTES))
    if "resources" in fields:
        plain["resources"] = _resources(fields["resources"], standard)
    for name, apply in _MARKS.items():
        if name in fields:
            apply(fields[name], plain)


def _resources(value: Value, standard: ResourceSpecV1 | None) -> dict[str, Any] | None:
    plain = None
    if value.raw is not None and _COMPONENTS in value.mapping():
        parts = value.fields((_COMPONENTS,))[_COMPONENTS].items()
        plain = {_COMPONENTS: [_shaped(part.fields((), _RESOURCES, PLACES), _RESOURCES) for part in parts]}
    elif value.raw is not None:
        plain = {} if standard is None else serialization.encode_resources(standard)
        plain.update(_shaped(value.fields((), _RESOURCES, PLACES), _RESOURCES))
    resources = serialization.decode_resources(plain or {})
    # Values with a problem, or with one that `problems` will report, cannot be compared.
    if standard is not None and not value.is_wrong and not resource_problems(resources):
        own, other = _effective(components(resources)[0]), _effective(standard)
        differing = [name for name in own if own[name] != other[name]]
        if differing:
            own_text, other_text = (", ".join(f"{it} {of[it]}" for it in differing) for of in (own, other))
            first = f" in {_COMPONENTS}[0]" if isinstance(resources, HeterogeneousResources) else ""
            standard_text = f"the document's resources and tasks mean {other_text}"
            value.wrong(f"means {own_text}{first}, but {standard_text}")
    return plain


def _effective(resources: ResourceSpecV1) -> dict[str, int]:
    return {
        "node_count": resources.computed_node_count,
        "process_count": resources.computed_process_count,
        "processes_per_node": resources.computed_processes_per_node,
        "cpu_cores_per_process": resources.cpu_cores_per_process or 1,
        "gpu_cores_per_process": resources.gpu_cores_per_process or 0,
    }


def _custom_attributes(value: Value, plain: dict[str, Any]) -> None:
    if value.raw is None:
        return
    standard = plain["attributes"]["custom_attributes"] or {}
    custom = value.free_mapping()
    for name in custom.keys() & standard.keys():
        value.child(name).wrong("repeats attributes.system.job or tasks[0].count; remove it")
    plain["attributes"]["custom_attributes"] = {**standard, **custom}


def _no_arguments(value: Value, plain: dict[str, Any]) -> None:
    if value.raw != []:
        value.must_be("[]", "; arguments belong in tasks[0].command")
    elif plain["arguments"]:
        value.wrong("says that there are no arguments, but tasks[0].command has some")
    else:
        plain["arguments"] = []


def _no_duration(value: Value, plain: dict[str, Any]) -> None:
    seconds = plain["attributes"]["duration"]
    if value.raw is not None:
        value.must_be("null", "; a duration belongs in attributes.system.duration")
    elif seconds != DURATION:
        contradiction = f"no duration is set, but attributes.system.duration is {shown(seconds)}"
        value.wrong(f"says that {contradiction}; remove this, or write {DURATION} there")
    else:
        plain["attributes"]["duration"] = None


def _no_attributes(value: Value, plain: dict[str, Any]) -> None:
    present = {name: item for name, item in plain["attributes"].items() if item is not None}
    if present.get("duration") == DURATION:
        del present["duration"]
    if value.raw is not None:
        value.must_be("null", "; attributes belong in attributes.system.jpsi itself")
    elif present:
        value.wrong(f"says that no attribute is set, but the document has {', '.join(present)}")
    else:
        plain["attributes"] = None


#: Converts a value of a document to its plain form, or to a harmless value if it is wrong.
_Shape = Callable[[Value], Any]


def _shaped(fields: Mapping[str, Value], shapes: Mapping[str, _Shape]) -> dict[str, Any]:
    """Return the plain forms of the fields that have one of these shapes."""
    return {name: shape(fields[name]) for name, shape in shapes.items() if name in fields}


def _or_null(shape: _Shape) -> _Shape:
    return lambda value: None if value.raw is None else shape(value)


def _each(shape: _Shape) -> _Shape:
    return lambda value: [shape(item) for item in value.items()]


def _one_of(words: Iterable[str]) -> _Shape:
    choices = list(words)
    return lambda value: value.one_of(choices)


def _record(required: tuple[str, ...], shapes: Mapping[str, _Shape]) -> _Shape:
    return lambda value: _shaped(value.fields(required, shapes), shapes)


def _path(value: Value) -> str:
    path = value.text()
    if not path:
        value.wrong("must not be empty")
    return path


def _after(value: Value) -> Any:  # noqa: ANN401  text or a mapping
    if not isinstance(value.raw, dict):
        return value.text()
    return {"kind": DependencyKind.OK.value, **_DEPENDENCY(value)}


_DEPENDENCY = _record(("job",), {"job": Value.text, "kind": _one_of(kind.value for kind in DependencyKind)})
_MODE = _one_of(mode.value for mode in StagingMode)
_FLAGS = _each(_one_of(serialization.encode_flags(StageOutFlags.IF_PRESENT | StageOutFlags.ALWAYS)))
_STAGE_IN = _record(("source", "target"), {"source": Value.text, "target": _path, "mode": _MODE})
_STAGE_OUT = _record(
    ("source", "target"), {"source": _path, "target": Value.text, "mode": _MODE, "flags": _FLAGS}
)
_BIND = _record(("source",), {"source": Value.text, "target": Value.text, "read_only": Value.boolean})
#: Fields of Container.
_CONTAINER: Mapping[str, _Shape] = {
    **dict.fromkeys(("image", "runtime"), Value.text),
    "binds": _or_null(_each(lambda it: _BIND(it) if isinstance(it.raw, dict) else it.text())),
    "directory": _or_null(Value.text),
    "gpu": Value.boolean,
    "environment": _or_null(Value.free_mapping),
}
_PATHS = ("stdin_path", "stdout_path", "stderr_path", "pre_launch", "post_launch")
#: Fields of JobSpec, in the order in which they are written.
_SPEC: Mapping[str, _Shape] = {
    "create_directory": Value.boolean,
    "inherit_environment": Value.boolean,
    **dict.fromkeys(_PATHS, _or_null(_path)),
    "environment_setup": _or_null(_each(Value.text)),
    "container": _or_null(_record(("image",), _CONTAINER)),
    "launcher": _or_null(Value.text),
    "stage_in": _or_null(_each(_STAGE_IN)),
    "stage_out": _or_null(_each(_STAGE_OUT)),
    "cleanup": _or_null(_each(_path)),
    "cleanup_flags": _FLAGS,
}
#: Fields of JobAttributes.
_ATTRIBUTES: Mapping[str, _Shape] = {
    **dict.fromkeys(JobAttributes.text_names(), _or_null(Value.text)),
    "warn": Value.anything,  # checked by `problems`
    "retry": _or_null(Value.free_mapping),  # checked by the engine
    "after": _or_null(_each(_after)),
}
#: Fields of ResourceSpecV1.
_RESOURCES: Mapping[str, _Shape] = {
    **{field.name: _or_null(Value.integer) for field in attrs.fields(ResourceSpecV1)},
    **dict.fromkeys(("memory", "memory_per_cpu", "memory_per_gpu"), Value.anything),  # checked by `problems`
    "exclusive_node_use": Value.boolean,
}
_MARKS = {
    "arguments": _no_arguments,
    "custom_attributes": _custom_attributes,
    "duration": _no_duration,
    "attributes": _no_attributes,  # last: it checks the results of the others
}
#: The keys of `attributes.system.jpsi`.
KEYS = (*_SPEC, *_ATTRIBUTES, "resources", *_MARKS)
#: The fields that the standard part has, and words for them; `gpu` of a container only lets it see the GPUs.
_STANDARD = {
    "executable": "tasks[0].command",
    "arguments": "tasks[0].command",
    "environment": "attributes.system.environment",
    "directory": "attributes.system.cwd",
    "name": "attributes.system.job.name",
    "duration": "attributes.system.duration",
    "user": "attributes.user",
    "account": "attributes.system.jpsi.project_name",
    **dict.fromkeys(("gpu", "gpus"), "resources, beside the core of the slot: {type: gpu, count: 1}"),
}
#: Where in a document each field belongs.
PLACES: Mapping[str, str] = {
    **dict.fromkeys(_CONTAINER, "attributes.system.jpsi.container"),
    **dict.fromkeys(_RESOURCES, "attributes.system.jpsi.resources"),
    **dict.fromkeys((*_SPEC, *_ATTRIBUTES), "attributes.system.jpsi"),
    **_STANDARD,
}
