"""The rules for valid specs, which hold on any executor; they report all problems together.

Every message begins with its field, as `field: sentence` or `field sentence`: the reader of job documents
parses it to find the line of a problem.
"""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import chain
from pathlib import Path
from typing import Any

import attrs

from jpsi.model.dependencies import Dependency, DependencyKind, OtherJob, is_native_id
from jpsi.model.resources import HeterogeneousResources, ResourceSpec, ResourceSpecV1
from jpsi.model.spec import (
    Bind,
    Container,
    JobAttributes,
    JobSpec,
    StageIn,
    StageOut,
    StageOutFlags,
    StagingMode,
)
from jpsi.model.variable_references import expand

#: The signals that batch systems and users send to a job, to end it or to notify it.
SIGNALS = ("HUP", "INT", "QUIT", "TERM", "ALRM", "USR1", "USR2", "XCPU")
#: The form of an environment variable's name (POSIX 8.1, the names a shell can handle).
VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

_SETUP = re.compile(r"(module|conda|venv|spack|source):[^-\n][^\n]*")

# Yields the problems of a value, given its name for messages.
_Check = Callable[[str, Any], Iterator[str]]

_MAX_DURATION = timedelta(days=36_500)
_MAX_DEPTH = 50
# A smaller number of bytes was meant in another unit.
_LEAST_MEMORY = 1 << 20
_MIN_COMPONENTS = 2
# execve(2), "Limits on size of arguments and environment": one text has at most 32 pages; all texts together,
# with a pointer to each, have at most a quarter of the stack's limit. The kernel refuses more with E2BIG.
# MAX_ARG_STRLEN of Linux, including the final NUL; other kernels limit only the sum.
_PAGES_PER_TEXT = 32
# The most that Linux grants, whatever the limit of the stack is: three quarters of 8 MiB.
_MAX_EXEC_BYTES = 6 << 20
_POINTER_BYTES = 8
# No kernel refuses so little.
_SMALL_BYTES = _PAGES_PER_TEXT * 4096
# Longer names are left out of messages.
_MAX_SHOWN_NAME = 60
# The fields that the kernel passes to the program.
_PASSED = ("executable", "arguments", "environment")


def problems(spec: object) -> list[str]:
    """Return everything that is wrong with a spec on any executor, one sentence each; empty if it is valid.

    Never raises, whatever was assigned to the fields.
    """
    if not isinstance(spec, JobSpec):
        return [f"spec must be a JobSpec, not {type(spec).__name__}"]
    spec = attrs.evolve(spec)  # what was put into its list and map later becomes text
    missing = ["executable is missing"] if spec.executable in (None, "") else []
    found = [*missing, *_SPEC("", spec)]
    is_valid = not any(it.startswith(_PASSED) for it in found)
    return [*found, *exec_limits(spec if is_valid else _valid_texts(spec))]


def resource_problems(resources: object, where: str = "resources") -> list[str]:
    """Return everything that is wrong with a resource specification, one sentence each."""
    if isinstance(resources, ResourceSpecV1):
        return list(_RESOURCES(where, resources)) or list(_contradictions(where, resources))
    if isinstance(resources, HeterogeneousResources):
        return list(_components(f"{where}.components", resources.components))
    if isinstance(resources, ResourceSpec):
        return [f"{where} of version {resources.version} are not supported; use ResourceSpecV1"]
    return [f"{where} must be a ResourceSpec, not {type(resources).__name__}"]


def sound_part(spec: object) -> JobSpec:
    """Return a spec with the valid fields of `spec` only; it always has an executable."""
    sound = JobSpec("/bin/true")
    if isinstance(spec, JobSpec):
        for field in attrs.fields(JobSpec):
            tried = attrs.evolve(sound, **{field.name: getattr(spec, field.name)})
            if not problems(tried):
                sound = tried
    return sound


