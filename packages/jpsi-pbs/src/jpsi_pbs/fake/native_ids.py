"""Ids as the commands read them."""

from __future__ import annotations

import re
from collections.abc import Iterable

#: The server, which is the first of the nodes.
SERVER = "node01"

_ID = re.compile(r"([0-9]{1,12}(?:\[[0-9,:-]*\])?)(?:\.(.*))?\Z", re.DOTALL)


def node(index: int) -> str:
    """The name of a node; the first is 0."""
    return f"node{index + 1:02d}"


def places(nodes: Iterable[str]) -> str:
    """Where a job runs, as its attribute `exec_host` tells it."""
    return "+".join(f"{name}/0" for name in dict.fromkeys(nodes))


def full(text: str) -> str | None:
    """The id with its server, which may be left out; None for what is no id."""
    match = _ID.match(text)
    return None if match is None else f"{match[1]}.{match[2] or SERVER}"


def is_here(native_id: str) -> bool:
    """Whether it is an id of this server."""
    return native_id.endswith(f".{SERVER}") and native_id.count(".") == 1
