"""Encodes requests for the remote shell, with the shell text that runs one command."""

from __future__ import annotations

from enum import StrEnum

import attrs

from jpsi.plugin import Command, ShellLine, line
from jpsi.plugin.kit import command_lines

#: The output of the shell text of a request, after the nonce, if the command was not found.
NOT_FOUND = "not found"


class Mode(StrEnum):
    """The fate of a running shell text when the connection ends."""

    #: The text runs on.
    RUN = "run"
    #: The shell ends it.
    FOLLOW = "follow"


@attrs.frozen(slots=True)
class Request:
    """Shell text to run on the remote host, with its input."""

    nonce: str
    text: str
    input: bytes = b""
    mode: Mode = Mode.RUN

    @property
    def sent(self) -> bytes:
        """The encoded request. The remote shell runs nothing before the last byte has arrived."""
        text = _bytes(self.text)
        head = f"{self.nonce} {self.mode} {len(text)} {len(self.input)}\n".encode("ascii")
        return head + text + self.input + f"{self.nonce}\n".encode("ascii")


def request(command: Command, nonce: str, mode: Mode = Mode.RUN, data: bytes | None = None) -> Request:
    """Return the request that runs a command; `data`, if given, replaces the command's `stdin`.

    Its shell text checks for the command and replaces the shell with it by `exec`.

    >>> print(request(Command(["ls", "a b"]), "n").text)
    command -v ls >/dev/null 2>&1 || { printf %s 'n not found'; exit 127; }
    exec ls 'a b'
    """
    if data is None:
        data = b"" if command.stdin is None else _bytes(command.stdin)
    not_found = ShellLine(f"{line('printf', '%s', f'{nonce} {NOT_FOUND}')}; exit 127")
    return Request(nonce, "\n".join(command_lines(command, not_found)), data, mode)


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogateescape")
