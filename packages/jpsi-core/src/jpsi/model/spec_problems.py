"""The rules for valid specs, which hold on any executor; they report all problems at once."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import attrs

from jpsi.model.dependencies import Dependency, DependencyKind, OtherJob
from jpsi.model.exec_sizes import exec_problems
from jpsi.model.native_id import is_native_id
from jpsi.model.resources import resource_problems
from jpsi.model.spec import JobAttributes, JobSpec, StageIn, StageOut, StageOutFlags, StagingMode

T = TypeVar("T")

#: The form of an environment variable's name (POSIX 8.1, the names a shell can handle).
ENVIRONMENT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

_LONGEST = timedelta(days=36_500)
_DEEPEST = 50


def problems(spec: object) -> list[str]:
    """Return everything that is wrong with a spec on any executor, one sentence each; empty if it is valid.

    Never raises, whatever was assigned to the fields.
    """
    if not isinstance(spec, JobSpec):
        return [f"spec must be a JobSpec, not {type(spec).__name__}"]
    return list(_problems(spec))


def sound_part(spec: object) -> JobSpec:
    """Return a spec with the valid fields of `spec` only; it always has an executable."""
    sound = JobSpec("/bin/true")
    if isinstance(spec, JobSpec):
        for field in attrs.fields(JobSpec):
            tried = attrs.evolve(sound, **{field.name: getattr(spec, field.name)})
            if not problems(tried):
                sound = tried
    return sound


def _problems(spec: JobSpec) -> Iterator[str]:
    yield from _command(spec)
    yield from _plain_fields(spec)
    yield from _paths(spec)
    if spec.environment is not None:
        yield from _environment(spec.environment)
    if spec.resources is not None:
        yield from resource_problems(spec.resources)
    yield from _attributes(spec.attributes)
    yield from _items("stage_in", spec.stage_in, StageIn, _stage_in)
    yield from _items("stage_out", spec.stage_out, StageOut, _stage_out)
    yield from _items("cleanup", spec.cleanup, Path, _path_problems)
    yield from exec_limits(spec)


def exec_limits(spec: JobSpec, inherited: Mapping[str, str] | None = None) -> Iterator[str]:
    """Yield why the kernel would refuse to start the program of a spec; nothing if its fields are invalid.

    Args:
        spec: the spec.
        inherited: the environment that the program will inherit; None leaves that out.
    """
    # the fields may hold values of any type
    parts: Sequence[object] = [spec.executable, spec.arguments, spec.environment]
    is_sound = (str, list | tuple | None, Mapping | None)
    if not all(isinstance(part, kind) for part, kind in zip(parts, is_sound, strict=True)):
        return
    executable, arguments, environment = spec.executable or "", spec.arguments or (), spec.environment or {}
    values = (it for it in environment.values() if it is not None)
    texts = [executable, *arguments, *environment, *values]
    if not any(True for text in texts for _ in _text("", text)):
        yield from exec_problems(executable, arguments, environment, inherited)


def _command(spec: JobSpec) -> Iterator[str]:
    if spec.executable is None or spec.executable == "":
        yield "executable is missing"
    else:
        yield from _text("executable", spec.executable)
    yield from _texts("arguments", spec.arguments)


def _plain_fields(spec: JobSpec) -> Iterator[str]:
    for name in ("name", "launcher"):
        if getattr(spec, name) is not None:
            yield from _text(name, getattr(spec, name))
    for name in ("inherit_environment", "create_directory"):
        if not isinstance(getattr(spec, name), bool):
            yield f"{name} must be True or False, not {getattr(spec, name)!r}"
    if not isinstance(spec.cleanup_flags, StageOutFlags):
        yield f"cleanup_flags must be StageOutFlags, not {spec.cleanup_flags!r}"


def _paths(spec: JobSpec) -> Iterator[str]:
    for name in _PATHS:
        if getattr(spec, name) is not None:
            yield from _path_problems(name, getattr(spec, name))
    if isinstance(spec.directory, Path) and not _is_anchored(spec.directory):
        yield f"directory must be absolute or start with ~/, not {str(spec.directory)!r}"


_PATHS = ("directory", "stdin_path", "stdout_path", "stderr_path", "pre_launch", "post_launch")


def _is_anchored(path: Path) -> bool:
    return path.is_absolute() or path.parts[:1] == ("~",)


def _text(where: str, value: object) -> Iterator[str]:
    if not isinstance(value, str):
        yield f"{where} must be text, not {value!r}"
    elif "\0" in value:
        yield f"{where} contains a NUL character, which no program can be given"
    elif not value.isascii():
        try:
            os.fsencode(value)
        except UnicodeEncodeError:
            yield f"{where} contains a lone surrogate, which no encoding can express"


def _texts(where: str, values: object) -> Iterator[str]:
    if values is None:
        return
    if not isinstance(values, list | tuple):
        yield f"{where} must be a list of texts, not {values!r}"
        return
    for index, value in enumerate(values):
        yield from _text(f"{where}[{index}]", value)


def _path_problems(where: str, value: object) -> Iterator[str]:
    if isinstance(value, Path):
        yield from _text(where, str(value))
    else:
        yield f"{where} must be a path, not {value!r}"


def _environment(environment: object) -> Iterator[str]:
    if not isinstance(environment, Mapping):
        yield f"environment must be a mapping of names to texts, not {environment!r}"
        return
    for name, value in environment.items():
        if not isinstance(name, str) or not ENVIRONMENT_NAME.match(name):
            yield (
                f"environment has the name {name!r}; names consist of letters, digits and _ "
                "and do not start with a digit"
            )
        elif value is not None:
            yield from _text(f"environment[{name!r}]", value)


def _attributes(attributes: object) -> Iterator[str]:
    if not isinstance(attributes, JobAttributes):
        yield f"attributes must be JobAttributes, not {attributes!r}"
        return
    duration = attributes.duration
    if duration is not None:
        if not isinstance(duration, timedelta):
            yield f"attributes.duration must be a timedelta, not {duration!r}"
        elif duration < timedelta(0):
            yield f"attributes.duration must not be negative, but is {duration}"
        elif duration > _LONGEST:
            yield f"attributes.duration is over {_LONGEST.days} days; zero means no limit"
    for name in ("queue_name", "project_name", "reservation_id"):
        if getattr(attributes, name) is not None:
            yield from _text(f"attributes.{name}", getattr(attributes, name))
    yield from _after(attributes.after)
    for name in ("custom_attributes", "user"):
        if getattr(attributes, name) is not None:
            yield from _json_mapping(f"attributes.{name}", getattr(attributes, name))


def _after(after: object) -> Iterator[str]:
    if after is None:
        return
    if not isinstance(after, list | tuple):
        yield f"attributes.after must be a list of jobs, native ids and Dependency, not {after!r}"
        return
    for index, item in enumerate(after):
        where = f"attributes.after[{index}]"
        job = item.job if isinstance(item, Dependency) else item
        if isinstance(job, str) and not is_native_id(job):
            yield f"{where} is {job!r}, which cannot be the native id of a job"
        elif not isinstance(job, str | OtherJob):
            yield f"{where} must be a Job, a native id or a Dependency on one, not {item!r}"
        if isinstance(item, Dependency) and not isinstance(item.kind, DependencyKind):
            kinds = ", ".join(kind.value for kind in DependencyKind)
            yield f"{where} is of the kind {item.kind!r}, which is none of {kinds}"


def _json_mapping(where: str, value: object) -> Iterator[str]:
    if isinstance(value, dict):
        yield from _json(where, value)
    else:
        yield f"{where} must be a mapping, not {value!r}"


def _json(where: str, value: object, depth: int = 0) -> Iterator[str]:
    if depth > _DEEPEST:
        yield f"{where} is nested more than {_DEEPEST} levels deep"
    elif isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                yield f"{where} has the key {key!r}; keys must be text"
            else:
                yield from _json(f"{where}[{key!r}]", item, depth + 1)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _json(f"{where}[{index}]", item, depth + 1)
    elif isinstance(value, float) and not math.isfinite(value):
        yield f"{where} is {value}, which a job document cannot express"
    elif value is not None and not isinstance(value, str | int | float):
        yield f"{where} must consist of what JSON can express, not {value!r}"


def _items(
    where: str,
    values: object,
    kind: type[T],
    check: Callable[[str, T], Iterator[str]],
) -> Iterator[str]:
    if values is None:
        return
    if not isinstance(values, list | tuple):
        yield f"{where} must be a list of {kind.__name__}, not {values!r}"
        return
    for index, value in enumerate(values):
        if isinstance(value, kind):
            yield from check(f"{where}[{index}]", value)
        else:
            yield f"{where}[{index}] must be a {kind.__name__}, not {value!r}"


def _stage_in(where: str, item: StageIn) -> Iterator[str]:
    yield from _text(f"{where}.source", item.source)
    yield from _path_problems(f"{where}.target", item.target)
    yield from _mode(where, item.mode)


def _stage_out(where: str, item: StageOut) -> Iterator[str]:
    yield from _path_problems(f"{where}.source", item.source)
    yield from _text(f"{where}.target", item.target)
    yield from _mode(where, item.mode)
    if not isinstance(item.flags, StageOutFlags):
        yield f"{where}.flags must be StageOutFlags, not {item.flags!r}"


def _mode(where: str, mode: object) -> Iterator[str]:
    if not isinstance(mode, StagingMode):
        yield f"{where}.mode must be a StagingMode, not {mode!r}"
