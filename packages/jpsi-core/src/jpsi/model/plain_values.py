"""Converts specs and statuses to plain values for JSON and back; the spool and the job document use it.

Only values that differ from their defaults are written. `decode` does not validate: wrong types raise
ValueError, TypeError or KeyError; the content of a spec is checked by `problems` alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import attrs

from jpsi.model.dependencies import Dependency, OtherJob
from jpsi.model.resources import HeterogeneousResources, ResourceSpec, ResourceSpecV1
from jpsi.model.spec import JobAttributes, JobSpec, StageIn, StageOut, StageOutFlags, StagingMode
from jpsi.model.states import Evidence, JobState, JobStatus, Reason

#: The only field of resources of several kinds.
COMPONENTS = "components"


class Codec(NamedTuple):
    """The conversion of one field to a plain value and back."""

    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


def encode(spec: JobSpec) -> dict[str, Any]:
    """Return the fields of a valid spec that differ from their defaults, as plain values.

    >>> encode(JobSpec("sleep", ["10"], attributes=JobAttributes(duration=timedelta(minutes=1))))
    {'executable': 'sleep', 'arguments': ['10'], 'attributes': {'duration': 60.0}}
    """
    return _encode(spec, _SPEC_DEFAULTS, SPEC_CODECS)


def decode(plain: Mapping[str, Any]) -> JobSpec:
    """Return the spec that `encode` converted to `plain`."""
    return JobSpec(**_decoded(plain, SPEC_CODECS))


def encode_attributes(attributes: JobAttributes) -> dict[str, Any]:
    """Return the attributes that are set, as plain values."""
    return _encode(attributes, _ATTRIBUTE_DEFAULTS, ATTRIBUTE_CODECS)


def encode_resources(resources: ResourceSpec) -> dict[str, Any]:
    """Return the resources that are set, as plain values."""
    if isinstance(resources, HeterogeneousResources):
        return {COMPONENTS: [encode_resources(it) for it in resources.components]}
    return _encode(resources, _RESOURCE_DEFAULTS, {})


def decode_resources(plain: Mapping[str, Any]) -> ResourceSpec:
    """Return the resources that `encode_resources` converted to `plain`."""
    if COMPONENTS in plain:
        return HeterogeneousResources([ResourceSpecV1(**it) for it in plain[COMPONENTS]])
    return ResourceSpecV1(**plain)


def decode_attributes(plain: Mapping[str, Any]) -> JobAttributes:
    """Return the attributes that `encode_attributes` converted to `plain`."""
    return JobAttributes(**_decoded(plain, ATTRIBUTE_CODECS))


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
            msg = f"{name!r} is not one of {', '.join(_FLAG_NAMES)}"
            raise ValueError(msg)
        flags |= _FLAG_NAMES[name]
    return flags


def encode_status(status: JobStatus) -> dict[str, Any]:
    """Return a status as plain values."""
    return {
        "state": status.state.value,
        "time": status.time.isoformat(),
        "exit_code": status.exit_code,
        "message": status.message,
        "reason": None if status.reason is None else status.reason.value,
        "evidence": None if status.evidence is None else status.evidence.value,
        "metadata": dict(status.metadata),
    }


def decode_status(plain: Mapping[str, Any]) -> JobStatus:
    """Return the status that `encode_status` converted to `plain`."""
    reason, evidence = plain["reason"], plain["evidence"]
    return JobStatus(
        JobState(plain["state"]),
        time=datetime.fromisoformat(plain["time"]),
        exit_code=plain["exit_code"],
        message=plain["message"],
        metadata=plain["metadata"],
        reason=None if reason is None else Reason(reason),
        evidence=None if evidence is None else Evidence(evidence),
    )


def _encode(value: Any, defaults: Mapping[str, Any], codecs: Mapping[str, Codec]) -> dict[str, Any]:  # noqa: ANN401  any attrs class of the model
    plain = {}
    for name, default in defaults.items():
        item = getattr(value, name)
        if item is default or item == default:
            continue
        codec = codecs.get(name)
        plain[name] = item if codec is None or item is None else codec.encode(item)
    return plain


def _decoded(plain: Mapping[str, Any], codecs: Mapping[str, Codec]) -> dict[str, Any]:
    return {
        name: codecs[name].decode(value) if name in codecs and value is not None else value
        for name, value in plain.items()
    }


def _encode_stage_in(item: StageIn) -> dict[str, Any]:
    return {"source": item.source, "target": str(item.target), "mode": item.mode.value}


def _encode_stage_out(item: StageOut) -> dict[str, Any]:
    return {
        "source": str(item.source),
        "target": item.target,
        "mode": item.mode.value,
        "flags": encode_flags(item.flags),
    }


def _decode_stage_in(plain: Mapping[str, Any]) -> StageIn:
    return StageIn(**_decoded(plain, _STAGE_CODECS))


def _decode_stage_out(plain: Mapping[str, Any]) -> StageOut:
    return StageOut(**_decoded(plain, _STAGE_CODECS))


def _encode_after(item: Dependency | OtherJob | str) -> Any:  # noqa: ANN401  text or a mapping
    if isinstance(item, str):
        return item
    dependency = Dependency.of(item)
    return {"job": dependency.native_id, "kind": dependency.kind.value}


def _decode_after(plain: Any) -> Dependency | str:  # noqa: ANN401  what `_encode_after` made
    return plain if isinstance(plain, str) else Dependency(plain["job"], plain["kind"])


def _each(codec: Codec) -> Codec:
    return Codec(
        lambda items: [codec.encode(item) for item in items],
        lambda items: [codec.decode(item) for item in items],
    )


_FLAG_NAMES = {
    "if_present": StageOutFlags.IF_PRESENT,
    "on_success": StageOutFlags.ON_SUCCESS,
    "on_error": StageOutFlags.ON_ERROR,
    "on_cancel": StageOutFlags.ON_CANCEL,
}
_PATH = Codec(str, Path)
_STAGE_CODECS = {
    "mode": Codec(lambda mode: mode.value, StagingMode),
    "flags": Codec(encode_flags, decode_flags),
}

#: The fields of JobAttributes that need a conversion.
ATTRIBUTE_CODECS: Mapping[str, Codec] = {
    "duration": Codec(timedelta.total_seconds, lambda seconds: timedelta(seconds=seconds)),
    "after": _each(Codec(_encode_after, _decode_after)),
}
#: The fields of JobSpec that need a conversion.
SPEC_CODECS: Mapping[str, Codec] = {
    "directory": _PATH,
    "stdin_path": _PATH,
    "stdout_path": _PATH,
    "stderr_path": _PATH,
    "pre_launch": _PATH,
    "post_launch": _PATH,
    "resources": Codec(encode_resources, decode_resources),
    "attributes": Codec(encode_attributes, decode_attributes),
    "stage_in": _each(Codec(_encode_stage_in, _decode_stage_in)),
    "stage_out": _each(Codec(_encode_stage_out, _decode_stage_out)),
    "cleanup": _each(_PATH),
    "cleanup_flags": Codec(encode_flags, decode_flags),
}
_SPEC_DEFAULTS = {field.name: field.default for field in attrs.fields(JobSpec)} | {
    "attributes": JobAttributes()
}
_RESOURCE_DEFAULTS = {field.name: field.default for field in attrs.fields(ResourceSpecV1)}
_ATTRIBUTE_DEFAULTS = {field.name: None for field in attrs.fields(JobAttributes)}
