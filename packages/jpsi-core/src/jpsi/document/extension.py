"""`attributes.system.jpsi`: the part of a job document beyond J/PSI Appendix A.

It has the fields of a spec for which Appendix A has no place, in the forms of `plain`, and it marks values in
the standard part that the spec does not have: for example resources that are not set. It must never
contradict the standard part. If there are several kinds of slots, the standard part has the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from jpsi.document.graph import COUNT_KEYS
from jpsi.document.problems import shown
from jpsi.document.shapes import ATTRIBUTES, RESOURCES, SPEC, shaped
from jpsi.document.values import Value
from jpsi.model import (
    COMPONENTS,
    HeterogeneousResources,
    JobSpec,
    ResourceSpecV1,
    components,
    decode_resources,
    encode,
    encode_attributes,
    encode_resources,
    resource_problems,
)

#: The seconds that stand for a duration that is not set: the 10 minutes of J/PSI 0, setDuration.
DURATION = 600


def carried(custom_attributes: Mapping[str, Any] | None, kind: str) -> dict[str, Any]:
    """Return the custom attributes that the standard part can hold, without the `<kind>.` of their names.

    `job.<key>` belongs in attributes.system.job, if it is text, and `count.<key>` in tasks[0].count.
    """
    return {
        name.removeprefix(f"{kind}."): value
        for name, value in (custom_attributes or {}).items()
        if _carrier(name, value) == kind
    }


def _carrier(name: str, value: object) -> str | None:
    kind, dot, key = name.partition(".")
    if kind == "job" and dot and key != "name" and isinstance(value, str):
        return kind
    if kind == "count" and dot and key not in COUNT_KEYS:
        return kind
    return None


def write_extension(spec: JobSpec, standard: ResourceSpecV1) -> dict[str, Any]:
    """Return the extension for a valid spec whose standard part has the resources `standard`."""
    plain = encode(spec)
    extension = {name: plain[name] for name in SPEC if name in plain}
    if spec.arguments is not None and not spec.arguments:
        extension["arguments"] = []
    if isinstance(spec.resources, HeterogeneousResources):
        extension["resources"] = encode_resources(spec.resources)
    elif not isinstance(spec.resources, ResourceSpecV1):
        extension["resources"] = None
    elif spec.resources != standard:
        other = attrs.asdict(standard)
        extension["resources"] = {
            name: value for name, value in attrs.asdict(spec.resources).items() if value != other[name]
        }
    attributes = encode_attributes(spec.attributes)
    extension.update((name, attributes[name]) for name in ATTRIBUTES if name in attributes)
    if spec.attributes.duration is None:
        extension["duration"] = None
    custom = spec.attributes.custom_attributes
    rest = {name: value for name, value in (custom or {}).items() if _carrier(name, value) is None}
    if rest or custom == {}:
        extension["custom_attributes"] = rest
    return extension


def read_extension(jpsi: Value, plain: dict[str, Any], standard: ResourceSpecV1 | None) -> None:
    """Complete `plain`, the spec of the standard part, from the extension.

    `standard` are the resources of the standard part; None if there was a mistake in them.
    """
    for name, value in jpsi.mapping().items():
        if name in _ELSEWHERE:
            value.wrong(f"belongs in {_ELSEWHERE[name]}")
    fields = jpsi.fields((), NAMES)
    plain.update(shaped(fields, SPEC))
    plain["attributes"].update(shaped(fields, ATTRIBUTES))
    if "resources" in fields:
        plain["resources"] = _resources(fields["resources"], standard)
    for name, apply in _MARKS.items():
        if name in fields:
            apply(fields[name], plain)


def _resources(value: Value, standard: ResourceSpecV1 | None) -> dict[str, Any] | None:
    plain = None
    if value.raw is not None and COMPONENTS in value.mapping():
        parts = value.fields((COMPONENTS,))[COMPONENTS].items()
        plain = {COMPONENTS: [shaped(part.fields((), RESOURCES), RESOURCES) for part in parts]}
    elif value.raw is not None:
        plain = {} if standard is None else encode_resources(standard)
        plain.update(shaped(value.fields((), RESOURCES), RESOURCES))
    resources = decode_resources(plain or {})
    # Values with a mistake, or with one that `problems` will report, cannot be compared.
    wrong = value.mistakes.concern(value.place) or resource_problems(resources)
    if standard is not None and not wrong:
        here, there = _effective(components(resources)[0]), _effective(standard)
        differing = [name for name in here if here[name] != there[name]]
        if differing:
            said = ", ".join(f"{name} {here[name]}" for name in differing)
            graph = ", ".join(f"{name} {there[name]}" for name in differing)
            of = f" in {COMPONENTS}[0]" if isinstance(resources, HeterogeneousResources) else ""
            value.wrong(f"comes to {said}{of}, but the document's resources and tasks come to {graph}")
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
        value.child(name).wrong("is also said by attributes.system.job or tasks[0].count")
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
        value.wrong(
            f"says that no duration is set, but attributes.system.duration is {shown(seconds)}; "
            f"remove this, or write {DURATION} there"
        )
    else:
        plain["attributes"]["duration"] = None


def _no_attributes(value: Value, plain: dict[str, Any]) -> None:
    given = {name: item for name, item in plain["attributes"].items() if item is not None}
    if given.get("duration") == DURATION:
        del given["duration"]
    if value.raw is not None:
        value.must_be("null", "; attributes belong in attributes.system.jpsi itself")
    elif given:
        value.wrong(f"says that no attribute is set, but the document has {', '.join(given)}")
    else:
        plain["attributes"] = None


_MARKS = {
    "arguments": _no_arguments,
    "custom_attributes": _custom_attributes,
    "duration": _no_duration,
    "attributes": _no_attributes,  # last: it checks the results of the others
}
#: The keys of `attributes.system.jpsi`.
NAMES = (*SPEC, *ATTRIBUTES, "resources", *_MARKS)
_ELSEWHERE = {
    "executable": "tasks[0].command",
    "environment": "attributes.system.environment",
    "directory": "attributes.system.cwd",
    "name": "attributes.system.job.name",
    "user": "attributes.user",
    "account": "attributes.system.jpsi.project_name",
}
