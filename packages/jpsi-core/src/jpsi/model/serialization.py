"""Converts specs to plain values for JSON and back; the spool and the job document use it.

Only values that differ from their defaults are written. `decode` does not validate: wrong types raise
ValueError, TypeError or KeyError; the content of a spec is checked by `problems` alone.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import attrs

from jpsi.model.dependencies import Dependency, OtherJob
from jpsi.model.resources import HeterogeneousResources, ResourceSpec, ResourceSpecV1
from jpsi.model.spec import Container, JobAttributes, JobSpec, StageIn, StageOut, StageOutFlags, StagingMode

#: The only field of resources of several kinds.
COMPONENTS = "components"

#: The fields of a spec that a batch system does not receive: no hook that writes its scripts uses them.
FREE = frozenset(
    {"executable", "arguments", "environment", "stdin_path", "stdout_path", "stderr_path"}
    | {"stage_in", "stage_out", "cleanup", "cleanup_flags"}
)


def encode(spec: JobSpec) -> dict[str, Any]:
    """Return the fields of a valid spec that differ from their defaults, as plain values.

    >>> encode(JobSpec("sleep", ["10"], attributes=JobAttributes(duration=timedelta(minutes=1))))
    {'executable': 'sleep', 'arguments': ['10'], 'attributes': {'duration': 60.0}}
    """
    return _encode(spec, _SPEC_DEFAULTS)


def decode(plain: Mapping[str, Any]) -> JobSpec:
    """Return the spec that `encode` converted to `plain`."""
    return JobSpec(**_decoded(plain))


def shape(plain: Mapping[str, Any]) -> str:
    """Return a text that is equal for jobs for which a backend's hooks return the same.

    >>> shape({"executable": "a", "arguments": ["1"], "name": "n"}) == shape({"executable": "b", "name": "n"})
    True
    """
    return repr([(name, value) for name, value in plain.items() if name not in FREE])


def encode_attributes(attributes: JobAttributes) -> dict[str, Any]:
    """Return the attributes that are set, as plain values."""
    return _encode(attributes, _ATTRIBUTE_DEFAULTS)


def decode_attributes(plain: Mapping[str, Any]) -> JobAttributes:
    """Return the attributes that `encode_attributes` converted to `plain`."""
    return JobAttributes(**_decoded(plain))


def encode_resources(resources: ResourceSpec) -> dict[str, Any]:
    """Return the resources that are set, as plain values."""
    if isinstance(resources, HeterogeneousResources):
        return {COMPONENTS: [encode_resources(it) for it in resources.components]}
    return _encode(resources, _RESOURCE_DEFAULTS)


def decode_resources(plain: Mapping[str, Any]) -> ResourceSpec:
    """Return the resources that `encode_resources` converted to `plain`."""
    if COMPONENTS in plain:
        return HeterogeneousResources([ResourceSpecV1.uneven(**it) for it in plain[COMPONENTS]])
    return ResourceSpecV1.uneven(**plain)


def encode_flags(flags: StageOutFlags) -> list[str]:
    """Return the names of the flags that are set, in the order of their definition.

    >>> encode_flags(StageOutFlags.IF_PRESENT | StageOutFlags.ON_ERROR)
    ['if_present', 'on_error']
    """
    return [name for name, flag in _FLAG_NAMES.items() if flag in flags]


def decode_flags(names: list[str]) -> StageOutFlags:
    """Return the flags with these names; ValueError for an unknown name."""
    flags = StageOutFlags.NONE
    for name in names:
        if name not in _FLAG_NAMES:
            raise ValueError(f"{name!r} is not one of {', '.join(_FLAG_NAMES)}")
        flags |= _FLAG_NAMES[name]
    return flags


def _encode(value: Any, defaults: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ANN401  any attrs class of the model
    plain = {}
    for name, default in defaults.items():
        item = getattr(value, name)
        if item is not default and item != default:
            plain[name] = _CODECS[name][0](item) if name in _CODECS and item is not None else item
    return plain


def _decoded(plain: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _CODECS[name][1](value) if name in _CODECS and value is not None else value
        for name, value in plain.items()
    }


def _encode_staged(item: StageIn | StageOut) -> dict[str, Any]:
    plain = {"source": str(item.source), "target": str(item.target), "mode": item.mode.value}
    return plain | {"flags": encode_flags(item.flags)} if isinstance(item, StageOut) else plain


def _encode_after(item: Dependency | OtherJob | str) -> Any:  # noqa: ANN401  text or a mapping
    if isinstance(item, str):
        return item
    dependency = Dependency.of(item)
    return {"job": dependency.native_id, "kind": dependency.kind.value}


def _each(encode_item: Callable[[Any], Any], decode_item: Callable[[Any], Any]) -> _Codec:
    return lambda items: list(map(encode_item, items)), lambda items: list(map(decode_item, items))


# The conversion of a field to a plain value, and back.
_Codec = tuple[Callable[[Any], Any], Callable[[Any], Any]]
_PATHS = ("directory", "stdin_path", "stdout_path", "stderr_path", "pre_launch", "post_launch")
_FLAG_NAMES = {str(flag.name).lower(): flag for flag in StageOutFlags}
# The fields that need a conversion, of whichever class they are.
_CODECS: Mapping[str, _Codec] = {
    **dict.fromkeys(_PATHS, (str, Path)),
    "resources": (encode_resources, decode_resources),
    "attributes": (encode_attributes, decode_attributes),
    "container": (
        lambda it: attrs.asdict(it, filter=lambda field, value: value != field.default),
        lambda it: Container(**it),
    ),
    "stage_in": _each(_encode_staged, lambda plain: StageIn(**_decoded(plain))),
    "stage_out": _each(_encode_staged, lambda plain: StageOut(**_decoded(plain))),
    "cleanup": _each(str, Path),
    "cleanup_flags": (encode_flags, decode_flags),
    "flags": (encode_flags, decode_flags),
    "mode": (operator.attrgetter("value"), StagingMode),
    "duration": (timedelta.total_seconds, lambda seconds: timedelta(seconds=seconds)),
    "retry": (lambda it: {str(name): number for name, number in it.items()}, dict),
    "after": _each(
        _encode_after, lambda it: it if isinstance(it, str) else Dependency(it["job"], it["kind"])
    ),
}
_SPEC_DEFAULTS = {it.name: it.default for it in attrs.fields(JobSpec)} | {"attributes": JobAttributes()}
_RESOURCE_DEFAULTS = {field.name: field.default for field in attrs.fields(ResourceSpecV1)}
_ATTRIBUTE_DEFAULTS = {field.name: None for field in attrs.fields(JobAttributes)}
