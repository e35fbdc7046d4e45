"""Converts specs to job documents as plain values, and back: the part that J/PSI Appendix A defines."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from jpsi.document.extension import DURATION, NAMES, carried, read_extension, write_extension
from jpsi.document.graph import COUNT_KEYS, LABEL, derive, read_graph, write_graph
from jpsi.document.problems import Place, did_you_mean, shown
from jpsi.document.values import Value
from jpsi.model import ENVIRONMENT_NAME, JobSpec, components, decode, encode_resources


def from_spec(spec: JobSpec) -> dict[str, Any]:
    """Return the document of a valid spec."""
    attributes = spec.attributes
    custom = attributes.custom_attributes
    resources, count = write_graph(components(spec.resources)[0])
    job = {**({} if spec.name is None else {"name": spec.name}), **carried(custom, "job")}
    system = {
        "duration": _seconds(attributes.duration),
        "environment": None if spec.environment is None else dict(spec.environment),
        "cwd": None if spec.directory is None else str(spec.directory),
        "job": job or None,
        "jpsi": write_extension(spec, derive(resources, count)) or None,
    }
    task = {
        "command": [spec.executable, *(spec.arguments or ())],
        "slot": LABEL,
        "count": {**count, **carried(custom, "count")},
    }
    return {
        "version": 1,
        "resources": resources,
        "tasks": [task],
        "attributes": {"system": _without_none(system), **_without_none({"user": attributes.user})},
    }


def _without_none(mapping: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in mapping.items() if value is not None}


def _seconds(duration: timedelta | None) -> float:
    if duration is None:
        return DURATION
    return duration.total_seconds() if duration.microseconds else duration // timedelta(seconds=1)


def to_spec(document: Value) -> JobSpec:
    """Return the spec of a document, and note all mistakes that are not in the spec itself."""
    if document.raw is None:
        document.wrong("is empty")
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
    job = {key: text.text() for key, text in system["job"].mapping().items()} if "job" in system else {}
    custom = {f"job.{key}": text for key, text in job.items() if key != "name"}
    custom.update(_extra_counts(task["count"]))
    plain: dict[str, Any] = {
        "executable": command[0],
        "arguments": command[1:] or None,
        "name": job.get("name"),
        "environment": _environment(system["environment"]) if "environment" in system else None,
        "directory": system["cwd"].text() if "cwd" in system else None,
        "resources": None if resources is None else encode_resources(resources),
        "attributes": {
            "duration": _duration(system["duration"]),
            "user": attributes["user"].free_mapping() if "user" in attributes else None,
            "custom_attributes": custom or None,
        },
    }
    if "jpsi" in system:
        read_extension(system["jpsi"], plain, resources)
    return decode(plain)


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
        value.doubtful(f"has no meaning to jpsi, which only carries it{did_you_mean(key, COUNT_KEYS)}")
    return {f"count.{key}": value.anything() for key, value in extra.items()}


def _system(system: Value) -> dict[str, Value]:
    known = ("duration", "environment", "cwd", "job", "jpsi")
    found = system.mapping()
    suggested = (*known, *(f"jpsi.{name}" for name in NAMES))
    for key in [key for key in found if key not in known]:
        # J/PSI A: "unrecognized words SHALL trigger no more than a warning"
        found.pop(key).doubtful(f"is not known and has no effect{did_you_mean(key, suggested)}")
    # J/PSI A: "Most system attributes are optional, but the duration attribute is required."
    if "duration" not in found:
        found["duration"] = system.child("duration")
        found["duration"].wrong("is missing; 0 is unlimited")
    return found


def _environment(environment: Value) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for name, value in environment.mapping().items():
        if ENVIRONMENT_NAME.match(name):
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
        # A duration that rounds to 0 must not become unlimited; `problems` reports one that is too long.
        return max(_SHORTEST, min(seconds, _LONGEST)) if seconds else 0
    return DURATION


_SHORTEST = timedelta.resolution.total_seconds()
_LONGEST = timedelta.max // timedelta(seconds=1)


def place_of(field: Place) -> Place:
    """Return the place in a document of a field of a spec, or of a value in it."""
    for length in range(len(field), 0, -1):
        if field[:length] in _PLACES:
            place, rest = _PLACES[field[:length]], field[length:]
            if field[0] == "arguments":
                rest = tuple(step + 1 for step in rest if isinstance(step, int))
            return (*place, *rest)
    return (*_SYSTEM, "jpsi", *field[field[0] == "attributes" :])


_SYSTEM: Place = ("attributes", "system")
_PLACES: Mapping[Place, Place] = {
    ("executable",): ("tasks", 0, "command", 0),
    ("arguments",): ("tasks", 0, "command"),
    ("name",): (*_SYSTEM, "job", "name"),
    ("directory",): (*_SYSTEM, "cwd"),
    ("environment",): (*_SYSTEM, "environment"),
    ("attributes", "duration"): (*_SYSTEM, "duration"),
    ("attributes", "user"): ("attributes", "user"),
}
