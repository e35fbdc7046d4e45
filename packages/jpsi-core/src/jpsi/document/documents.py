"""Reads and writes job documents: a JobSpec as YAML or JSON, in the format of J/PSI Appendix A.

    version: 1
    resources:                          # slot > core [+ gpu], or node > slot > core [+ gpu]
      - type: slot
        label: task
        count: 4
        with:
          - type: core
            count: 2
    tasks:
      - command: [./simulate, --fast]   # executable and arguments
        slot: task
        count:
          per_slot: 1                   # or total
    attributes:
      system:
        duration: 3600                  # seconds; 0 is unlimited
        environment: {OMP_NUM_THREADS: "2"}
        cwd: /scratch/run               # directory
        job: {name: simulation}         # name; other keys are custom attributes job.<key>
        jpsi: {queue_name: debug}       # the other fields of a spec; see `jpsi_attributes`
      user: {}                          # the spec's `attributes.user`, unchanged

Every written document reads back as an equal spec; `write_document` lists what changes type.
"""

from __future__ import annotations

import ast
import math
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any

import attrs

from jpsi.document.graph import COUNT_KEYS, LABEL, derive, read_graph, write_graph
from jpsi.document.jpsi_attributes import (
    DURATION,
    KEYS,
    PLACES,
    read_extension,
    standard_attributes,
    write_extension,
)
from jpsi.document.text import dump_json, dump_yaml, parse
from jpsi.document.values import Value, ValuePath, did_you_mean, format_path, inexpressible, shown
from jpsi.model import (
    VARIABLE_NAME,
    Dependency,
    DocumentWarning,
    InvalidJobException,
    JobSpec,
    components,
    problems,
    serialization,
)


def read_document(
    text: str,
    source: str = "<document>",
    *,
    lenient: bool = False,
    check: Callable[[JobSpec], Iterable[str]] = lambda _: (),
) -> JobSpec:
    """Return the spec of a job document, YAML or JSON; `source` is its name in messages.

    With `lenient`, unknown keys of attributes.system and tasks[0].count cause one DocumentWarning for all.
    `check` returns further problems of the spec, each as `field: sentence`.

    Raises:
        DocumentError: The document has problems; the message names all of them, each with its line and keys.
    """
    document = parse(text, source)
    reported = document.problems
    reported.is_lenient = lenient
    spec = _to_spec(document)
    if reported.warnings:
        warnings.warn("\n".join(reported.warnings), DocumentWarning, stacklevel=2)
    for problem in (*problems(spec), *check(spec)):
        path, sentence = _locate(problem)
        # For a value that was already reported, the spec holds a placeholder; do not report that one too.
        if not reported.has_overlap(path):
            reported.add(path, sentence)
    if reported:
        raise reported.error()
    return spec


def write_document(spec: JobSpec, *, as_json: bool = False) -> str:
    """Return the document of a valid spec, YAML unless `as_json`, which `read_document` reads back.

    The spec that it returns equals this one, but a tuple becomes a list, a subclass of text, number, list or
    mapping the plain type, and a Job in `attributes.after` its native id.

    Raises:
        InvalidJobException: The spec is not valid, or has values that a document cannot hold.
    """
    _raise_if_any(problems(spec))
    spec = attrs.evolve(spec)  # what was put into its list and map later becomes text
    _raise_if_any(
        f"attributes.after[{index}] is a job that was not submitted yet, which a document cannot name"
        for index, item in enumerate(spec.attributes.after or ())
        if Dependency.of(item).native_id is None
    )
    document = _from_spec(spec)
    _raise_if_any(f"{format_path(path)} {sentence}" for path, sentence in inexpressible(document))
    return dump_json(document) if as_json else dump_yaml(document)


def _raise_if_any(sentences: Iterable[str]) -> None:
    if sentences := list(sentences):
        raise InvalidJobException.of("the job", sentences)


