"""Makes an executor's configuration object from configured values, for any plugin's configuration class."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import attrs
import cattrs

from jpsi.config.file import as_duration
from jpsi.config.loader import config_error
from jpsi.contract import ExecutorConfig
from jpsi.document import Value, did_you_mean, shown

T = TypeVar("T")


def structured(config_class: type[ExecutorConfig], values: Mapping[str, Value]) -> ExecutorConfig:
    """Return an instance of `config_class` with these values.

    Raises:
        ConfigError: a name or a value is wrong; the message lists all mistakes, with their places.
    """
    fields = {field.alias: field for field in attrs.fields(attrs.resolve_types(config_class)) if field.init}
    problems: list[str] = []
    given: dict[str, Any] = {}
    for name, value in values.items():
        if name not in fields:
            sentence = f"is not known to {config_class.__name__}{did_you_mean(name, fields)}"
            problems.append(value.located(sentence))
            continue
        try:
            given[name] = _CONVERTER.structure(value.raw, fields[name].type)
        except Exception as e:  # noqa: BLE001  a plugin's types and validators raise what they like
            sentence = "; ".join(_sentences(e)) or f"cannot be used: {e}"
            problems.append(value.located(sentence))
    if not problems:
        try:
            return config_class(**given)
        except Exception as e:  # noqa: BLE001  as above
            alone = _wrong_alone(config_class, given, str(e))
            problems += [values[name].located(it) for name, it in alone.items()]
            if not alone:
                problems.append(f"{config_class.__name__} cannot be made of {', '.join(given)}: {e}")
    raise config_error(problems)


def _wrong_alone(
    config_class: type[ExecutorConfig], given: Mapping[str, Any], first: str
) -> Mapping[str, str]:
    """Return the class's error for each value that it rejects alone; empty if `first` is not among them."""
    found: dict[str, str] = {}
    for name, value in given.items():
        try:
            config_class(**{name: value})
        except Exception as e:  # noqa: BLE001  as above
            found[name] = str(e)
    return found if first in found.values() else {}


def _sentences(error: BaseException) -> list[str]:
    if isinstance(error, BaseExceptionGroup):
        return [sentence for inner in error.exceptions for sentence in _sentences(inner)]
    notes = " ".join(getattr(error, "__notes__", ()))
    return [f"{error} ({notes})" if notes else str(error)]


def _timedelta(raw: object, _: type) -> timedelta:
    return as_duration(raw)


def _path(raw: object, _: type) -> Path:
    return Path(_text(raw, str)).expanduser()


def _text(raw: object, _: type) -> str:
    return _exactly(raw, str, "text")


def _boolean(raw: object, _: type) -> bool:
    return _exactly(raw, bool, "true or false")


def _whole(raw: object, _: type) -> int:
    return _exactly(raw, int, "a whole number")


def _number(raw: object, _: type) -> float:
    return float(_exactly(raw, int, "a number") if isinstance(raw, int) else _exactly(raw, float, "a number"))


def _lines(raw: object, _: type) -> tuple[str, ...]:
    # cattrs itself would split a text into a list of its letters
    return tuple(_text(item, str) for item in _exactly(raw, list, "a list of texts"))


def _exactly(raw: object, kind: type[T], what: str) -> T:
    if isinstance(raw, kind) and (kind is bool or not isinstance(raw, bool)):
        return raw
    msg = f"must be {what}, not {shown(raw)}"
    raise ValueError(msg)


def _converter() -> cattrs.Converter:
    converter = cattrs.Converter(forbid_extra_keys=True)
    # cattrs itself would convert the text "no" to true, and 1.5 to 1.
    for kind, hook in {
        str: _text,
        bool: _boolean,
        int: _whole,
        float: _number,
        timedelta: _timedelta,
        Path: _path,
    }.items():
        converter.register_structure_hook(kind, hook)
    converter.register_structure_hook_func(lambda kind: kind == tuple[str, ...], _lines)
    return converter


_CONVERTER = _converter()
