"""Reads the parts of a document about what tasks need: resources, requirements and attributes.

The loader uses it; problems are noted, and the rest is read all the same. `planning.requirements` compares
requirements with a site's subsystems by the matchers, built-in and installed ones.
"""

from __future__ import annotations

import fnmatch
import functools
import re
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from typing import Any

import attrs

from jpsi_engine import ARRAY, JOB_FIELDS, job_field_problems

from .model import Attributes, Requirement, Resource, Vertex
from .problems import closest_name, suggest_name
from .values import ATTRIBUTES, KEY_ALIASES, Entries, Value

_TYPES = ("node", "socket", "core", "gpu", "memory", "storage", "rack", "slot")
_SIZED = {"memory", "storage"}
_VERTEX = ("type", "count", "replicas", "with", "requires", "size", "unit", "exclusive", "label")
_RESOURCE = (*_VERTEX, "attributes", "environment", "schedule")
# Attributes that workflows name differently, or have as requests for resources.
_OTHER_NAMES = {
    "account": "write `project_name`",
    "partition": "write `queue_name`",
    **dict.fromkeys(
        ("max_time", "runtime", "time", "time_limit", "wall_time", "walltime"), "write `duration`"
    ),
    **dict.fromkeys(("mem", "memory"), "write memory in the `with` of the resource"),
    **{
        f"memory_per_{name}": f"write memory in the `with` of each {kind} of the resource"
        for name, kind in (("cpu", "core"), ("gpu", "gpu"))
    },
}
_REQUIREMENT = ("name", "field", "match", "attribute", "value", "matcher")


def read_resource(name: str, value: Value) -> Resource:
    """Return a named resource."""
    entries = value.as_mapping("JS020", _RESOURCE)
    return Resource(
        name=name,
        vertex=_read_vertex(value, entries),
        attributes=read_attributes(entries),
        schedule=entries.read("schedule", Value.as_flag, "JS071"),
        at=value.at,
    )


def _read_vertex(value: Value, entries: Entries) -> Vertex:
    vertex_type = _read_type(value, entries)
    is_sized = vertex_type in _SIZED
    return Vertex(
        type=vertex_type,
        count=_read_vertex_count(value, entries, is_sized=is_sized),
        is_replicated=entries.find("replicas") is not None,
        size=_read_vertex_size(value, entries) if is_sized else None,
        is_exclusive=bool(entries.read("exclusive", Value.as_flag, "JS020")),
        requires=entries.read("requires", read_requirements) or (),
        children=_read_children(entries["with"]) if "with" in entries else (),
        at=value.at,
    )


def _read_type(value: Value, entries: Entries) -> str:
    type_value = entries.find("type")
    if type_value is None:
        if isinstance(value.content, dict):
            value.error("JS020", "has no type", f"add `type:`, one of {', '.join(_TYPES)}")
        return "node"
    name = type_value.as_text("JS020")
    singular = name.removesuffix("s")
    if name in _TYPES:
        return name
    if singular in _TYPES:
        type_value.warn("JS023", f"is {name!r}", f"write {singular!r}")
        return singular
    type_value.error("JS023", f"is {name!r}, which no executor knows", suggest_name(name, _TYPES))
    return "node"


def _read_vertex_count(value: Value, entries: Entries, *, is_sized: bool) -> int:
    count, replicas = entries.find("count"), entries.find("replicas")
    if count is not None and replicas is not None:
        hint = "keep count for what belongs together, else replicas"
        value.error("JS021", "has both count and replicas", hint)
    elif count is None and replicas is None and not is_sized and isinstance(value.content, dict):
        value.error("JS021", "has neither count nor replicas", "add `count: 1`, or more")
    number = count or replicas
    return 1 if number is None else number.as_count("JS021")


def _read_vertex_size(value: Value, entries: Entries) -> int | None:
    size = entries.find("size")
    if size is None:
        value.error("JS027", "has no size", "add `size: 16GB`, or as much as needed")
        return None
    return size.as_size(entries.read("unit", Value.as_text, "JS027") or "")


