"""Reads one configuration file, and notes every problem in it with its location."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from jpsi.config.settings import OWN, Layer, Section, SpecDefaults
from jpsi.contract import parse_duration
from jpsi.document import Value, parse, shown
from jpsi.model import JobAttributes, JobSpec, problems
from jpsi.registry import is_constraint


def read(text: str, source: str) -> Layer:
    """Read the text of a configuration file; the `problems` of DocumentError are all that the text has."""
    document = parse(text, source)
    found = _fields(document, _LAYER)
    layer = Layer(**found, default_location=_locations(document, found).get("default_executor", ""))
    if document.problems:
        raise document.problems.error()
    return layer


def as_duration(raw: object) -> timedelta:
    """Convert a value to a duration: a number of seconds, or text such as 10m; ValueError for another value.

    >>> as_duration("1h30m") == as_duration(5400)
    True
    """
    if isinstance(raw, str):
        return parse_duration(raw)
    if isinstance(raw, int | float) and not isinstance(raw, bool) and 0 <= raw < _LONGEST_SECONDS:
        return timedelta(seconds=raw)
    raise ValueError(f"must be a time such as 90 (seconds), 10m, 2h30m or 1:30:00, not {shown(raw)}")


_LONGEST_SECONDS = timedelta.max.total_seconds()
# Any: whatever type the field has
_Readers = Mapping[str, Callable[[Value], Any]]


def _fields(value: Value, readers: _Readers) -> dict[str, Any]:
    """Return the values of a mapping by key, each by its reader; a key without a value counts as absent."""
    fields = {} if value.raw is None else value.fields((), readers)
    return {name: readers[name](it) for name, it in fields.items() if it.raw is not None}


def _locations(value: Value, found: Mapping[str, object]) -> dict[str, str]:
    return {name: value.child(name).located("") for name, it in found.items() if isinstance(it, str)}


def _sections(readers: _Readers) -> Callable[[Value], dict[str, Section]]:
    return lambda value: {name.lower(): _section(it, readers) for name, it in value.mapping().items()}


def _section(value: Value, readers: _Readers) -> Section:
    found = _fields(value, readers)
    return Section(**found, locations=_locations(value, found))


def _constraint(value: Value) -> str:
    if type(value.raw) in (int, float):
        value.must_be("a version constraint in quotes", f"; for this version alone: '== {value.raw}'")
        return ""
    text = value.text()
    if not is_constraint(text):
        this = f"; for this version alone: '== {text}'" if is_constraint(f"== {text}") else ""
        value.must_be("a version constraint such as '>= 0.2' or '>= 0.2, < 1'", this)
    return text


def _defaults(value: Value) -> SpecDefaults:
    found = _fields(value, _DEFAULTS)
    account = found.pop("account", None)
    if account is not None and found.setdefault("project_name", account) != account:
        value.child("account").wrong("is the same as project_name, which has another value here")
    own = {name: found.pop(name, None) for name in OWN}
    return SpecDefaults(**own, attributes=JobAttributes(**found))


def _setup(value: Value) -> str:
    text = value.text()
    for problem in () if value.is_wrong else problems(JobSpec("any", environment_setup=[text])):
        value.wrong(problem.partition(" ")[2])
    return text


def _duration(value: Value) -> timedelta:
    try:
        return as_duration(value.raw)
    except ValueError as e:
        value.wrong(str(e))
        return timedelta()


_DEFAULTS: _Readers = {
    "launcher": Value.text,
    "environment_setup": lambda value: [_setup(it) for it in value.items()],
    **dict.fromkeys(JobAttributes.text_names(), Value.text),
    "account": Value.text,
    "duration": _duration,
    "custom_attributes": Value.free_mapping,
}
_EXECUTOR: _Readers = {"version": _constraint, "config": Value.mapping, "defaults": _defaults}
_LAYER: _Readers = {
    "default_executor": Value.text,
    "plugin_path": lambda value: tuple(
        Path(it.problems.source).parent / Path(it.text()).expanduser() for it in value.items()
    ),
    "executors": _sections(_EXECUTOR),
    "targets": _sections({"executor": Value.text, "url": Value.text, **_EXECUTOR}),
}
