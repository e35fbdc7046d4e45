"""Requests as they are sent, and the shell text in them that runs one command."""

from __future__ import annotations

from enum import StrEnum

import attrs

from jpsi.plugin import Command, ShellLine, line
from jpsi.plugin.kit import command_lines

#: What the text of `running` prints, after the nonce, where there is no such command.
NOT_FOUND = "not found"


class Mode(StrEnum):
    """What becomes of a text that runs when nobody listens to it any more."""

    #: It is left to itself.
    RUN = "run"
    #: It ends.
    FOLLOW = "follow"


@attrs.frozen(slots=True)
class Request:
    """Shell text to be run on the remote host, with what it reads."""

    nonce: str
    text: str
    input: bytes = b""
    mode: Mode = Mode.RUN

    @property
    def sent(self) -> bytes:
        """What is sent. Only with the last byte of it is anything run."""
        text = _bytes(self.text)
        head = f"{self.nonce} {self.mode} {len(text)} {len(self.input)}\n".encode("ascii")
        return head + text + self.input + f"{self.nonce}\n".encode("ascii")


def request(command: Command, nonce: str, mode: Mode = Mode.RUN, data: bytes | None = None) -> Request:
    """What has a command run; `data` is what it reads in place of its `stdin`."""
    if data is None:
        data = b"" if command.stdin is None else _bytes(command.stdin)
    return Request(nonce, running(command, nonce), data, mode)


def running(command: Command, nonce: str) -> str:
    """Shell text that becomes a command.

    >>> print(running(Command(["ls", "a b"]), "n"))
    command -v ls >/dev/null 2>&1 || { printf %s 'n not found'; exit 127; }
    exec ls 'a b'
    """
    not_found = ShellLine(f"{line('printf', '%s', f'{nonce} {NOT_FOUND}')}; exit 127")
    return "\n".join(command_lines(command, not_found))


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogateescape")
