"""Loads a document, and reports all of its problems at once."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from .model import Document, Group
from .parameters import substitute_parameters
from .problems import Findings
from .resources import KEY_ALIASES, read_attributes, read_requirements, read_resource
from .rules import check
from .tasks import read_group, read_tasks
from .values import Entries, Reader, describe_kind, to_plain
from .yaml_text import Value, parse

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
    value = parse(text, findings)
    document = Document(source=findings.source)
    if value is not None:
        reader = Reader(findings)
        document = _read_document(substitute_parameters(value, arguments or {}, reader), reader)
        check(document, findings)
    findings.check()
    return document


def _read_document(value: Value, reader: Reader) -> Document:
    if isinstance(value.content, list) and value.content:
        reader.findings.add_warning(
            "JS001", value.at, "it is a list of tasks alone", "write `tasks:` before it"
        )
        value = Value({"tasks": value}, value.at)
    elif not isinstance(value.content, dict) or not value.content:
        message = f"it must be a mapping with tasks or groups, not {describe_kind(value)}"
        reader.findings.add_error("JS001", value.at, message, "begin with `version: 1`")
        return Document(source=reader.findings.source)
    entries = reader.mapping(value, "JS001", _ROOT, KEY_ALIASES)
    _check_version(value, entries, reader)
    tasks, user = entries.get("tasks"), entries.get("user")
    document = Document(
        source=reader.findings.source,
        resources={
            name: read_resource(name, it, reader) for name, it in _read_named(entries, "resources", reader)
        },
        requires={
            name: read_requirements(it, reader) for name, it in _read_named(entries, "requires", reader)
        },
        tasks=() if tasks is None else read_tasks(tasks, "", reader),
        groups=_read_groups(entries, reader),
        attributes=read_attributes(entries, reader),
        user=None if user is None else to_plain(user),
    )
    if not document.tasks and not document.groups and not reader.findings.errors:
        reader.findings.add_error("JS001", value.at, "it has nothing to run", "add `tasks:` or `groups:`")
    return document


def _check_version(value: Value, entries: Entries, reader: Reader) -> None:
    version = entries.get("version")
    if version is None:
        at = attrs.evolve(value.at, line=value.at.line or 1, column=value.at.column or 1)
        reader.findings.add_warning("JS002", at, "it has no version", "begin it with `version: 1`")
    elif version.content != 1 or not isinstance(version.content, int) or isinstance(version.content, bool):
        reader.findings.add_error(
            "JS002", version.at, f"is {describe_kind(version)}", "write `version: 1`, the only one there is"
        )


def _read_named(entries: Entries, key: str, reader: Reader) -> list[tuple[str, Value]]:
    value = entries.get(key)
    if value is None:
        return []
    if isinstance(value.content, dict):
        for name, item in value.content.items():
            reader.check_name(name, item.at)
        return list(value.content.items())
    reader.findings.add_error(
        "JS001", value.at, f"must be a mapping, not {describe_kind(value)}", "write `name:` before each"
    )
    return []


def _read_groups(entries: Entries, reader: Reader) -> dict[str, Group]:
    value = entries.get("groups")
    groups: dict[str, Group] = {}
    for number, item in enumerate(() if value is None else reader.items(value, "JS012"), 1):
        if not isinstance(item.content, dict):
            message = f"must be a mapping, not {describe_kind(item)}"
            reader.findings.add_error("JS012", item.at, message, "write `name:` and `tasks:`")
            continue
        group = read_group(item, number, reader)
        if group.name in groups:
            first = groups[group.name].at.line
            message = f"has the name {group.name!r}, like the group of line {first}"
            reader.findings.add_error("JS012", item.at, message, "rename one of them")
        else:
            groups[group.name] = group
    return groups