def _from_spec(spec: JobSpec) -> dict[str, Any]:
    """Return the document of a valid spec."""
    attributes = spec.attributes
    custom = attributes.custom_attributes
    resources, count = write_graph(components(spec.resources)[0])
    system = {
        "duration": _seconds(attributes.duration),
        "environment": None if spec.environment is None else dict(spec.environment),
        "cwd": None if spec.directory is None else str(spec.directory),
        "job": _without_none({"name": spec.name, **standard_attributes(custom, "job")}) or None,
        "jpsi": write_extension(spec, derive(resources, count)) or None,
    }
    task = {
        "command": [spec.executable, *(spec.arguments or ())],
        "slot": LABEL,
        "count": {**count, **standard_attributes(custom, "count")},
    }
    parts = _without_none({"system": _without_none(system), "user": attributes.user})
    return {"version": 1, "resources": resources, "tasks": [task], "attributes": parts}


def _without_none(mapping: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in mapping.items() if value is not None}


def _seconds(duration: timedelta | None) -> float:
    if duration is None:
        return DURATION
    return duration.total_seconds() if duration.microseconds else duration // timedelta(seconds=1)


def document_command(content: object) -> str | None:
    """Return the command of jpsi that takes a document with this content; None if no command does."""
    if not isinstance(content, dict):
        return None
    if "tasks" not in content and "groups" not in content:
        return "jpsi request run" if content.keys() & {"command", "mounts", "container_image"} else None
    tasks = content.get("tasks", [])
    if not isinstance(tasks, list) or not all(isinstance(it, dict) for it in tasks):
        return None
    is_job = "groups" not in content and any(it.keys() & {"slot", "count"} for it in tasks)
    return "jpsi run -f" if is_job else "jpsi workflow run"


def _to_spec(document: Value) -> JobSpec:
    """Return the spec of a document, and record the problems that only the document shows."""
    if document.raw is None:
        document.wrong("is empty")
    elif (taker := document_command(document.raw)) not in {None, "jpsi run -f"}:
        document.wrong(f"is no job document; `{taker}` takes it")
    # J/PSI A: "The dictionary MUST contain the keys resources, tasks, attributes, and version."
    top = document.fields(("version", "resources", "tasks", "attributes"))
    _check_version(top["version"])
    # J/PSI A: "a strict list which MUST define exactly one task"
    task = top["tasks"].only("task").fields(("command", "slot", "count"))
    resources = read_graph(top["resources"], task["slot"], task["count"])
    # J/PSI A: "The attributes dictionary MAY contain one or both of the following keys"
    attributes = top["attributes"].fields(("system",), ("user",))
    system = _system(attributes["system"])
    command = _command(task["command"])
    job = {key: _job_text(key, it) for key, it in system["job"].mapping().items()} if "job" in system else {}
    custom = {f"job.{key}": text for key, text in job.items() if key != "name"}
    custom |= _extra_counts(task["count"])
    plain: dict[str, Any] = {
        "executable": command[0],
        "arguments": command[1:] or None,
        "name": job.get("name"),
        "environment": _environment(system["environment"]) if "environment" in system else None,
        "directory": system["cwd"].text() if "cwd" in system else None,
        "resources": None if resources is None else serialization.encode_resources(resources),
        "attributes": {
            "duration": _duration(system["duration"]),
            "user": attributes["user"].free_mapping() if "user" in attributes else None,
            "custom_attributes": custom or None,
        },
    }
    if "jpsi" in system:
        read_extension(system["jpsi"], plain, resources)
    return serialization.decode(plain)


def _check_version(version: Value) -> None:
    # J/PSI A: "The version key SHALL contain the value 1. Larger versions are reserved"
    if type(version.raw) is int and version.raw > 1:
        version.wrong(f"is {shown(version.raw)}, but this jpsi reads version 1 only; a newer one may read it")
    elif type(version.raw) is not int or version.raw != 1:
        version.must_be("1")


def _command(command: Value) -> list[str]:
    # J/PSI A: "The value of the command key SHALL be a list representing an executable and its arguments."
    items = command.items()
    if not items:
        command.wrong("must have at least the executable")
    return [item.text() for item in items] or [""]


def _extra_counts(count: Value) -> dict[str, Any]:
    extra = {key: value for key, value in count.mapping().items() if key not in COUNT_KEYS}
    for key, value in extra.items():
        value.unknown(f"is not used by jpsi{did_you_mean(key, COUNT_KEYS)}")
    return {f"count.{key}": value.anything() for key, value in extra.items()}


