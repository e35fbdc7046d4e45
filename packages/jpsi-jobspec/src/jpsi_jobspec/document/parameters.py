"""Parameters of a document: their values replace `${name}` wherever it occurs."""

from __future__ import annotations

import re
from collections.abc import Mapping

import attrs
import yaml

from .problems import instead
from .values import Reader, kind
from .yaml_text import Scalar, Value

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_TYPES: Mapping[str, type] = {"string": str, "integer": int, "number": float, "boolean": bool}
_CALLED = {str: "a string", int: "an integer", float: "a number", bool: "true or false"}


def substituted(value: Value, given: Mapping[str, str], reader: Reader) -> Value:
    """Return a document with the values of its parameters in their places.

    A reference that is all of a text becomes the value itself, so that it may be a count. References to names
    that are no parameters stay: they are variables of the shell.
    """
    declared = value.content.get("parameters") if isinstance(value.content, dict) else None
    if declared is None:
        for name in given:
            reader.findings.wrong("JS003", value.at, f"it has no parameter {name!r}", "declare `parameters:`")
        return value
    values = _values(declared, given, reader)
    content = value.content if isinstance(value.content, dict) else {}
    changed = {key: it if it is declared else _replaced(it, values) for key, it in content.items()}
    return attrs.evolve(value, content=changed)


def _values(declared: Value, given: Mapping[str, str], reader: Reader) -> dict[str, Scalar]:
    if not isinstance(declared.content, dict):
        reader.findings.wrong(
            "JS001", declared.at, f"must be a mapping, not {kind(declared)}", "write `name: value`"
        )
        return {}
    found = {name: _value(name, it, given, reader) for name, it in declared.content.items()}
    for name in given.keys() - found.keys():
        reader.findings.wrong("JS003", declared.at, f"has no {name!r}", instead(name, found))
    return found


def _value(name: str, value: Value, given: Mapping[str, str], reader: Reader) -> Scalar:
    entries = value.content if isinstance(value.content, dict) else {"default": value}
    type_, default = entries.get("type"), entries.get("default")
    unknown = entries.keys() - {"type", "default"}
    known = type_ is None or type_.text in _TYPES
    if unknown or not known or isinstance(value.content, list):
        says = f"must be a value, or have type and default, not {kind(value)}"
        reader.findings.wrong("JS003", value.at, says, f"types are: {', '.join(_TYPES)}")
        return None
    content = None if default is None or isinstance(default.content, list | dict) else default.content
    kind_ = _TYPES[type_.text] if type_ is not None else type(content) if content is not None else str
    chosen = _typed(given[name], kind_) if name in given else content
    if chosen is None and name not in given:
        reader.findings.wrong("JS003", value.at, "has no value", f"give it one: --set {name}=...")
    elif not _fits(chosen, kind_):
        says = f"must be {_CALLED[kind_]}, not {given.get(name, content)!r}"
        reader.findings.wrong("JS003", value.at, says, "give it another value")
    return chosen


def _typed(text: str, wanted: type) -> Scalar:
    """Return the value that the user gave for a parameter, in the parameter's type where that is possible."""
    if wanted is str:
        return text
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError:
        return text
    return found if isinstance(found, str | int | float) else text


def _fits(value: Scalar, wanted: type) -> bool:
    if wanted is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return type(value) is wanted


def _replaced(value: Value, values: Mapping[str, Scalar]) -> Value:
    content = value.content
    if isinstance(content, dict):
        return attrs.evolve(value, content={key: _replaced(it, values) for key, it in content.items()})
    if isinstance(content, list):
        return attrs.evolve(value, content=[_replaced(it, values) for it in content])
    if not isinstance(content, str) or "${" not in content:
        return value
    whole = _REFERENCE.fullmatch(content)
    if whole is not None and whole[1] in values:
        return attrs.evolve(value, content=values[whole[1]], text=_written(values[whole[1]]))
    text = _REFERENCE.sub(lambda it: _written(values[it[1]]) if it[1] in values else it[0], content)
    return attrs.evolve(value, content=text, text=text)


def _written(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