def exec_limits(spec: JobSpec, inherited: Mapping[str, str] | None = None) -> Iterator[str]:
    """Yield why the kernel would refuse to start the program of a spec, whose texts are valid.

    References to unknown variables count as empty, since their values are not known on this machine. The
    environment that the program will inherit is left out for None.
    """
    if _is_small(spec, inherited):
        return
    texts, longest = list(_texts(spec)), text_bytes() or math.inf
    long = [it for it in texts if len(it[1]) * 4 >= longest and _size(it[1]) > longest]
    for where, text in long:
        yield (
            f"{where} takes {_size(text)} bytes, and the kernel passes a program at most {longest} "
            f"in one argument or variable: hand it a file instead"
        )
    if long:
        return
    own = spec.environment or {}
    others = [f"{name}={value}" for name, value in (inherited or {}).items() if name not in own]
    every = [*(text for _, text in texts), *others]
    total = _size("".join(every)) - 1 + len(every) * (1 + _POINTER_BYTES)
    if total > (most := all_bytes()):
        besides = f", {len(others)} of them inherited," if others else ""
        yield (
            f"arguments and environment together{besides} take {total} bytes, and the kernel passes "
            f"a program at most {most}: hand it a file instead"
        )


def _is_small(spec: JobSpec, inherited: Mapping[str, str] | None) -> bool:
    """Return True if the texts of a spec are below every limit, whatever characters they consist of."""
    environment, raw = spec.environment or {}, getattr(inherited, "_data", inherited) or {}
    texts = (spec.executable, *(spec.arguments or ()), *environment.values())
    plain = [*environment, *(it or "" for it in texts)]
    sizes = [*map(len, plain), *map(len, raw), *map(len, raw.values())]
    # no character takes more than four bytes, and only a reference makes a text longer
    most_bytes = sum(sizes) * 4 + len(sizes) * (1 + _POINTER_BYTES)
    return most_bytes < min(_SMALL_BYTES, all_bytes()) and not any("${" in it for it in plain)


def text_bytes() -> int | None:
    """Return how many bytes one argument or variable may have with its final NUL; None is any number."""
    return _PAGES_PER_TEXT * os.sysconf("SC_PAGE_SIZE") if sys.platform == "linux" else None


def all_bytes() -> int:
    """Return how many bytes all arguments and variables may have, with a NUL and a pointer for each."""
    limit = os.sysconf("SC_ARG_MAX")
    return min(limit, _MAX_EXEC_BYTES) if limit > 0 else _MAX_EXEC_BYTES


def _texts(spec: JobSpec) -> Iterator[tuple[str, str]]:
    """Yield the texts to pass, each with its name for messages."""
    known: dict[str, str] = {}
    yield "executable", spec.executable or ""
    for name, value in (spec.environment or {}).items():
        if value is None:
            known.pop(name, None)
        else:
            known[name] = expand(value, known, keep_unset=False)
    for index, text in enumerate(spec.arguments or ()):
        yield f"arguments[{index}]", expand(text, known, keep_unset=False)
    for name, value in known.items():
        yield f"environment[{name!r}]" if len(name) < _MAX_SHOWN_NAME else "environment", f"{name}={value}"


def _valid_texts(spec: JobSpec) -> JobSpec:
    """Return a spec of what the kernel passes to the program, with an empty text for each that is wrong."""

    def valid(text: str | None) -> str | None:
        return "" if text is not None and any(_text("", text)) else text

    arguments = spec.arguments if isinstance(spec.arguments, list | tuple) else ()
    environment = spec.environment if isinstance(spec.environment, Mapping) else {}
    return JobSpec(
        valid(spec.executable),
        [valid(text) or "" for text in arguments],
        environment={name: valid(value) for name, value in environment.items() if valid(name)},
    )


def _size(text: str) -> int:
    return 1 + (len(text) if text.isascii() else len(os.fsencode(text)))


def _must_be(kind: type | tuple[type, ...], name: str, check: _Check = lambda *_: iter(())) -> _Check:
    """Return a check for values of this kind, which `check` examines further."""

    def checked(where: str, value: object) -> Iterator[str]:
        if isinstance(value, kind):
            yield from check(where, value)
        else:
            yield f"{where} must be {name}, not {value!r}"

    return checked


def _list_of(name: str, check: _Check) -> _Check:
    def items(where: str, values: Sequence[object]) -> Iterator[str]:
        for index, value in enumerate(values):
            yield from check(f"{where}[{index}]", value)

    return _must_be((list, tuple), f"a list of {name}", items)


