"""Reads the parts of a document about what tasks need: resources, requirements and attributes."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from .matchers import names
from .model import Attributes, Requirement, Resource, Vertex
from .problems import instead, meant
from .values import ATTRIBUTES, Entries, Reader, kind, plain
from .yaml_text import Value

_TYPES = ("node", "socket", "core", "gpu", "memory", "storage", "rack", "slot")
_SIZED = {"memory", "storage"}
_VERTEX = ("type", "count", "replicas", "with", "requires", "size", "unit", "exclusive", "label")
_RESOURCE = (*_VERTEX, "attributes", "environment", "schedule")
_REQUIREMENT = ("name", "field", "match", "attribute", "value", "matcher")

#: Other spellings of keys that the reader accepts with a warning.
ALSO = {
    "scheduled": "schedule",
    "dependson": "depends_on",
    "depends-on": "depends_on",
    "dependsOn": "depends_on",
    "resource": "resources",
    "env": "environment",
}


def read_resource(name: str, value: Value, reader: Reader) -> Resource:
    """Return a named resource."""
    entries = reader.mapping(value, "JS020", _RESOURCE, ALSO)
    schedule = entries.get("schedule")
    return Resource(
        name=name,
        vertex=_vertex(value, entries, reader),
        attributes=read_attributes(entries, reader),
        schedule=None if schedule is None else reader.flag(schedule, "JS071"),
        at=value.at,
    )


def _vertex(value: Value, entries: Entries, reader: Reader) -> Vertex:
    type_ = _type(value, entries, reader)
    count, is_replicated = _count(value, entries, type_, reader)
    exclusive, requires = entries.get("exclusive"), entries.get("requires")
    return Vertex(
        type=type_,
        count=count,
        is_replicated=is_replicated,
        size=_size(value, entries, reader) if type_ in _SIZED else None,
        is_exclusive=exclusive is not None and reader.flag(exclusive, "JS020"),
        requires=() if requires is None else read_requirements(requires, reader),
        holds=_held(entries, reader),
        at=value.at,
    )


def _type(value: Value, entries: Entries, reader: Reader) -> str:
    given = entries.get("type")
    if given is None:
        if isinstance(value.content, dict):
            says = "does not say its type"
            reader.findings.wrong("JS020", value.at, says, f"add `type:`, one of {', '.join(_TYPES)}")
        return "node"
    name = reader.text(given, "JS020")
    if name in _TYPES:
        return name
    if name.removesuffix("s") in _TYPES:
        singular = name.removesuffix("s")
        reader.findings.loose("JS023", given.at, f"is {name!r}", f"write {singular!r}")
        return singular
    reader.findings.wrong("JS023", given.at, f"is {name!r}, which no executor knows", instead(name, _TYPES))
    return "node"


def _count(value: Value, entries: Entries, type_: str, reader: Reader) -> tuple[int, bool]:
    """Return the number of units, and True if `replicas` gave it."""
    count, replicas = entries.get("count"), entries.get("replicas")
    if count is not None and replicas is not None:
        says = "has both count and replicas"
        reader.findings.wrong("JS021", value.at, says, "keep count for what belongs together, else replicas")
    elif count is None and replicas is None and type_ not in _SIZED and isinstance(value.content, dict):
        says = "says neither count nor replicas"
        reader.findings.wrong("JS021", value.at, says, "add `count: 1`, or more")
    given = replicas if count is None else count
    return (1 if given is None else reader.count(given, "JS021"), replicas is not None)


def _size(value: Value, entries: Entries, reader: Reader) -> int | None:
    size, unit = entries.get("size"), entries.get("unit")
    if size is None:
        reader.findings.wrong(
            "JS027", value.at, "does not say its size", "add `size: 16GB`, or as much as needed"
        )
        return None
    return reader.size(size, "" if unit is None else reader.text(unit, "JS027"))


def _held(entries: Entries, reader: Reader) -> tuple[Vertex, ...]:
    value = entries.found.get("with")
    if value is None:
        return ()
    if isinstance(value.content, dict) and value.content:
        reader.findings.loose(
            "JS022", value.at, "is a mapping", "put - before its first key, to make it a list"
        )
        items = [value]
    elif isinstance(value.content, list) and value.content:
        items = value.content
    else:
        says = f"must be a list of resources, not {kind(value)}"
        reader.findings.wrong("JS022", value.at, says, "write what each one holds, or leave out `with`")
        return ()
    return tuple(_vertex(it, reader.mapping(it, "JS022", _VERTEX, ALSO), reader) for it in items)


def read_requirements(value: Value, reader: Reader) -> tuple[Requirement, ...]:
    """Return the requirements of a vertex or task, which must all be met."""
    if isinstance(value.content, dict):
        reader.findings.loose("JS082", value.at, "is a mapping", "write a list of name, field and match")
        if "name" not in value.content:
            return tuple(_spelled_out(value.content, reader))
        return (_requirement(value, reader),)
    return tuple(_requirement(it, reader) for it in reader.items(value, "JS080"))


def _spelled_out(content: Mapping[str, Value], reader: Reader) -> list[Requirement]:
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
            says = "does not say which field of the subsystem it is about"
            reader.findings.wrong("JS080", value.at, says, f"write `{name}: {{field: match}}`")
    return found


def _requirement(value: Value, reader: Reader) -> Requirement:
    entries = reader.mapping(value, "JS080", _REQUIREMENT, {})
    given = {key: reader.text(it, "JS080") for key in _REQUIREMENT if (it := entries.get(key)) is not None}
    if "field" in given and not {"match", "attribute"} & given.keys() and "value" in given:
        reader.findings.loose("JS080", value.at, "has a value for its field", "call it match")
        given["match"] = given.pop("value")
    pairs = (("field", "match"), ("attribute", "value"))
    is_whole = all((key in given) == (other in given) for key, other in pairs)
    if isinstance(value.content, dict) and not (
        "name" in given and is_whole and {"field", "attribute"} & given.keys()
    ):
        says = "needs a name, and field and match, or attribute and value, or all four"
        reader.findings.wrong("JS080", value.at, says, "add what is missing")
    if "matcher" in given and given["matcher"] not in (known := names()):
        says = f"is {given['matcher']!r}, as no matcher is called"
        reader.findings.wrong("JS080", entries["matcher"].at, says, instead(given["matcher"], known))
    return Requirement(**{"name": "", **given}, at=value.at)


def read_attributes(entries: Entries, reader: Reader) -> Attributes:
    """Return the attributes in these entries; an environment may stand beside `attributes`."""
    value, beside = entries.get("attributes"), entries.get("environment")
    found = Attributes()
    if value is not None:
        found = _attributes(value, reader)
    if beside is not None:
        reader.findings.loose("JS003", beside.at, "stands beside attributes", "move it into `attributes:`")
        found = attrs.evolve(found, environment={**found.environment, **reader.environment(beside)})
    return found


def _attributes(value: Value, reader: Reader) -> Attributes:
    if not isinstance(value.content, dict):
        reader.mapping(value, "JS064", ATTRIBUTES, ALSO)
        return Attributes(at=value.at)
    others = {key: it for key, it in value.content.items() if ALSO.get(key, key) not in ATTRIBUTES}
    known = {key: it for key, it in value.content.items() if key not in others}
    entries = reader.mapping(attrs.evolve(value, content=known), "JS064", ATTRIBUTES, ALSO)
    for key, it in others.items():
        if "." not in key:
            at = attrs.evolve(it.at, path=(*value.at.path, key))
            close = meant(key, ATTRIBUTES)
            option = f"write `SYSTEM.{key}`, as in slurm.{key}, if it is an option of a batch system"
            do = option if close is None else f"did you mean {close!r}?"
            reader.findings.loose("JS064", at, "is kept, but nothing comes of it", do)
    duration, cwd = entries.get("duration"), entries.get("cwd")
    environment, watch = entries.get("environment"), entries.get("watch")
    return Attributes(
        duration=None if duration is None else reader.duration(duration),
        environment={} if environment is None else reader.environment(environment),
        cwd=None if cwd is None else _directory(cwd, reader),
        watch=None if watch is None else reader.flag(watch, "JS064"),
        options={key: plain(it) for key, it in others.items() if "." in key},
        hints={key: plain(it) for key, it in others.items() if "." not in key},
        at=value.at,
    )


def _directory(value: Value, reader: Reader) -> str | None:
    text = reader.text(value, "JS061")
    if text.startswith(("/", "~/")) or text == "~":
        return text
    says = f"must be absolute, or begin with ~, not {kind(value)}"
    reader.findings.wrong("JS061", value.at, says, "write out the path where the job runs")
    return None