def _system(system: Value) -> dict[str, Value]:
    known = ("duration", "environment", "cwd", "job", "jpsi")
    found = system.mapping()
    suggested = (*known, *(f"jpsi.{name}" for name in KEYS))
    for key in [key for key in found if key not in known]:
        # J/PSI A: "unrecognized words SHALL trigger no more than a warning"
        place = f"; it belongs in {PLACES[key]}" if key in PLACES else ""
        hint = place or did_you_mean(key, suggested) or f"; known are {', '.join(known)}"
        found.pop(key).unknown(f"is not known and has no effect{hint}")
    # J/PSI A: "Most system attributes are optional, but the duration attribute is required."
    if "duration" not in found:
        found["duration"] = system.child("duration")
        found["duration"].wrong("is missing; 0 is unlimited")
    return found


def _job_text(key: str, value: Value) -> str:
    # other keys are free, but one that is nearly `name` is a mistake
    if key != "name" and (hint := did_you_mean(key, ["name"])):
        value.unknown(f"is not used by jpsi{hint}")
    return value.text()


def _environment(environment: Value) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for name, value in environment.mapping().items():
        if VARIABLE_NAME.match(name):
            # J/PSI A: "A null value represents unsetting the environment variable given by key."
            found[name] = None if value.raw is None else value.text()
        else:
            value.wrong("cannot be set; names consist of letters, digits and _ and do not start with a digit")
    return found


def _duration(duration: Value) -> float:
    # J/PSI A: "a floating-point number greater than or equal to zero representing time span in seconds"
    seconds = duration.raw
    if type(seconds) not in (int, float):
        duration.must_be("a number of seconds")
    elif not 0 <= seconds < math.inf:
        duration.must_be("a finite number of seconds, at least 0", "; 0 is unlimited")
    else:
        # Clamp: a tiny duration must not round to 0, which is unlimited; `problems` reports an overlong one.
        shortest, longest = timedelta.resolution.total_seconds(), timedelta.max // timedelta(seconds=1)
        return max(shortest, min(seconds, longest)) if seconds else 0
    return DURATION


# An index or a quoted key, as between the brackets of `attributes.user['a'][0]`; names are the other steps.
_KEY = r"""(?:\d+|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
_STEP = re.compile(rf"\.?([a-z_]+)|\[({_KEY})\]")
_PROBLEM = re.compile(rf"(?P<field>[a-z_]+(?:\.[a-z_]+|\[{_KEY}\])*):? (?P<sentence>.*)", re.DOTALL)
_SYSTEM: ValuePath = ("attributes", "system")
#: From a field's path in a spec to its path in a document; other fields are in attributes.system.jpsi.
_PATHS: Mapping[ValuePath, ValuePath] = {
    ("executable",): ("tasks", 0, "command", 0),
    ("arguments",): ("tasks", 0, "command"),
    ("name",): (*_SYSTEM, "job", "name"),
    ("directory",): (*_SYSTEM, "cwd"),
    ("environment",): (*_SYSTEM, "environment"),
    ("attributes", "duration"): (*_SYSTEM, "duration"),
    ("attributes", "user"): ("attributes", "user"),
}


def _locate(problem: str) -> tuple[ValuePath, str]:
    """Return the path in a document that a sentence of `problems` is about, and the rest of the sentence.

    It parses the text: a message of `jpsi.model.spec_problems` must be `field: sentence` or `field sentence`.
    """
    match = _PROBLEM.match(problem)
    if match is None:
        return (), problem
    steps = (step.groups() for step in _STEP.finditer(match["field"]))
    return _path_of(tuple(name or ast.literal_eval(key) for name, key in steps)), match["sentence"]


def _path_of(field: ValuePath) -> ValuePath:
    """Return the path in a document of a field of a spec, or of a value in it."""
    for length in range(len(field), 0, -1):
        if field[:length] in _PATHS:
            path, rest = _PATHS[field[:length]], field[length:]
            if field[0] == "arguments":
                rest = tuple(step + 1 for step in rest if isinstance(step, int))
            return (*path, *rest)
    rest = field[1:] if field[0] == "attributes" else field
    return (*_SYSTEM, "jpsi", *rest)