def _fields(kind: type[attrs.AttrsInstance], **own: _Check) -> _Check:
    """Return a check of an object's fields: for each that has none of its own, that of its type."""
    checks = []
    for field in attrs.fields(kind):
        type_ = str(field.type).removesuffix(" | None")
        checks.append((field.name, type_ != field.type, own.get(field.name) or _TYPES[type_]))

    def fields(where: str, value: object) -> Iterator[str]:
        for name, is_optional, check in checks:
            item = getattr(value, name)
            if item is not None or not is_optional:
                yield from check(f"{where}.{name}" if where else name, item)

    return fields


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


def _path_text(where: str, path: Path) -> Iterator[str]:
    return _text(where, str(path))


def _directory(where: str, path: Path) -> Iterator[str]:
    yield from _path_text(where, path)
    if not path.is_absolute() and path.parts[:1] != ("~",):
        yield f"{where} must be absolute or start with ~/, not {str(path)!r}"


def _variables(where: str, environment: Mapping[object, object]) -> Iterator[str]:
    for name, value in environment.items():
        if not isinstance(name, str) or not VARIABLE_NAME.match(name):
            yield (
                f"{where} has the name {name!r}; names consist of letters, digits and _ "
                "and do not start with a digit"
            )
        elif value is not None:
            yield from _text(f"{where}[{name!r}]", value)


def _image(where: str, image: str) -> Iterator[str]:
    if not image or image.startswith(("-", "~")):
        yield f"{where} must be a path, with ${{HOME}} for ~, or the name of an image, not {image!r}"


def _container_path(where: str, path: str) -> Iterator[str]:
    if not path.startswith(("/", "${")):
        yield f"{where} must be absolute, or begin with a variable such as ${{HOME}}, not {path!r}"


def _setup(where: str, value: object) -> Iterator[str]:
    yield from _text(where, value)
    if isinstance(value, str) and not _SETUP.fullmatch(value):
        forms = "module:NAME, conda:NAME, venv:DIRECTORY, spack:SPEC or source:FILE"
        yield f"{where} must be {forms}, not {value!r}"


def _duration(where: str, duration: timedelta) -> Iterator[str]:
    if duration < timedelta(0):
        yield f"{where} must not be negative, but is {duration}"
    elif duration > _MAX_DURATION:
        yield f"{where} is over {_MAX_DURATION.days} days; zero means no limit"


def _warning(where: str, value: Sequence[object]) -> Iterator[str]:
    match value:
        case [str(signal), (int() | float()) as seconds] if signal in SIGNALS and 0 < seconds < math.inf:
            return
    form = f"one of {', '.join(SIGNALS)}, and a number of seconds over 0, as in [USR1, 60]"
    yield f"{where} must be {form}, not {[*value]!r}"


def _mail(where: str, value: object) -> Iterator[str]:
    found = list(_text(where, value))
    if isinstance(value, str) and not found:
        try:
            JobAttributes(mail=value).mail_request()
        except ValueError as e:
            found = [str(e)]
    yield from found


def _count(least: int) -> _Check:
    def count(where: str, value: object) -> Iterator[str]:
        if type(value) is not int:
            yield f"{where} must be a whole number, not {value!r}"
        elif value < least:
            yield f"{where} must be at least {least}, not {value}"

    return count


def _memory(where: str, value: object) -> Iterator[str]:
    found = list(_count(1)(where, value))
    if type(value) is not int:
        found = [f"{where} must be a whole number of bytes, such as {4 << 30}, not {value!r}"]
    elif not found and value < _LEAST_MEMORY:
        units = f"{value} GiB are {value << 30}, {value} MiB are {value << 20}"
        found = [f"{where}: {value} is a number of bytes, too few for any job: {units}"]
    yield from found


