"""Parses ids as the commands of the fakes of PBS and Torque do.

Tests and `jpsi fake` run jobs on the fake, without a real PBS or Torque.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from jpsi_testing.fake import FakeJob

#: The server of the fakes, which is the first node.
SERVER = "node01"

_ID = re.compile(r"([0-9]{1,12}(?:\[[0-9,:-]*\])?)(?:\.(.*))?\Z", re.DOTALL)


def exec_host(nodes: Iterable[str]) -> str:
    """Return a job's nodes in the form of its attribute `exec_host`."""
    return "+".join(f"{name}/0" for name in dict.fromkeys(nodes))


def full_id(text: str, server: str) -> str | None:
    """Return the id with its server, which the text may leave out; None if the text is no id.

    >>> full_id("17[3]", "a"), full_id("17.b", "a"), full_id("b", "a")
    ('17[3].a', '17.b', None)
    """
    match = _ID.match(text)
    return None if match is None else f"{match[1]}.{match[2] or server}"


def is_local(native_id: str, server: str) -> bool:
    """Return True if the id belongs to this server."""
    return native_id.endswith(f".{server}") and native_id.count(".") == 1


def server_of(job: FakeJob) -> str:
    """Return the server of a job."""
    return job.native_id.partition(".")[2]
