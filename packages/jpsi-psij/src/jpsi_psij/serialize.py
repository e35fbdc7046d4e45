"""Specs as text, in the forms of psij-python."""

from __future__ import annotations

import abc
import io
import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path, PurePath
from typing import IO, Any

from .job_attributes import JobAttributes
from .job_spec import JobSpec
from .resource_spec import ResourceSpec, ResourceSpecV1

_VERSION = "__version"
_FIELDS: dict[type, tuple[str, ...]] = {
    JobSpec: (
        *("executable", "arguments", "directory", "name", "inherit_environment", "environment", "stdin_path"),
        *("stdout_path", "stderr_path", "resources", "attributes", "pre_launch", "post_launch", "launcher"),
    ),
    JobAttributes: ("duration", "queue_name", "account", "reservation_id", "custom_attributes"),
    ResourceSpecV1: (
        *("node_count", "process_count", "processes_per_node", "cpu_cores_per_process"),
        *("gpu_cores_per_process", "exclusive_node_use", "memory"),
    ),
}

#: The fields that these forms do not have.
_WITHOUT_TEXT = ("stage_in", "stage_out", "cleanup", "cleanup_flags")


class Serializer(abc.ABC):
    """A way to write specs as text and to read them."""

    @abc.abstractmethod
    def _dump_dict(self, d: dict[str, Any], stream: IO[Any]) -> None:
        """Write a mapping."""

    @abc.abstractmethod
    def _load_dict(self, stream: IO[Any]) -> dict[str, Any]:
        """Read a mapping."""

    def dump(self, spec: JobSpec, stream: IO[Any]) -> None:
        """Write a spec to a stream.

        Raises:
            ValueError: the spec has staging or cleanup, for which the forms of psij-python have no place.
        """
        self._dump_dict(self._from_spec(spec), stream)

    def load(self, stream: IO[Any]) -> JobSpec:
        """Read a spec from a stream.

        Raises:
            ValueError: the text has a key that specs do not have, or a value that cannot be read.
        """
        return self._to_spec(self._load_dict(stream))

    def dumps(self, spec: JobSpec) -> str:
        """Return a spec as text."""
        stream = io.StringIO()
        self.dump(spec, stream)
        return stream.getvalue()

    def loads(self, s: str) -> JobSpec:
        """Return the spec that a text denotes; raise ValueError as `load` does."""
        return self.load(io.StringIO(s))

    def _from_spec(self, o: JobSpec) -> dict[str, Any]:
        """Return a spec as a mapping of plain values, without the fields that have their default."""
        return _from_part(o)

    def _to_spec(self, d: Mapping[str, Any]) -> JobSpec:
        """Return the spec that a mapping denotes."""
        spec = JobSpec()
        _set_fields(spec, d, {"attributes": _to_attributes, "resources": _to_resources})
        return spec


class JSONSerializer(Serializer):
    """Specs as JSON."""

    def _dump_dict(self, d: dict[str, Any], stream: IO[Any]) -> None:
        json.dump(d, stream)

    def _load_dict(self, stream: IO[Any]) -> dict[str, Any]:
        found = json.load(stream)
        if not isinstance(found, dict):
            msg = f"a spec is a JSON object, not {found!r}"
            raise ValueError(msg)  # noqa: TRY004  as for any other wrong text
        return found


class Export:
    """Writes specs to files, as early versions of psij-python did."""

    def to_dict(self, o: JobSpec) -> dict[str, Any]:
        """Return a spec as a mapping of plain values."""
        return JSONSerializer()._from_spec(o)

    def export(self, obj: JobSpec, dest: str | Path) -> bool:
        """Write a spec to a file; return True."""
        text = json.dumps({"type": "JobSpec", "data": self.to_dict(obj)}, indent=4)
        Path(dest).write_text(text, encoding="utf-8")
        return True


class Import:
    """Reads specs from the files of `Export`, and from those of `JSONSerializer`."""

    def from_dict(self, hash: Mapping[str, Any], target_type: str = "JobSpec") -> JobSpec:  # noqa: A002, ARG002  psij's names
        """Return the spec that a mapping denotes."""
        return JSONSerializer()._to_spec(hash)

    def load(self, src: str | Path) -> JobSpec:
        """Return the spec in a file."""
        found = json.loads(Path(src).read_text(encoding="utf-8"))
        return self.from_dict(found["data"] if found.keys() >= {"type", "data"} else found)


def _from_part(part: JobSpec | JobAttributes | ResourceSpec) -> dict[str, Any]:
    default, result = type(part)(), {}
    for name in _WITHOUT_TEXT if isinstance(part, JobSpec) else ():
        if getattr(part, name) != getattr(default, name):
            raise ValueError(f"{name} cannot be serialized: the forms of psij-python have no place for it")
    for name in _FIELDS[type(part)]:
        value = getattr(part, name)
        if value != getattr(default, name) or name == "attributes":
            result[name] = _from_value(value)
    if isinstance(part, ResourceSpec):
        result[_VERSION] = part.version
    return result


def _from_value(value: Any) -> Any:  # noqa: ANN401  whatever a field holds
    if isinstance(value, JobAttributes | ResourceSpec):
        return _from_part(value)
    if isinstance(value, timedelta):
        return f"{value.total_seconds()} s"
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, Mapping):
        return {name: _from_value(it) for name, it in value.items()}
    return [_from_value(it) for it in value] if isinstance(value, list | tuple) else value


def _to_attributes(found: Mapping[str, Any]) -> JobAttributes:
    attributes = JobAttributes()
    _set_fields(attributes, found, {})
    return attributes


def _to_resources(found: Mapping[str, Any]) -> ResourceSpec:
    ResourceSpec.get_instance(found.get(_VERSION, 1))
    _check_names(ResourceSpecV1, found)
    return ResourceSpecV1(**{name: it for name, it in found.items() if name != _VERSION})


def _set_fields(
    part: JobSpec | JobAttributes, found: Mapping[str, Any], readers: Mapping[str, Callable[[Any], Any]]
) -> None:
    _check_names(type(part), found)
    for name, value in found.items():
        setattr(part, name, readers[name](value) if name in readers and value is not None else value)


def _check_names(kind: type, found: Mapping[str, Any]) -> None:
    if unknown := found.keys() - {*_FIELDS[kind], _VERSION}:
        raise ValueError(f"{kind.__name__} has no {', '.join(sorted(unknown))}")