def _contradictions(where: str, resources: ResourceSpecV1) -> Iterator[str]:
    if len(given := [name for name in _MEMORY if getattr(resources, name) is not None]) > 1:
        yield f"{where}: give only one of {' and '.join(given)}"
    if resources.memory_per_gpu is not None and not resources.gpu_cores_per_process:
        yield f"{where}.memory_per_gpu: the job has no GPUs; set gpu_cores_per_process"
    nodes, processes, per_node = resources.node_count, resources.process_count, resources.processes_per_node
    if nodes is None or processes is None:
        return
    needed = nodes if per_node is None else -(-processes // per_node)
    if per_node is None and nodes > processes:
        yield f"{where}: {processes} processes cannot occupy {nodes} nodes"
    elif needed != nodes:
        wanted = f"{processes} processes at {per_node} per node need {needed} nodes"
        yield f"{where}: {wanted}, but node_count is {nodes}"


def _components(where: str, parts: object) -> Iterator[str]:
    if not isinstance(parts, tuple):
        yield f"{where} must be a list of ResourceSpecV1, not {parts!r}"
    elif len(parts) < _MIN_COMPONENTS:
        yield f"{where} must be at least {_MIN_COMPONENTS}, not {len(parts)}"
    else:
        for index, part in enumerate(parts):
            if isinstance(part, ResourceSpecV1):
                yield from resource_problems(part, f"{where}[{index}]")
            else:
                yield f"{where}[{index}] must be a ResourceSpecV1, not {type(part).__name__}"


def _dependency(where: str, item: object) -> Iterator[str]:
    job = item.job if isinstance(item, Dependency) else item
    if isinstance(job, str) and not is_native_id(job):
        yield f"{where} is {job!r}, which cannot be the native id of a job"
    elif not isinstance(job, str | OtherJob):
        yield f"{where} must be a Job, the text of a native id or a Dependency on one, not {item!r}"
    if isinstance(item, Dependency) and not isinstance(item.kind, DependencyKind):
        kinds = ", ".join(kind.value for kind in DependencyKind)
        yield f"{where} is of the kind {item.kind!r}, which is none of {kinds}"


def _json(where: str, value: object, depth: int = 0) -> Iterator[str]:
    if depth > _MAX_DEPTH:
        yield f"{where} is nested more than {_MAX_DEPTH} levels deep"
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


_absolute = _must_be(str, "text", lambda where, it: chain(_text(where, it), _container_path(where, it)))
# By the types of fields, without None.
_TYPES: Mapping[str, _Check] = {
    "str": _text,
    "int": _count(1),
    "bool": _must_be(bool, "True or False"),
    "Path": _must_be(Path, "a path", _path_text),
    "timedelta": _must_be(timedelta, "a timedelta", _duration),
    "StageOutFlags": _must_be(StageOutFlags, "StageOutFlags"),
    "StagingMode": _must_be(StagingMode, "a StagingMode"),
    "list[str]": _list_of("texts", _text),
    "dict[str, str | None]": _must_be(Mapping, "a mapping of names to texts", _variables),
    "dict[str, Any]": _must_be(dict, "a mapping", _json),
}

_MEMORY = ("memory", "memory_per_cpu", "memory_per_gpu")
_RESOURCES = _fields(ResourceSpecV1, gpu_cores_per_process=_count(0), **dict.fromkeys(_MEMORY, _memory))
_ATTRIBUTES = _fields(
    JobAttributes,
    mail=_mail,
    warn=_must_be((list, tuple), "a signal and seconds", _warning),
    retry=_must_be(dict, "a mapping"),  # the engine checks what is in it
    after=_list_of("jobs, native ids and Dependency", _dependency),
)
_BIND = _fields(Bind, source=_absolute, target=_absolute)
_CONTAINER = _fields(
    Container,
    image=_must_be(str, "text", lambda where, it: chain(_text(where, it), _image(where, it))),
    binds=_list_of("Bind", _must_be(Bind, "SOURCE[:TARGET][:ro]", _BIND)),
    directory=_absolute,
)
_SPEC = _fields(
    JobSpec,
    directory=_must_be(Path, "a path", _directory),
    environment_setup=_list_of("texts", _setup),
    container=_must_be(Container, "a Container", _CONTAINER),
    resources=lambda _, resources: iter(resource_problems(resources)),
    attributes=_must_be(JobAttributes, "JobAttributes", _ATTRIBUTES),
    stage_in=_list_of("StageIn", _must_be(StageIn, "a StageIn", _fields(StageIn))),
    stage_out=_list_of("StageOut", _must_be(StageOut, "a StageOut", _fields(StageOut))),
    cleanup=_list_of("Path", _must_be(Path, "a Path", _path_text)),
)
