"""Subsystems of a site, as the user describes them: each is a graph in a file of JSON (JGF).

Requirements of a document are compared with their nodes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from jpsi import InvalidJobException

#: The default directory of subsystems.
SUBSYSTEM_DIRECTORY = "~/.compspec/subsystems"


@attrs.frozen(slots=True)
class SubsystemNode:
    """A node of a subsystem, with its metadata."""

    name: str
    #: Each value by its dotted path.
    fields: Mapping[str, str]
    #: The values of its section `attributes`.
    attributes: Mapping[str, str]


Subsystems = Mapping[str, Sequence[SubsystemNode]]


def read_subsystem(text: str, source: str) -> tuple[SubsystemNode, ...]:
    """Return the nodes of a graph, which may have them in a mapping or in a list.

    Raises:
        InvalidJobException: the text is no such graph.
    """
    try:
        content = json.loads(text)
    except ValueError as e:
        raise InvalidJobException(f"{source}: it is not JSON: {e}", e) from e
    graph = content.get("graph") if isinstance(content, dict) else None
    nodes = graph.get("nodes") if isinstance(graph, dict) else None
    if isinstance(nodes, dict):
        pairs = list(nodes.items())
    elif isinstance(nodes, list) and all(isinstance(it, dict) for it in nodes):
        pairs = [(str(it.get("id", index)), it) for index, it in enumerate(nodes)]
    else:
        msg = f"{source}: it has no graph with nodes; write {{'graph': {{'nodes': ...}}}}"
        raise InvalidJobException(msg)
    return tuple(_read_node(str(name), it) for name, it in pairs if isinstance(it, dict))


def _read_node(name: str, content: Mapping[str, Any]) -> SubsystemNode:
    metadata = content.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    inner = metadata.get("attributes", content.get("attributes"))
    fields = dict(_flatten(metadata, ""))
    if "label" in content:
        fields.setdefault("label", str(content["label"]))
    return SubsystemNode(name, fields, dict(_flatten(inner if isinstance(inner, dict) else {}, "")))


def _flatten(content: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
    """Yield each value by its dotted path; a key with dots in it is a path as well."""
    for key, value in content.items():
        path = f"{prefix}{key}"
        if isinstance(value, dict):
            yield from _flatten(value, f"{path}.")
        elif isinstance(value, bool):
            yield path, str(value).lower()
        elif value is not None:
            yield path, str(value)


def read_subsystems(directory: Path) -> Subsystems:
    """Return the subsystems in a directory.

    A subsystem is in `NAME.json`, `NAME-subsystem.json`, or any `.json` in a folder `NAME`.

    Raises:
        InvalidJobException: a file is no such graph, or cannot be read.
    """
    found: dict[str, tuple[SubsystemNode, ...]] = {}
    for path in sorted(directory.glob("*.json")) + sorted(directory.glob("*/*.json")):
        name = path.stem if path.parent == directory else path.parent.name
        try:
            nodes = read_subsystem(path.read_text(encoding="utf-8"), str(path))
        except OSError as e:
            raise InvalidJobException(f"{path} cannot be read: {e.strerror}", e) from e
        name = name.removesuffix("-subsystem")
        found[name] = (*found.get(name, ()), *nodes)
    return found
