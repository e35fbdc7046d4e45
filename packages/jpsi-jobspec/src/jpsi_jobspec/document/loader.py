"""Loads a document, and reports all of its problems at once."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from .model import Document, Group
from .parameters import substituted
from .problems import Findings
from .resources import ALSO, read_attributes, read_requirements, read_resource
from .rules import check
from .tasks import read_group, read_tasks
from .values import Entries, Reader, kind, plain
from .yaml_text import Value, parse

_ROOT = (
    *("version", "name", "resources", "requires", "tasks", "groups", "attributes", "environment"),
    *("parameters", "user"),
)


def load(text: str, findings: Findings, given: Mapping[str, str] | None = None) -> Document:
    """Return the workflow of a document.

    Args:
        text: the document, in YAML.
        findings: gets the warnings, and has the name of the document.
        given: values of its parameters.

    Raises:
        WorkflowError: the document cannot be used; the error names everything that is wrong.
    """
    value = parse(text, findings)
    document = Document(source=findings.source)
    if value is not None:
        reader = Reader(findings)
        document = _document(substituted(value, given or {}, reader), reader)
        check(document, findings)
    findings.check()
    return document


def _document(value: Value, reader: Reader) -> Document:
    if isinstance(value.content, list) and value.content:
        reader.findings.loose("JS001", value.at, "it is a list of tasks alone", "write `tasks:` before it")
        value = Value({"tasks": value}, value.at)
    elif not isinstance(value.content, dict) or not value.content:
        says = f"it must be a mapping with tasks or groups, not {kind(value)}"
        reader.findings.wrong("JS001", value.at, says, "begin with `version: 1`")
        return Document(source=reader.findings.source)
    entries = reader.mapping(value, "JS001", _ROOT, ALSO)
    _check_version(value, entries, reader)
    tasks, user = entries.get("tasks"), entries.get("user")
    document = Document(
        source=reader.findings.source,
        resources={
            name: read_resource(name, it, reader) for name, it in _named(entries, "resources", reader)
        },
        requires={name: read_requirements(it, reader) for name, it in _named(entries, "requires", reader)},
        tasks=() if tasks is None else read_tasks(tasks, "", reader),
        groups=_groups(entries, reader),
        attributes=read_attributes(entries, reader),
        user=None if user is None else plain(user),
    )
    if not document.tasks and not document.groups and not reader.findings.errors:
        reader.findings.wrong("JS001", value.at, "it has nothing to run", "add `tasks:` or `groups:`")
    return document


def _check_version(value: Value, entries: Entries, reader: Reader) -> None:
    version = entries.get("version")
    if version is None:
        at = attrs.evolve(value.at, line=value.at.line or 1, column=value.at.column or 1)
        reader.findings.loose("JS002", at, "it does not say its version", "begin it with `version: 1`")
    elif version.content != 1 or not isinstance(version.content, int) or isinstance(version.content, bool):
        reader.findings.wrong(
            "JS002", version.at, f"is {kind(version)}", "write `version: 1`, the only one there is"
        )


def _named(entries: Entries, key: str, reader: Reader) -> list[tuple[str, Value]]:
    value = entries.get(key)
    if value is None:
        return []
    if isinstance(value.content, dict):
        for name, item in value.content.items():
            reader.check_name(name, item.at)
        return list(value.content.items())
    reader.findings.wrong(
        "JS001", value.at, f"must be a mapping, not {kind(value)}", "write `name:` before each"
    )
    return []


def _groups(entries: Entries, reader: Reader) -> dict[str, Group]:
    value = entries.get("groups")
    groups: dict[str, Group] = {}
    for number, item in enumerate(() if value is None else reader.items(value, "JS012"), 1):
        if not isinstance(item.content, dict):
            says = f"must be a mapping, not {kind(item)}"
            reader.findings.wrong("JS012", item.at, says, "write `name:` and `tasks:`")
            continue
        group = read_group(item, number, reader)
        if group.name in groups:
            first = groups[group.name].at.line
            says = f"is called {group.name!r}, as the group of line {first}"
            reader.findings.wrong("JS012", item.at, says, "rename one of them")
        else:
            groups[group.name] = group
    return groups
