"""The agent's side of the protocol on its socket; `client.py` is the other side."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import attrs

from ..client import NOT_SENT, REFUSED

# The client's exit codes for answers with such a key, whose value says why.
_EXIT_CODES = {"unable": NOT_SENT, "refused": REFUSED}


@attrs.frozen(slots=True, kw_only=True)
class Request:
    """A client's request."""

    what: str
    values: Mapping[str, Any]  # Any: as JSON has it
    #: The umask and environment of client.py's process; each byte is a character there, as JSON has no bytes.
    umask: int
    environment: Mapping[str, str]
    #: The process that started client.py, and that the jobs belong to.
    client: str


def read_request(text: bytes) -> Request | None:
    r"""Parse a request; None if it is incomplete.

    >>> request = read_request(b"22\x0017.4\x00A=1\x00" b'{"do": "find", "tags": []}\n')
    >>> request.what, request.values, request.umask, request.client, request.environment
    ('find', {'tags': []}, 18, '17.4', {'A': '1'})
    >>> read_request(b"22\x0017.4\x00A=1\n")
    """
    *headers, line = text.split(b"\0")
    if not line.startswith(b"{") or not line.endswith(b"\n"):
        return None
    umask, client, *variables = (header.decode("latin-1") for header in headers)
    values = json.loads(line)
    return Request(
        what=values.pop("do"),
        values=values,
        umask=int(umask, 8),
        environment=dict(variable.split("=", 1) for variable in variables),
        client=client,
    )


def render_answer(values: Mapping[str, Any]) -> bytes:  # as above
    r"""Render an answer: a line with the client's exit code, and the line that it prints.

    >>> render_answer({"id": "a-1"}), render_answer({"refused": "no"})
    (b'0\n{"id":"a-1"}\n', b'4\nno\n')
    """
    for key, code in _EXIT_CODES.items():
        if key in values:
            return f"{code}\n{values[key]}\n".encode()
    return b"0\n" + json.dumps(values, separators=(",", ":")).encode() + b"\n"
