"""What is said over the agent's socket, as its own side reads and writes it; `client.py` is the other."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import attrs

from ..client import NOT_SENT, REFUSED

# What the client ends with where an answer has such a word, which says why.
_CODES = {"unable": NOT_SENT, "refused": REFUSED}


@attrs.frozen(slots=True, kw_only=True)
class Request:
    """What a client wants."""

    what: str
    values: Mapping[str, Any]  # Any: as JSON has it
    #: Of the process that asks; in what JSON can say, each byte is a character.
    umask: int
    environment: Mapping[str, str]
    #: The process that had it asked.
    client: str


def read_request(text: bytes) -> Request | None:
    r"""The request in what was received; None for half of one.

    >>> request = read_request(b"22\x0017.4\x00A=1\x00" b'{"do": "find", "tags": []}\n')
    >>> request.what, request.values, request.umask, request.client, request.environment
    ('find', {'tags': []}, 18, '17.4', {'A': '1'})
    >>> read_request(b"22\x0017.4\x00A=1\n")
    """
    *before, line = text.split(b"\0")
    if not line.startswith(b"{") or not line.endswith(b"\n"):
        return None
    umask, client, *variables = (it.decode("latin-1") for it in before)
    values = json.loads(line)
    return Request(
        what=values.pop("do"),
        values=values,
        umask=int(umask, 8),
        environment=dict(variable.split("=", 1) for variable in variables),
        client=client,
    )


def render_answer(values: Mapping[str, Any]) -> bytes:  # as above
    r"""What is answered: a line with what the client ends with, and what it prints.

    >>> render_answer({"id": "a-1"}), render_answer({"refused": "no"})
    (b'0\n{"id":"a-1"}\n', b'4\nno\n')
    """
    for word, code in _CODES.items():
        if word in values:
            return f"{code}\n{values[word]}\n".encode()
    return b"0\n" + json.dumps(values, separators=(",", ":")).encode() + b"\n"
