"""Loads the document of a workflow, and reports all of its problems together.

Before the document is read, `${name}` in it is replaced by the values of its parameters.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

import attrs
import yaml

from jpsi import document_command

from .model import Document, Group
from .problems import Findings, Position, suggest_name
from .resources import read_attributes, read_requirements, read_resource
from .rules import check
from .tasks import read_group, read_tasks
from .values import Entries, Scalar, Value
from .yaml_text import parse

_ROOT = (
    *("version", "name", "resources", "requires", "tasks", "groups", "attributes", "environment"),
    *("parameters", "user"),
)


def load(text: str, findings: Findings, arguments: Mapping[str, str] | None = None) -> Document:
    """Return the workflow of a document.

    Args:
        text: the document, in YAML.
        findings: gets the warnings, and has the name of the document.
        arguments: values of its parameters.

    Raises:
        WorkflowError: the document cannot be used; the error names everything that is wrong.
    """
    document = Document(source=findings.source)
    if _is_script(text):
        message = "it is a script, and no workflow"
        hint = "a task runs it by `command: ./NAME`; jpsi convert makes a job document of its directives"
        findings.add_error("JS001", Position(1, 1), message, hint)
    elif (value := parse(text, findings)) is not None:
        document = _read_document(substitute_parameters(value, arguments or {}))
        check(document, findings)
    findings.check()
    return document


def _is_script(text: str) -> bool:
    """Return True if a text names its interpreter, as a workflow may as well, and is no document."""
    if not text.startswith("#!") or "jpsi" in text.partition("\n")[0]:
        return False
    value = parse(text, Findings())
    return value is None or not isinstance(value.content, dict | list)


def _read_document(value: Value) -> Document:
    if isinstance(value.content, list) and value.content:
        value.warn("JS001", "it is a list of tasks alone", "write `tasks:` before it")
        value = attrs.evolve(value, content={"tasks": value})
    elif not isinstance(value.content, dict) or not value.content:
        message = f"it must be a mapping with tasks or groups, not {value.describe()}"
        value.error("JS001", message, "begin with `version: 1`")
        return Document(source=value.findings.source)
    elif (command := document_command(value.to_plain())) not in {None, "jpsi workflow run"}:
        value.error("JS001", "it is no workflow", f"`{command}` takes it")
        return Document(source=value.findings.source)
    entries = value.as_mapping("JS001", _ROOT)
    _check_version(value, entries)
    document = Document(
        source=value.findings.source,
        resources={name: read_resource(name, it) for name, it in _named_values(entries, "resources")},
        requires={name: read_requirements(it) for name, it in _named_values(entries, "requires")},
        tasks=entries.read("tasks", read_tasks, "") or (),
        groups=entries.read("groups", _read_groups) or {},
        attributes=read_attributes(entries),
        user=entries.read("user", Value.to_plain),
    )
    if not document.tasks and not document.groups and not value.findings.errors:
        value.error("JS001", "it has nothing to run", "add `tasks:` or `groups:`")
    return document


def _check_version(value: Value, entries: Entries) -> None:
    version = entries.find("version")
    if version is None:
        at = attrs.evolve(value.at, line=value.at.line or 1, column=value.at.column or 1)
        value.findings.add_warning("JS002", at, "it has no version", "begin it with `version: 1`")
    elif type(version.content) is not int or version.content != 1:
        version.error("JS002", f"is {version.describe()}", "write `version: 1`, the only one there is")


def _named_values(entries: Entries, key: str) -> list[tuple[str, Value]]:
    value = entries.find(key)
    if value is None:
        return []
    if not isinstance(value.content, dict):
        value.must_be("a mapping", "JS001", "write `name:` before each")
        return []
    for name, item in value.content.items():
        item.check_name(name)
    return list(value.content.items())


def _read_groups(value: Value) -> dict[str, Group]:
    groups: dict[str, Group] = {}
    for number, item in enumerate(value.as_items("JS012"), 1):
        if not isinstance(item.content, dict):
            item.must_be("a mapping", "JS012", "write `name:` and `tasks:`")
            continue
        group = read_group(item, number)
        if group.name in groups:
            first = groups[group.name].at.line
            item.error(
                "JS012", f"has the name {group.name!r}, like the group of line {first}", "rename one of them"
            )
        else:
            groups[group.name] = group
    return groups


_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_TYPES: Mapping[str, type] = {"string": str, "integer": int, "number": float, "boolean": bool}
_TYPE_NAMES = {str: "a string", int: "an integer", float: "a number", bool: "true or false"}


def substitute_parameters(value: Value, arguments: Mapping[str, str]) -> Value:
    """Return a document with the values of its parameters in their places.

    A reference that is all of a text becomes the value itself, so that it may be a count. Where a text is
    needed, the value is as the user typed it, or as the document has it: `3.10` stays `3.10`. References to
    names that are no parameters stay: they are variables of the shell.
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


