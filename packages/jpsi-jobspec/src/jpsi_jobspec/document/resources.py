"""Reads the parts of a document about what tasks need: resources, requirements and attributes."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from .matchers import matcher_names
from .model import Attributes, Requirement, Resource, Vertex
from .problems import closest_name, suggest_name
from .values import ATTRIBUTES, Entries, Reader, describe_kind, to_plain
from .yaml_text import Value

_TYPES = ("node", "socket", "core", "gpu", "memory", "storage", "rack", "slot")
_SIZED = {"memory", "storage"}
_VERTEX = ("type", "count", "replicas", "with", "requires", "size", "unit", "exclusive", "label")
_RESOURCE = (*_VERTEX, "attributes", "environment", "schedule")
_REQUIREMENT = ("name", "field", "match", "attribute", "value", "matcher")

#: Other spellings of keys that the reader accepts with a warning.
KEY_ALIASES = {
    "scheduled": "schedule",
    "dependson": "depends_on",
    "depends-on": "depends_on",
    "dependsOn": "depends_on",
    "resource": "resources",
    "env": "environment",
}


def read_resource(name: str, value: Value, reader: Reader) -> Resource:
    """Return a named resource."""
    entries = reader.mapping(value, "JS020", _RESOURCE, KEY_ALIASES)
    schedule = entries.get("schedule")
    return Resource(
        name=name,
        vertex=_read_vertex(value, entries, reader),
        attributes=read_attributes(entries, reader),
        schedule=None if schedule is None else reader.flag(schedule, "JS071"),
        at=value.at,
    )


def _read_vertex(value: Value, entries: Entries, reader: Reader) -> Vertex:
    type_ = _read_type(value, entries, reader)
    count, is_replicated = _read_count(value, entries, type_, reader)
    exclusive, requires = entries.get("exclusive"), entries.get("requires")
    return Vertex(
        type=type_,
        count=count,
        is_replicated=is_replicated,
        size=_read_size(value, entries, reader) if type_ in _SIZED else None,
        is_exclusive=exclusive is not None and reader.flag(exclusive, "JS020"),
        requires=() if requires is None else read_requirements(requires, reader),
        children=_read_children(entries, reader),
        at=value.at,
    )


def _read_type(value: Value, entries: Entries, reader: Reader) -> str:
    type_value = entries.get("type")
    if type_value is None:
        if isinstance(value.content, dict):
            message = "has no type"
            reader.findings.add_error("JS020", value.at, message, f"add `type:`, one of {', '.join(_TYPES)}")
        return "node"
    name = reader.text(type_value, "JS020")
    if name in _TYPES:
        return name
    if name.removesuffix("s") in _TYPES:
        singular = name.removesuffix("s")
        reader.findings.add_warning("JS023", type_value.at, f"is {name!r}", f"write {singular!r}")
        return singular
    reader.findings.add_error(
        "JS023", type_value.at, f"is {name!r}, which no executor knows", suggest_name(name, _TYPES)
    )
    return "node"


def _read_count(value: Value, entries: Entries, type_: str, reader: Reader) -> tuple[int, bool]:
    """Return the number of units, and True if `replicas` gave it."""
    count, replicas = entries.get("count"), entries.get("replicas")
    if count is not None and replicas is not None:
        message = "has both count and replicas"
        reader.findings.add_error(
            "JS021", value.at, message, "keep count for what belongs together, else replicas"
        )
    elif count is None and replicas is None and type_ not in _SIZED and isinstance(value.content, dict):
        message = "has neither count nor replicas"
        reader.findings.add_error("JS021", value.at, message, "add `count: 1`, or more")
    number = replicas if count is None else count
    return (1 if number is None else reader.count(number, "JS021"), replicas is not None)


def _read_size(value: Value, entries: Entries, reader: Reader) -> int | None:
    size, unit = entries.get("size"), entries.get("unit")
    if size is None:
        reader.findings.add_error("JS027", value.at, "has no size", "add `size: 16GB`, or as much as needed")
        return None
    return reader.size(size, "" if unit is None else reader.text(unit, "JS027"))


def _read_children(entries: Entries, reader: Reader) -> tuple[Vertex, ...]:
    value = entries.found.get("with")
    if value is None:
        return ()
    if isinstance(value.content, dict) and value.content:
        reader.findings.add_warning(
            "JS022", value.at, "is a mapping", "put - before its first key, to make it a list"
        )
        items = [value]
    elif isinstance(value.content, list) and value.content:
        items = value.content
    else:
        message = f"must be a list of resources, not {describe_kind(value)}"
        reader.findings.add_error(
            "JS022", value.at, message, "write what each one holds, or leave out `with`"
        )
        return ()
    return tuple(_read_vertex(it, reader.mapping(it, "JS022", _VERTEX, KEY_ALIASES), reader) for it in items)


def read_requirements(value: Value, reader: Reader) -> tuple[Requirement, ...]:
    """Return the requirements of a vertex or task, which must all be met."""
    if isinstance(value.content, dict):
        reader.findings.add_warning(
            "JS082", value.at, "is a mapping", "write a list of name, field and match"
        )
        if "name" not in value.content:
            return tuple(_read_short_form(value.content, reader))
        return (_read_requirement(value, reader),)
    return tuple(_read_requirement(it, reader) for it in reader.items(value, "JS080"))


def _read_short_form(content: Mapping[str, Value], reader: Reader) -> list[Requirement]:
    """Return the requirements in a mapping such as `{hardware: {gpu: a100}}` or `{hardware.gpu: a100}`."""
    found = []
    for name, value in content.items():
        if isinstance(value.content, dict):
            for field, match in value.content.items():
                text = reader.text(match, "JS080")
                found.append(Requirement(name=name, field=field, match=text, at=match.at))
        elif "." in name:
            subsystem, _, field = name.partition(".")
            text = reader.text(value, "JS080")
            found.append(Requirement(name=subsystem, field=field, match=text, at=value.at))
        else:
            message = "does not say which field of the subsystem it is about"
            reader.findings.add_error("JS080", value.at, message, f"write `{name}: {{field: match}}`")
    return found


def _read_requirement(value: Value, reader: Reader) -> Requirement:
    entries = reader.mapping(value, "JS080", _REQUIREMENT, {})
    fields = {key: reader.text(it, "JS080") for key in _REQUIREMENT if (it := entries.get(key)) is not None}
    if "field" in fields and not {"match", "attribute"} & fields.keys() and "value" in fields:
        reader.findings.add_warning("JS080", value.at, "has a value for its field", "call it match")
        fields["match"] = fields.pop("value")
    pairs = (("field", "match"), ("attribute", "value"))
    is_complete = all((key in fields) == (other in fields) for key, other in pairs)
    if isinstance(value.content, dict) and not (
        "name" in fields and is_complete and {"field", "attribute"} & fields.keys()
    ):
        message = "needs a name, and field and match, or attribute and value, or all four"
        reader.findings.add_error("JS080", value.at, message, "add what is missing")
    if "matcher" in fields and fields["matcher"] not in (known := matcher_names()):
        message = f"is {fields['matcher']!r}, which is no known matcher"
        reader.findings.add_error(
            "JS080", entries["matcher"].at, message, suggest_name(fields["matcher"], known)
        )
    return Requirement(**{"name": "", **fields}, at=value.at)


def read_attributes(entries: Entries, reader: Reader) -> Attributes:
    """Return the attributes in these entries; an environment may stand beside `attributes`."""
    value, misplaced = entries.get("attributes"), entries.get("environment")
    found = Attributes()
    if value is not None:
        found = _read_attributes(value, reader)
    if misplaced is not None:
        reader.findings.add_warning(
            "JS003", misplaced.at, "stands beside attributes", "move it into `attributes:`"
        )
        found = attrs.evolve(found, environment={**found.environment, **reader.environment(misplaced)})
    return found


def _read_attributes(value: Value, reader: Reader) -> Attributes:
    if not isinstance(value.content, dict):
        reader.mapping(value, "JS064", ATTRIBUTES, KEY_ALIASES)
        return Attributes(at=value.at)
    unknown = {key: it for key, it in value.content.items() if KEY_ALIASES.get(key, key) not in ATTRIBUTES}
    known = {key: it for key, it in value.content.items() if key not in unknown}
    entries = reader.mapping(attrs.evolve(value, content=known), "JS064", ATTRIBUTES, KEY_ALIASES)
    for key, it in unknown.items():
        if "." not in key:
            at = attrs.evolve(it.at, path=(*value.at.path, key))
            closest = closest_name(key, ATTRIBUTES)
            option = f"write `SYSTEM.{key}`, as in slurm.{key}, if it is an option of a batch system"
            hint = option if closest is None else f"did you mean {closest!r}?"
            reader.findings.add_warning("JS064", at, "is an unknown attribute, and has no effect", hint)
    duration, cwd = entries.get("duration"), entries.get("cwd")
    environment, watch = entries.get("environment"), entries.get("watch")
    return Attributes(
        duration=None if duration is None else reader.duration(duration),
        environment={} if environment is None else reader.environment(environment),
        cwd=None if cwd is None else _read_directory(cwd, reader),
        watch=None if watch is None else reader.flag(watch, "JS064"),
        options={key: to_plain(it) for key, it in unknown.items() if "." in key},
        hints={key: to_plain(it) for key, it in unknown.items() if "." not in key},
        at=value.at,
    )


def _read_directory(value: Value, reader: Reader) -> str | None:
    text = reader.text(value, "JS061")
    if text.startswith(("/", "~/")) or text == "~":
        return text
    message = f"must be absolute, or begin with ~, not {describe_kind(value)}"
    reader.findings.add_error("JS061", value.at, message, "write out the path where the job runs")
    return None
