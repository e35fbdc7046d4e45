"""Requests as they are sent, and the shell text in them that runs one command."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum

import attrs

from jpsi.plugin import Command, line, word

#: What the text of `running` prints, after the nonce, where there is no such command.
NOT_FOUND = "not found"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_NAMES = "env | sed -n 's/^\\([A-Za-z_][A-Za-z0-9_]*\\)=.*/\\1/p'"


class Mode(StrEnum):
    """What becomes of a text that runs when nobody listens to it any more."""

    #: It is left to itself.
    RUN = "run"
    #: It ends.
    FOLLOW = "follow"


@attrs.frozen(slots=True)
class Request:
    """Shell text to be run over there, with what it reads."""

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


def request(command: Command, nonce: str, mode: Mode = Mode.RUN) -> Request:
    """What has a command run."""
    stdin = b"" if command.stdin is None else _bytes(command.stdin)
    return Request(nonce, running(command, nonce), stdin, mode)


def running(command: Command, nonce: str) -> str:
    """Shell text that becomes a command.

    >>> print(running(Command(["ls", "a b"], environment={"B": "1"}), "n"))
    command -v ls >/dev/null 2>&1 || { printf '%s' 'n not found'; exit 127; }
    exec env 'B=1' ls 'a b'
    """
    return "\n".join(_lines(command, nonce))


def _lines(command: Command, nonce: str) -> Iterator[str]:
    named = [name for name in command.unset if _NAME.match(name)]
    patterns = [f"{word(name[:-1])}*" for name in command.unset if _NAME.match(name[:-1]) and name[-1] == "*"]
    if named:
        yield line("unset", *named)
    if patterns:
        case = f'case $jpsi_line in {" | ".join(patterns)}) unset "$jpsi_line" ;; esac'
        yield f"for jpsi_line in $({_NAMES}); do {case}; done"
    missing = f"{{ printf '%s' {word(f'{nonce} {NOT_FOUND}')}; exit 127; }}"
    yield f"{line('command', '-v', command.argv[0])} >/dev/null 2>&1 || {missing}"
    variables = [f"{name}={value}" for name, value in command.environment.items()]
    yield line("exec", *(["env", *variables] if variables else []), *command.argv)


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogateescape")
