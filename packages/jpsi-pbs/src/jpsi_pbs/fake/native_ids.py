"""Parses ids as the commands of the fakes of PBS and Torque do.

Tests and `jpsi fake` run jobs on the fake, without a real PBS or Torque.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

#: The server, which is the first node.
SERVER = "node01"

_ID = re.compile(r"([0-9]{1,12}(?:\[[0-9,:-]*\])?)(?:\.(.*))?\Z", re.DOTALL)


def exec_host(nodes: Iterable[str]) -> str:
    """Return a job's nodes in the form of its attribute `exec_host`."""
    return "+".join(f"{name}/0" for name in dict.fromkeys(nodes))


def full_id(text: str) -> str | None:
    """Return the id with its server, which the text may leave out; None if the text is no id."""
    match = _ID.match(text)
    return None if match is None else f"{match[1]}.{match[2] or SERVER}"


def is_local(native_id: str) -> bool:
    """Return True if the id belongs to this server."""
    return native_id.endswith(f".{SERVER}") and native_id.count(".") == 1
