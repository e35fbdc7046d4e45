"""The program behind each fake command: passes its call on over a socket, and says what it is told.

Run by its path, without the rest of jpsi and with as few imports as possible: it is started very often.
"""

from __future__ import annotations

import json
import os
import socket
import sys

_GONE = 255


def main() -> int:
    """Run the command that the arguments after the socket's path name."""
    path, *argv = sys.argv[1:]
    call = {"argv": argv, "environment": dict(os.environ), "directory": os.getcwd()}  # noqa: PTH109  slow
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(path)
            answer = _ask(connection, call)
        except OSError:
            answer = None
    if answer is None:
        sys.stderr.write(f"{argv[0]}: the fake batch system is gone\n")
        return _GONE
    _say(1, answer["stdout"])
    _say(2, answer["stderr"])
    code = int(answer["returncode"])
    if code < 0:
        os.kill(os.getpid(), -code)
    return code


def _ask(connection: socket.socket, call: object) -> dict[str, str] | None:
    lines = connection.makefile("rw", encoding="ascii")
    json.dump(call, lines)
    lines.write("\n")
    lines.flush()
    for line in lines:
        answer: dict[str, str] = json.loads(line)
        if "returncode" in answer:
            return answer
        json.dump(sys.stdin.buffer.read().decode(errors="surrogateescape"), lines)
        lines.write("\n")
        lines.flush()
    return None


def _say(descriptor: int, text: str) -> None:
    rest = text.encode(errors="surrogateescape")
    while rest:
        rest = rest[os.write(descriptor, rest) :]


if __name__ == "__main__":
    sys.exit(main())