def parameter_values(text: str, arguments: Mapping[str, str]) -> Mapping[str, str]:
    """Return the value of each parameter of a document; nothing for one that has no value.

    The texts are equal if the values are, however they are written.

    Args:
        text: the document, of which `load` reports the problems.
        arguments: values of its parameters.
    """
    declared = _find_declared(text)
    values = {} if declared is None else _resolve_values(declared, arguments)
    return {name: _render_scalar(it.content) for name, it in values.items() if it.content is not None}


def parameter_names(text: str) -> Collection[str]:
    """Return the names of the parameters that a document declares."""
    declared = _find_declared(text)
    content = None if declared is None else declared.content
    return content.keys() if isinstance(content, dict) else ()


def _find_declared(text: str) -> Value | None:
    document = parse(text, Findings())
    content = None if document is None else document.content
    return content.get("parameters") if isinstance(content, dict) else None


def _render_scalar(value: Scalar | list[Value] | dict[str, Value]) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _resolve_values(declared: Value, arguments: Mapping[str, str]) -> dict[str, Value]:
    if not isinstance(declared.content, dict):
        declared.must_be("a mapping", "JS001", "write `name: value`")
        return {}
    found = {name: _resolve_value(name, it, arguments) for name, it in declared.content.items()}
    for name in arguments.keys() - found.keys():
        declared.error("JS003", f"has no {name!r}", suggest_name(name, found))
    return found


def _resolve_value(name: str, value: Value, arguments: Mapping[str, str]) -> Value:
    """Return the value of a parameter, with its text as the user wrote it."""
    entries = value.content if isinstance(value.content, dict) else {"default": value}
    type_entry, default = entries.get("type"), entries.get("default")
    is_known = type_entry is None or type_entry.text in _TYPES
    if entries.keys() - {"type", "default"} or not is_known or isinstance(value.content, list):
        value.must_be("a value, or have type and default", "JS003", f"types are: {', '.join(_TYPES)}")
        return attrs.evolve(value, content=None, text="")
    content = None if default is None or isinstance(default.content, list | dict) else default.content
    implied = str if content is None else type(content)
    type_class = implied if type_entry is None else _TYPES[type_entry.text]
    chosen = _parse_argument(arguments[name], type_class) if name in arguments else content
    if chosen is None and name not in arguments:
        value.error("JS003", "has no value", f"give it one: --set {name}=...")
    elif type(chosen) not in ({int, float} if type_class is float else {type_class}):
        message = f"must be {_TYPE_NAMES[type_class]}, not {arguments.get(name, content)!r}"
        value.error("JS003", message, "give it another value")
    text = arguments.get(name, "" if default is None else default.text)
    return attrs.evolve(value, content=chosen, text=text)


def _parse_argument(text: str, wanted: type) -> Scalar:
    """Return the value that the user gave for a parameter, in the parameter's type where that is possible."""
    if wanted is str:
        return text
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError:
        return text
    return found if isinstance(found, str | int | float) else text


def _replace_references(value: Value, values: Mapping[str, Value]) -> Value:
    content = value.content
    if isinstance(content, dict):
        replaced = {key: _replace_references(it, values) for key, it in content.items()}
        return attrs.evolve(value, content=replaced)
    if isinstance(content, list):
        return attrs.evolve(value, content=[_replace_references(it, values) for it in content])
    if not isinstance(content, str) or "${" not in content:
        return value
    reference = _REFERENCE.fullmatch(content)
    if reference is not None and reference[1] in values:
        content, text = values[reference[1]].content, values[reference[1]].text
        return attrs.evolve(value, content=content, text=text, is_of_parameter=content is not None)
    text = _REFERENCE.sub(lambda it: values[it[1]].text if it[1] in values else it[0], content)
    return attrs.evolve(value, content=text, text=text)
