"""Parameters of a document: their values replace `${name}` wherever it occurs."""

from __future__ import annotations

import re
from collections.abc import Mapping

import attrs
import yaml

from .problems import suggest_name
from .values import Reader, describe_kind
from .yaml_text import Scalar, Value

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_TYPES: Mapping[str, type] = {"string": str, "integer": int, "number": float, "boolean": bool}
_TYPE_NAMES = {str: "a string", int: "an integer", float: "a number", bool: "true or false"}


def substitute_parameters(value: Value, arguments: Mapping[str, str], reader: Reader) -> Value:
    """Return a document with the values of its parameters in their places.

    A reference that is all of a text becomes the value itself, so that it may be a count. References to names
    that are no parameters stay: they are variables of the shell.
    """
    declared = value.content.get("parameters") if isinstance(value.content, dict) else None
    if declared is None:
        for name in arguments:
            reader.findings.add_error(
                "JS003", value.at, f"it has no parameter {name!r}", "declare `parameters:`"
            )
        return value
    values = _resolve_values(declared, arguments, reader)
    content = value.content if isinstance(value.content, dict) else {}
    changed = {key: it if it is declared else _replace_references(it, values) for key, it in content.items()}
    return attrs.evolve(value, content=changed)


def _resolve_values(declared: Value, arguments: Mapping[str, str], reader: Reader) -> dict[str, Scalar]:
    if not isinstance(declared.content, dict):
        reader.findings.add_error(
            "JS001", declared.at, f"must be a mapping, not {describe_kind(declared)}", "write `name: value`"
        )
        return {}
    found = {name: _resolve_value(name, it, arguments, reader) for name, it in declared.content.items()}
    for name in arguments.keys() - found.keys():
        reader.findings.add_error("JS003", declared.at, f"has no {name!r}", suggest_name(name, found))
    return found


def _resolve_value(name: str, value: Value, arguments: Mapping[str, str], reader: Reader) -> Scalar:
    entries = value.content if isinstance(value.content, dict) else {"default": value}
    type_entry, default = entries.get("type"), entries.get("default")
    unknown = entries.keys() - {"type", "default"}
    known = type_entry is None or type_entry.text in _TYPES
    if unknown or not known or isinstance(value.content, list):
        message = f"must be a value, or have type and default, not {describe_kind(value)}"
        reader.findings.add_error("JS003", value.at, message, f"types are: {', '.join(_TYPES)}")
        return None
    content = None if default is None or isinstance(default.content, list | dict) else default.content
    type_class = (
        _TYPES[type_entry.text] if type_entry is not None else type(content) if content is not None else str
    )
    chosen = _parse_argument(arguments[name], type_class) if name in arguments else content
    if chosen is None and name not in arguments:
        reader.findings.add_error("JS003", value.at, "has no value", f"give it one: --set {name}=...")
    elif not _has_type(chosen, type_class):
        message = f"must be {_TYPE_NAMES[type_class]}, not {arguments.get(name, content)!r}"
        reader.findings.add_error("JS003", value.at, message, "give it another value")
    return chosen


def _parse_argument(text: str, wanted: type) -> Scalar:
    """Return the value that the user gave for a parameter, in the parameter's type where that is possible."""
    if wanted is str:
        return text
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError:
        return text
    return found if isinstance(found, str | int | float) else text


def _has_type(value: Scalar, wanted: type) -> bool:
    if wanted is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return type(value) is wanted


def _replace_references(value: Value, values: Mapping[str, Scalar]) -> Value:
    content = value.content
    if isinstance(content, dict):
        return attrs.evolve(
            value, content={key: _replace_references(it, values) for key, it in content.items()}
        )
    if isinstance(content, list):
        return attrs.evolve(value, content=[_replace_references(it, values) for it in content])
    if not isinstance(content, str) or "${" not in content:
        return value
    reference = _REFERENCE.fullmatch(content)
    if reference is not None and reference[1] in values:
        return attrs.evolve(value, content=values[reference[1]], text=_render_scalar(values[reference[1]]))
    text = _REFERENCE.sub(lambda it: _render_scalar(values[it[1]]) if it[1] in values else it[0], content)
    return attrs.evolve(value, content=text, text=text)


def _render_scalar(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