def _read_children(value: Value) -> tuple[Vertex, ...]:
    items = value.content if isinstance(value.content, list) else [value]
    if not value.content or not isinstance(value.content, dict | list):
        hint = "write what each one holds, or leave out `with`"
        value.must_be("a list of resources", "JS022", hint)
        return ()
    if isinstance(value.content, dict):
        value.warn("JS022", "is a mapping", "put - before its first key, to make it a list")
    return tuple(_read_vertex(it, it.as_mapping("JS022", _VERTEX)) for it in items)


def read_requirements(value: Value) -> tuple[Requirement, ...]:
    """Return the requirements of a vertex or task, which must all be met."""
    if not isinstance(value.content, dict):
        return tuple(_read_requirement(it) for it in value.as_items("JS080"))
    value.warn("JS082", "is a mapping", "write a list of name, field and match")
    if "name" not in value.content:
        return tuple(_read_short_form(value.content))
    return (_read_requirement(value),)


def _read_short_form(content: Mapping[str, Value]) -> list[Requirement]:
    """Return the requirements in a mapping such as `{hardware: {gpu: a100}}` or `{hardware.gpu: a100}`."""
    fields: list[tuple[str, str, Value]] = []
    for name, value in content.items():
        subsystem, dot, field = name.partition(".")
        if isinstance(value.content, dict):
            fields += [(name, key, match) for key, match in value.content.items()]
        elif dot:
            fields.append((subsystem, field, value))
        else:
            message = "does not say which field of the subsystem it is about"
            value.error("JS080", message, f"write `{name}: {{field: match}}`")
    return [
        Requirement(name=name, field=field, match=it.as_text("JS080"), at=it.at) for name, field, it in fields
    ]


def _read_requirement(value: Value) -> Requirement:
    entries = value.as_mapping("JS080", _REQUIREMENT)
    texts = {key: entries.read(key, Value.as_text, "JS080") for key in _REQUIREMENT}
    fields = {key: text for key, text in texts.items() if text is not None}
    if "field" in fields and not {"match", "attribute"} & fields.keys() and "value" in fields:
        value.warn("JS080", "has a value for its field", "call it match")
        fields["match"] = fields.pop("value")
    pairs = (("field", "match"), ("attribute", "value"))
    is_complete = all((key in fields) == (other in fields) for key, other in pairs)
    has_all = "name" in fields and is_complete and {"field", "attribute"} & fields.keys()
    if isinstance(value.content, dict) and not has_all:
        message = "needs a name, and field and match, or attribute and value, or all four"
        value.error("JS080", message, "add what is missing")
    matcher = fields.get("matcher")
    if matcher is not None and matcher not in (known := matcher_names()):
        hint = suggest_name(matcher, known)
        entries["matcher"].error("JS080", f"is {matcher!r}, which is no known matcher", hint)
    return Requirement(**{"name": "", **fields}, at=value.at)


def read_attributes(entries: Entries) -> Attributes:
    """Return the attributes in these entries; an environment may stand beside `attributes`."""
    found = entries.read("attributes", _read_attributes) or Attributes()
    misplaced = entries.find("environment")
    if misplaced is None:
        return found
    misplaced.warn("JS003", "stands beside attributes", "move it into `attributes:`")
    return attrs.evolve(found, environment={**found.environment, **misplaced.as_environment()})


def _read_attributes(value: Value) -> Attributes:
    content = value.content if isinstance(value.content, dict) else {}
    unknown = {key: it for key, it in content.items() if KEY_ALIASES.get(key, key) not in ATTRIBUTES}
    known = {key: it for key, it in content.items() if key not in unknown}
    is_mapping = isinstance(value.content, dict)
    entries = (attrs.evolve(value, content=known) if is_mapping else value).as_mapping("JS064", ATTRIBUTES)
    for key, it in unknown.items():
        if "." not in key:
            at = attrs.evolve(it.at, path=(*value.at.path, key))
            message = "is an unknown attribute, and has no effect"
            value.findings.add_unknown("JS064", at, message, _hint_for_attribute(key))
        elif key == ARRAY:
            at = attrs.evolve(it.at, path=(*value.at.path, key))
            message = "makes a job an array, which a workflow cannot have"
            value.findings.add_error(
                "JS064", at, message, "write `replicas:`; each has its number in JPSI_REPLICA"
            )
    job = {key: entries[key].to_plain() for key in JOB_FIELDS if entries.find(key) is not None}
    _check_job_fields(value, job)
    return Attributes(
        duration=entries.read("duration", Value.as_duration),
        environment=entries.read("environment", Value.as_environment) or {},
        cwd=entries.read("cwd", _read_directory),
        watch=entries.read("watch", Value.as_flag, "JS064"),
        options={key: it.to_plain() for key, it in unknown.items() if "." in key},
        job=job,
        at=value.at,
    )


