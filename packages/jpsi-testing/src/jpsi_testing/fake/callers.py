"""Reads the calls of fake commands for the server, with their standard input, and gives them the results.

The caller is the program `client`, or a shell script that `path` has written, which starts in a tenth of the
time. Such a script sends its process id, and the server reads the call from /proc. If the script cannot carry
out the result, it becomes `client`, which goes on with the same connection.
"""

from __future__ import annotations

import io
import os
import posixpath
import select
import socket
import stat
from pathlib import Path
from secrets import compare_digest, token_hex
from typing import Any, cast

import attrs

from jpsi.plugin import CommandResult
from jpsi_testing.fake.client import receive, send
from jpsi_testing.fake.tasks import TaskLaunch

# The message by which the server asks `client` for its standard input.
_STDIN = "stdin"
# The word in place of an exit code by which the server lets a script become `client`.
_BECOME_CLIENT = "client"
# The end of each text that a script is to print without it, so that it never reads nothing.
_END = "."
# The largest exit code, and the largest output of a script, in characters; `client` prints more faster.
_MAX_CODE = 255
_MAX_OUTPUT = 30_000
# The largest length of the line with which a script calls, in bytes, and the seconds that it may take.
_MAX_LINE = 1000
_LINE_SECONDS = 30.0
# The number of bytes of standard input that are read at once.
_CHUNK = 65536
_KILLED = "the caller was killed before it gave its standard input"


