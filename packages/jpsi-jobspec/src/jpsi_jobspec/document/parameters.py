"""Replaces `${name}` in a document by the values of its parameters, before the document is read."""

from __future__ import annotations

import re
from collections.abc import Mapping

import attrs
import yaml

from .problems import suggest_name
from .values import Scalar, Value

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_TYPES: Mapping[str, type] = {"string": str, "integer": int, "number": float, "boolean": bool}
_TYPE_NAMES = {str: "a string", int: "an integer", float: "a number", bool: "true or false"}


def substitute_parameters(value: Value, arguments: Mapping[str, str]) -> Value:
    """Return a document with the values of its parameters in their places.

    A reference that is all of a text becomes the value itself, so that it may be a count. References to names
    that are no parameters stay: they are variables of the shell.
    """
    content = value.content if isinstance(value.content, dict) else {}
    declared = content.get("parameters")
    if declared is None:
        for name in arguments:
            value.error("JS003", f"it has no parameter {name!r}", "declare `parameters:`")
        return value
    values = _resolve_values(declared, arguments)
    changed = {key: it if it is declared else _replace_references(it, values) for key, it in content.items()}
    return attrs.evolve(value, content=changed)


def _resolve_values(declared: Value, arguments: Mapping[str, str]) -> dict[str, Scalar]:
    if not isinstance(declared.content, dict):
        declared.must_be("a mapping", "JS001", "write `name: value`")
        return {}
    found = {name: _resolve_value(name, it, arguments) for name, it in declared.content.items()}
    for name in arguments.keys() - found.keys():
        declared.error("JS003", f"has no {name!r}", suggest_name(name, found))
    return found


def _resolve_value(name: str, value: Value, arguments: Mapping[str, str]) -> Scalar:
    entries = value.content if isinstance(value.content, dict) else {"default": value}
    type_entry, default = entries.get("type"), entries.get("default")
    is_known = type_entry is None or type_entry.text in _TYPES
    if entries.keys() - {"type", "default"} or not is_known or isinstance(value.content, list):
        value.must_be("a value, or have type and default", "JS003", f"types are: {', '.join(_TYPES)}")
        return None
    content = None if default is None or isinstance(default.content, list | dict) else default.content
    implied = str if content is None else type(content)
    type_class = implied if type_entry is None else _TYPES[type_entry.text]
    chosen = _parse_argument(arguments[name], type_class) if name in arguments else content
    if chosen is None and name not in arguments:
        value.error("JS003", "has no value", f"give it one: --set {name}=...")
    elif type(chosen) not in ({int, float} if type_class is float else {type_class}):
        message = f"must be {_TYPE_NAMES[type_class]}, not {arguments.get(name, content)!r}"
        value.error("JS003", message, "give it another value")
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


def _replace_references(value: Value, values: Mapping[str, Scalar]) -> Value:
    content = value.content
    if isinstance(content, dict):
        replaced = {key: _replace_references(it, values) for key, it in content.items()}
        return attrs.evolve(value, content=replaced)
    if isinstance(content, list):
        return attrs.evolve(value, content=[_replace_references(it, values) for it in content])
    if not isinstance(content, str) or "${" not in content:
        return value
    texts = {name: str(it).lower() if isinstance(it, bool) else str(it) for name, it in values.items()}
    reference = _REFERENCE.fullmatch(content)
    if reference is not None and reference[1] in values:
        return attrs.evolve(value, content=values[reference[1]], text=texts[reference[1]])
    text = _REFERENCE.sub(lambda it: texts.get(it[1], it[0]), content)
    return attrs.evolve(value, content=text, text=text)