def _hint_for_attribute(key: str) -> str:
    """Return what to do about an attribute that is not known."""
    if key in _OTHER_NAMES:
        return _OTHER_NAMES[key]
    closest = closest_name(key, ATTRIBUTES)
    option = f"write `SYSTEM.OPTION`, as in slurm.{key}, if it is an option of a batch system"
    return option if closest is None else f"did you mean {closest!r}?"


def _check_job_fields(value: Value, job: Mapping[str, Any]) -> None:
    for path, sentence in job_field_problems(job) if job else ():
        steps = [int(it) if it.isdigit() else it for it in re.findall(r"\w+", path)]
        at = attrs.evolve(value.find(steps).at, path=(*value.at.path, *steps))
        value.findings.add_error("JS065", at, sentence, "write it as in a job document")


def _read_directory(value: Value) -> str | None:
    text = value.as_text("JS061")
    if text.startswith(("/", "~/")) or text == "~":
        return text
    value.must_be("absolute, or begin with ~", "JS061", "write out the path where the job runs")
    return None


#: Returns True if the value, its first argument, matches the wanted one.
Matcher = Callable[[str, str], bool]
#: The entry point group of installed matchers, each a function of the value and the wanted one.
GROUP = "jpsi_jobspec.matchers"


def matcher_names() -> list[str]:
    """Return the matchers that a requirement may name."""
    return sorted({*_BUILT_IN, *(it.name for it in entry_points(group=GROUP))})


@functools.cache
def get_matcher(name: str | None) -> Matcher:
    """Return the matcher of a name; without a name, the one that goes by the form of the wanted value."""
    if name is None:
        return is_match
    if name in _BUILT_IN:
        return _BUILT_IN[name]
    (found, *_) = entry_points(group=GROUP, name=name)
    loaded: Matcher = found.load()
    return loaded


def is_match(value: str, wanted: str) -> bool:
    """Return True if a value is the wanted one, matches it as a pattern with `*` and `?`, or is in its range.

    >>> is_match("2.1", ">=2,<3"), is_match("nvidia", "nv*"), is_match("a", "b")
    (True, True, False)
    """
    if value == wanted:
        return True
    if _RANGE.fullmatch(wanted.replace(" ", "")):
        return is_in_range(value, wanted)
    return any(it in wanted for it in "*?[") and fnmatch.fnmatchcase(value, wanted)


def is_in_range(value: str, wanted: str) -> bool:
    """Return True if a version is in a range such as `>=2,<3`; False if the text is no range."""
    bounds = wanted.replace(" ", "")
    return bool(_RANGE.fullmatch(bounds)) and all(_is_within(value, it) for it in bounds.split(","))


_BOUND = r"(?:>=|<=|==|!=|>|<)[0-9][A-Za-z0-9.+_-]*"
_RANGE = re.compile(rf"{_BOUND}(?:,{_BOUND})*")
_COMPARE = {
    ">=": lambda a, b: a >= b,
    "<=": lambda a, b: a <= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    ">": lambda a, b: a > b,
    "<": lambda a, b: a < b,
}
_BUILT_IN: Mapping[str, Matcher] = {
    "exact": lambda value, wanted: value == wanted,
    "glob": fnmatch.fnmatchcase,
    "version": is_in_range,
}


def _is_within(value: str, bound: str) -> bool:
    sign = bound[:2] if bound[:2] in _COMPARE else bound[:1]
    version, limit = _version(value), _version(bound.removeprefix(sign))
    length = max(len(version), len(limit))
    padded = [it + ((0, ""),) * (length - len(it)) for it in (version, limit)]
    return bool(version) and _COMPARE[sign](padded[0], padded[1])


def _version(text: str) -> tuple[tuple[int, str], ...]:
    parts = re.findall(r"([0-9]+)|([A-Za-z]+)", text) if text[:1].isdigit() else []
    return tuple((int(number), "") if number else (-1, word) for number, word in parts)
