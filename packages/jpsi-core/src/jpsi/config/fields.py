"""Makes an executor's configuration object from the values of configuration files; reports wrong values."""

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
    """Return an instance of `config_class` with these values; ConfigError lists the problems by location."""
    fields = {field.alias: field for field in attrs.fields(attrs.resolve_types(config_class)) if field.init}
    problems: list[str] = []
    arguments: dict[str, Any] = {}
    for name, value in values.items():
        if name not in fields:
            sentence = f"is not known to {config_class.__name__}{did_you_mean(name, fields)}"
            problems.append(value.located(sentence))
            continue
        try:
            found = _CONVERTER.structure(value.raw, fields[name].type)
            # a relative path is relative to the file, wherever the program runs
            arguments[name] = Path(value.problems.source).parent / found if isinstance(found, Path) else found
        except Exception as e:  # noqa: BLE001  a plugin's types and validators raise what they like
            sentence = "; ".join(_sentences(e)) or f"cannot be used: {e}"
            problems.append(value.located(sentence))
    if not problems:
        try:
            return config_class(**arguments)
        except Exception as e:  # noqa: BLE001  as above
            alone = _wrong_alone(config_class, arguments, str(e))
            problems += [values[name].located(it) for name, it in alone.items()]
            if not alone:
                problems.append(f"{config_class.__name__} cannot be made of {', '.join(arguments)}: {e}")
    raise config_error(problems)


def _wrong_alone(
    config_class: type[ExecutorConfig], values: Mapping[str, Any], first: str
) -> Mapping[str, str]:
    """Return the class's error for each value that it rejects alone; empty if `first` is not among them."""
    found: dict[str, str] = {}
    for name, value in values.items():
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


def _exactly(raw: object, kind: type[T], what: str) -> T:
    if isinstance(raw, kind) and (kind is bool or not isinstance(raw, bool)):
        return raw
    raise ValueError(f"must be {what}, not {shown(raw)}")


# cattrs itself would convert the text "no" to true, 1.5 to 1, and a text to a list of its letters.
_CONVERTER = cattrs.Converter(forbid_extra_keys=True)
_CONVERTER.register_structure_hook(str, lambda raw, _: _exactly(raw, str, "text"))
_CONVERTER.register_structure_hook(bool, lambda raw, _: _exactly(raw, bool, "true or false"))
_CONVERTER.register_structure_hook(int, lambda raw, _: _exactly(raw, int, "a whole number"))
_CONVERTER.register_structure_hook(
    float, lambda raw, _: float(raw) if type(raw) is int else _exactly(raw, float, "a number")
)
_CONVERTER.register_structure_hook(timedelta, lambda raw, _: as_duration(raw))
_CONVERTER.register_structure_hook(Path, lambda raw, _: Path(_exactly(raw, str, "text")).expanduser())
_CONVERTER.register_structure_hook_func(
    lambda kind: kind == tuple[str, ...],
    lambda raw, _: tuple(_exactly(it, str, "text") for it in _exactly(raw, list, "a list of texts")),
)
