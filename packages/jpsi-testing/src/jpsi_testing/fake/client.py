"""The program behind each fake command: sends its call to the server over a socket, and prints the answer.

`path` writes commands that run it, if need be; `server` answers. It is run by its path, without the rest of
jpsi and with as few imports as possible, as its start takes most of the time of a command.
"""

from __future__ import annotations

import _socket  # what `socket` adds to it, and json instead of marshal, would double the time of a start
import marshal
import os
import sys

TYPE_CHECKING = False  # typing takes long to import
if TYPE_CHECKING:
    from typing import Any

# The exit code of a command if the fake batch system has ended.
_NO_SERVER = 255
# The number of bytes that hold the length of a value, before it.
_LENGTH = 8


def main() -> int:
    """Run the command named by the arguments after the server's address; return its exit code."""
    address, *argv = sys.argv[1:]
    call: dict[str, object] = {"argv": argv, "environment": dict(os.environ), "directory": os.getcwd()}  # noqa: PTH109  slow
    try:
        connection = _connect(address)
        answer = request(connection, call)
    except OSError:
        answer = None
    if answer is None:
        sys.stderr.write(f"{argv[0]}: the fake batch system has ended\n")
        return _NO_SERVER
    return carry_out(argv[0], answer, connection)


def _connect(address: str) -> _socket.socket:
    """Connect to the server.

    Args:
        address: the path of the server's socket, or the number of a connection that a script has made.
    """
    if address.startswith("/"):
        connection = _socket.socket(_socket.AF_UNIX)
        connection.connect(address)
    else:
        connection = _socket.socket(fileno=int(address))
        # the server must see when this process ends, whatever processes it has started
        os.set_inheritable(connection.fileno(), False)  # noqa: FBT003  the only way to call it
    return connection


def carry_out(command: str, answer: dict[str, Any], connection: _socket.socket) -> int:
    """Print an answer, start the tasks in it, and return the exit code of the command."""
    _print(1, answer["stdout"])
    _print(2, answer["stderr"])
    if "tasks" in answer:
        return _start_tasks(command, answer, connection)
    code = int(answer["returncode"])
    if code < 0:
        os.kill(os.getpid(), -code)
    return code


def send(connection: _socket.socket, value: str | bytes | dict[str, object]) -> None:
    """Send a value to the server or to the client, which run the same Python."""
    message = marshal.dumps(value)
    connection.sendall(len(message).to_bytes(_LENGTH) + message)


def receive(connection: _socket.socket) -> object:
    """Return the next value that was sent; None if the sender has closed the connection."""
    length = int.from_bytes(_bytes(connection, _LENGTH))
    message = _bytes(connection, length)
    return marshal.loads(message) if len(message) == length > 0 else None  # noqa: S302  it is ours


def _bytes(connection: _socket.socket, count: int) -> bytes:
    """Return `count` bytes; fewer if the sender has closed the connection."""
    found = b""
    while len(found) < count and (more := connection.recv(count - len(found))):
        found += more
    return found


def _start_tasks(command: str, answer: dict[str, Any], connection: _socket.socket) -> int:
    """Start the tasks in the answer and wait for them; the import is late, as few commands start tasks."""
    # at the end of the path: no file beside this one may shadow a module of Python
    sys.path.append(__file__.rpartition("/")[0])
    from task_runner import run_tasks  # type: ignore[import-not-found]  # noqa: PLC0415  it is beside this file

    code: int = run_tasks(command, answer, lambda: receive(connection))
    return code


def request(connection: _socket.socket, call: dict[str, object]) -> dict[str, Any] | None:
    """Send a call, and the standard input if the server asks for it; return the answer, if there is one."""
    send(connection, call)
    while (answer := receive(connection)) is not None:
        if isinstance(answer, dict):
            return answer
        send(connection, sys.stdin.buffer.read())
    return None


def _print(descriptor: int, text: str) -> None:
    rest = text.encode(errors="surrogateescape")
    while rest:
        rest = rest[os.write(descriptor, rest) :]


if __name__ == "__main__":
    sys.exit(main())
