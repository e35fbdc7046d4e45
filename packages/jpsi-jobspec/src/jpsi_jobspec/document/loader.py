"""Loads the document of a workflow, and reports all of its problems together."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from jpsi import document_command

from .model import Document, Group
from .parameters import substitute_parameters
from .problems import Findings
from .resources import read_attributes, read_requirements, read_resource
from .rules import check
from .tasks import read_group, read_tasks
from .values import Entries, Value
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
    value = parse(text, findings)
    document = Document(source=findings.source)
    if value is not None:
        document = _read_document(substitute_parameters(value, arguments or {}))
        check(document, findings)
    findings.check()
    return document


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
