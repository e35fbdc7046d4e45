"""Ids as the commands read them."""

from __future__ import annotations

import re

#: The server, and the one node.
SERVER = "node01"

_ID = re.compile(r"([0-9]{1,12}(?:\[[0-9]*\])?)(?:\.(.*))?\Z", re.DOTALL)


def number(native_id: str) -> int:
    """The number in an id."""
    return int(native_id.partition(".")[0])


def full(text: str) -> str | None:
    """The id with its server, which may be left out; None for what is no id."""
    match = _ID.match(text)
    return None if match is None else f"{match[1]}.{match[2] or SERVER}"


def is_here(native_id: str) -> bool:
    """Whether it is an id of this server."""
    return native_id.endswith(f".{SERVER}") and native_id.count(".") == 1
