"""Reads one configuration file, and notes every mistake in it with its place."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import attrs

from jpsi.config.spec_defaults import SpecDefaults
from jpsi.document import Value, parse, shown
from jpsi.model import parse_duration
from jpsi.registry import is_constraint


@attrs.frozen(slots=True, kw_only=True)
class Section:
    """The configuration of one executor or target."""

    #: The executor of a target.
    executor: str | None = None
    url: str | None = None
    #: A PEP 440 version constraint.
    version: str | None = None
    #: Values for fields of the executor's configuration, with their places.
    config: Mapping[str, Value] = attrs.field(factory=dict)
    defaults: SpecDefaults = attrs.field(factory=SpecDefaults)
    #: The places of `executor`, `url` and `version`: `config.yaml:3: targets.far.executor`.
    places: Mapping[str, str] = attrs.field(factory=dict)

    def over(self, lower: Section) -> Section:
        """Return this section, with what it leaves open filled in from a weaker one."""
        return Section(
            executor=self.executor or lower.executor,
            url=self.url or lower.url,
            version=self.version or lower.version,
            config=_joined(self.config, lower.config),
            defaults=self.defaults.over(lower.defaults),
            places={**lower.places, **self.places},
        )


@attrs.frozen(slots=True, kw_only=True)
class Layer:
    """The content of one configuration file; names of executors and targets are in lower case."""

    default_executor: str | None = None
    #: The place of `default_executor`.
    default_place: str = ""
    plugin_path: tuple[Path, ...] = ()
    executors: Mapping[str, Section] = attrs.field(factory=dict)
    targets: Mapping[str, Section] = attrs.field(factory=dict)


def read(text: str, source: str) -> Layer:
    """Read the text of a configuration file.

    Raises:
        DocumentError: the text has problems; `problems` names all of them.
    """
    document = parse(text, source)
    layer = _layer(document)
    if document.problems:
        raise document.problems.error()
    return layer


def _layer(value: Value) -> Layer:
    found = _fields(value, ("default_executor", "plugin_path", "executors", "targets"))
    return Layer(
        default_executor=found["default_executor"].text() if "default_executor" in found else None,
        default_place=_place(found["default_executor"]) if "default_executor" in found else "",
        plugin_path=tuple(map(_directory, found["plugin_path"].items())) if "plugin_path" in found else (),
        executors=_sections(found.get("executors"), ()),
        targets=_sections(found.get("targets"), ("executor", "url")),
    )


def _fields(value: Value, names: tuple[str, ...]) -> dict[str, Value]:
    """Return the values of a mapping by key; a key without a value counts as absent."""
    if value.raw is None:
        return {}
    return {name: it for name, it in value.fields((), names).items() if it.raw is not None}


def _sections(value: Value | None, more: tuple[str, ...]) -> dict[str, Section]:
    named = {} if value is None else value.mapping()
    return {name.lower(): _section(it, more) for name, it in named.items()}


def _section(value: Value, more: tuple[str, ...]) -> Section:
    found = _fields(value, (*more, "version", "config", "defaults"))
    texts = {name: found[name].text() for name in more if name in found}
    if "version" in found:
        texts["version"] = _constraint(found["version"])
    return Section(
        **texts,
        places={name: _place(found[name]) for name in texts},
        config=found["config"].mapping() if "config" in found else {},
        defaults=_defaults(found["defaults"]) if "defaults" in found else SpecDefaults(),
    )


def _constraint(value: Value) -> str:
    raw = value.raw
    if isinstance(raw, int | float) and not isinstance(raw, bool):
        value.must_be("a version constraint in quotes", f"; for this version alone: '== {raw}'")
        return ""
    text = value.text()
    if not is_constraint(text):
        this = f"; for this version alone: '== {text}'" if is_constraint(f"== {text}") else ""
        value.must_be("a version constraint such as '>= 0.2' or '>= 0.2, < 1'", this)
    return text


def _place(value: Value) -> str:
    return value.located("")


def _defaults(value: Value) -> SpecDefaults:
    found = _fields(value, (*_TEXTS, "account", "duration", "custom_attributes"))
    texts = {name: found[name].text() for name in _TEXTS if name in found}
    if "account" in found:
        account = found["account"].text()
        if texts.setdefault("project_name", account) != account:
            found["account"].wrong("is the same as project_name, which has another value here")
    return SpecDefaults(
        **texts,
        duration=_duration(found["duration"]) if "duration" in found else None,
        custom_attributes=found["custom_attributes"].free_mapping() if "custom_attributes" in found else {},
    )


_TEXTS = ("launcher", "queue_name", "project_name", "reservation_id")


def as_duration(raw: object) -> timedelta:
    """Convert a value to a duration: a number of seconds, or text such as 10m.

    >>> as_duration("1h30m") == as_duration(5400)
    True

    Raises:
        ValueError: the value is no duration.
    """
    if isinstance(raw, str):
        return parse_duration(raw)
    if isinstance(raw, int | float) and not isinstance(raw, bool) and 0 <= raw < _LONGEST_SECONDS:
        return timedelta(seconds=raw)
    msg = f"must be a time such as 90 (seconds), 10m, 2h30m or 1:30:00, not {shown(raw)}"
    raise ValueError(msg)


_LONGEST_SECONDS = timedelta.max.total_seconds()


def _duration(value: Value) -> timedelta:
    try:
        return as_duration(value.raw)
    except ValueError as e:
        value.wrong(str(e))
        return timedelta()


def _directory(value: Value) -> Path:
    path = Path(value.text()).expanduser()
    if not path.is_absolute() and value.raw:
        value.must_be("an absolute path, or one that starts with ~/")
    return path


def _joined(high: Mapping[str, Value], low: Mapping[str, Value]) -> dict[str, Value]:
    """Merge two mappings, key by key; where both have a mapping, these are merged too."""
    return {**low, **{key: _over(value, low.get(key)) for key, value in high.items()}}


def _over(high: Value, low: Value | None) -> Value:
    if low is None or not isinstance(high.raw, dict) or not isinstance(low.raw, dict):
        return high
    return attrs.evolve(high, raw=_joined_raw(high.raw, low.raw))


def _joined_raw(high: Mapping[str, object], low: Mapping[str, object]) -> dict[str, object]:
    joined = {**low, **high}
    for key, value in high.items():
        below = low.get(key)
        if isinstance(value, dict) and isinstance(below, dict):
            joined[key] = _joined_raw(value, below)
    return joined