class Caller:
    """The program `client` at the other end of a connection."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def read_call(self) -> dict[str, Any] | None:
        """Return the fields of the call; None if the caller was killed, or is no command of this server."""
        return cast("dict[str, Any] | None", receive(self._connection))

    def read_stdin(self) -> str:
        """Return the standard input.

        Raises:
            ConnectionResetError: the caller was killed.
        """
        return read_stdin(self._connection)

    def give(self, result: CommandResult) -> None:
        """Let the caller carry out the result."""
        send(self._connection, result_fields(result))


@attrs.frozen(slots=True)
class Port:
    """A port of this machine on which a server waits for scripts.

    Other users can connect to it, and can listen on it once the server has ended. So scripts and the server
    each begin with a secret.
    """

    number: int
    script_secret: str = attrs.field(factory=token_hex, repr=False)
    server_secret: str = attrs.field(factory=token_hex, repr=False)


class ScriptCaller(Caller):
    """The script of a command at the other end of a connection, or the `client` that it has become."""

    def __init__(self, connection: socket.socket, port: Port) -> None:
        super().__init__(connection)
        self._port = port
        self._pid = 0
        self._is_client = False

    def read_call(self) -> dict[str, Any] | None:
        """Return the fields of the call, as `Caller` does."""
        secret, _, process = _read_line(self._connection).partition(b" ")
        if not compare_digest(secret, self._port.script_secret.encode("ascii")):
            return None
        pid, count, name = process.decode(errors="surrogateescape").split(" ", 2)
        self._pid = int(pid)
        return find_call(self._pid, int(count), name) or self._become_client()

    def read_stdin(self) -> str:
        """Return the standard input, as `Caller` does."""
        if not self._is_client:
            text = _read_pipe(f"/proc/{self._pid}/fd/0", self._connection)
            if text is not None:
                return text
            self._become_client()
        return super().read_stdin()

    def give(self, result: CommandResult) -> None:
        """Let the caller carry out the result."""
        if not self._is_client:
            if is_printable(result):
                texts = [f"{it}{_END}" for it in (result.stdout, result.stderr)]
                lengths = " ".join(str(len(it)) for it in texts)
                self._send(f"{result.returncode} {lengths}\n{''.join(texts)}")
                return
            self._become_client()
        super().give(result)

    def _become_client(self) -> dict[str, Any] | None:
        """Let the script become `client`; return the call, which `client` sends in any case."""
        self._is_client = True
        self._send(f"{_BECOME_CLIENT}\n")
        return super().read_call()

    def _send(self, text: str) -> None:
        self._connection.sendall(f"{self._port.server_secret} {text}".encode("ascii"))


def find_call(pid: int, count: int, name: str) -> dict[str, Any] | None:
    """Return the fields of the call that a script is, with so many arguments; None if /proc does not show it.

    Args:
        pid: the id of its process.
        count: the number of its arguments.
        name: the name of the command.
    """
    try:
        words = _read_words(f"/proc/{pid}/cmdline")
        variables = _read_words(f"/proc/{pid}/environ")
        directory = os.readlink(f"/proc/{pid}/cwd")  # noqa: PTH115  a text is wanted
    except OSError:
        return None
    script, *arguments = words[-count - 1 :] or [""]
    # in a container, the id may be that of another process; and a directory that was removed is an error
    if posixpath.basename(script) != name or directory.endswith(" (deleted)"):
        return None
    environment = dict(it.partition("=")[::2] for it in variables if "=" in it)
    return {"argv": [name, *arguments], "environment": environment, "directory": directory}


def _read_words(path: str) -> list[str]:
    """Return the words in a file of /proc, where each ends with NUL."""
    return Path(path).read_bytes().decode(errors="surrogateescape").split("\0")[:-1]


def is_printable(result: CommandResult) -> bool:
    """Return True if a script can carry out a result: it prints short texts in ASCII, and exits."""
    text = result.stdout + result.stderr
    is_short = len(text) <= _MAX_OUTPUT and 0 <= result.returncode <= _MAX_CODE
    return is_short and text.isascii() and "\0" not in text and not isinstance(result, TaskLaunch)


def result_fields(result: CommandResult) -> dict[str, object]:
    """Return a result in the form that `client` expects."""
    fields: dict[str, object] = {name: getattr(result, name) for name in ("returncode", "stdout", "stderr")}
    if isinstance(result, TaskLaunch):
        fields["tasks"] = [
            [list(task.argv), dict(task.environment), task.stdout, task.stderr] for task in result.tasks
        ]
        for name in ("stdin", "ends_on_failure", "not_found", "not_executable", "is_labelled", "warning"):
            fields[name] = getattr(result, name)
    return fields


def read_stdin(connection: socket.socket) -> str:
    """Return the standard input of `client`.

    Raises:
        ConnectionResetError: it was killed.
    """
    send(connection, _STDIN)
    received = receive(connection)
    if not isinstance(received, bytes):
        raise ConnectionResetError(_KILLED)
    return received.decode(errors="surrogateescape")


def _read_line(connection: socket.socket) -> bytes:
    """Return the line that a script sends, as far as it came, without its end."""
    connection.settimeout(_LINE_SECONDS)
    line = b""
    while len(line) < _MAX_LINE and not line.endswith(b"\n") and (more := connection.recv(_MAX_LINE)):
        line += more
    connection.settimeout(None)
    return line.rstrip(b"\n")


def _read_pipe(path: str, connection: socket.socket) -> str | None:
    """Return the text in a pipe, once all its writers have closed it; None if the file is no pipe.

    Raises:
        ConnectionResetError: the caller at the other end of the connection was killed.
    """
    try:
        if not stat.S_ISFIFO(os.stat(path).st_mode):  # noqa: PTH116  Path would resolve it
            return None
        pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(pipe, "rb", buffering=0) as stream:
        return _read_while_alive(stream, connection).decode(errors="surrogateescape")


def _read_while_alive(stream: io.RawIOBase, connection: socket.socket) -> bytes:
    poll = select.poll()
    poll.register(stream, select.POLLIN)
    poll.register(connection, select.POLLIN)
    text = b""
    while True:
        if any(descriptor == connection.fileno() for descriptor, _ in poll.poll()):
            raise ConnectionResetError(_KILLED)
        more = stream.read(_CHUNK)
        if more == b"":
            return text
        # None: another process was faster
        text += more or b""
