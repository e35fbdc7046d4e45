"""Answers the fake commands of other processes, over a socket; `path` starts it, and `client` calls it."""

from __future__ import annotations

import contextlib
import functools
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from jpsi.plugin import CommandResult
from jpsi_testing.fake.client import receive, send
from jpsi_testing.fake.commands import FakeSystem, answer
from jpsi_testing.fake.invocation import Invocation
from jpsi_testing.fake.scheduler import FakeScheduler
from jpsi_testing.fake.tasks import TaskLaunch

# The seconds that `close` waits for the thread.
_TIMEOUT_SECONDS = 10.0
# The message by which the server asks the client for its standard input.
_STDIN = "stdin"


class CommandServer:
    """A server on a Unix socket; `close` ends all connections.

    Args:
        path: the socket.
        scheduler: the batch system.
        fake_system: the functions that answer commands.
        on_hang: called when a command hangs, which then fails at once; None lets it hang.
        folder: the directory of the commands.
    """

    def __init__(
        self,
        path: Path,
        scheduler: FakeScheduler,
        fake_system: FakeSystem,
        on_hang: Callable[[], None] | None = None,
        *,
        folder: str = "",
    ) -> None:
        self._folder = folder
        self._scheduler = scheduler
        self._fake_system = fake_system
        self._on_hang = on_hang
        self._lock = threading.Lock()
        self._connections: set[socket.socket] = set()
        self._is_closed = False
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(128)
        self._thread = threading.Thread(target=self._accept, name="fake commands", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Close the socket and all connections."""
        with self._lock:
            self._is_closed = True
            connections = list(self._connections)
        for connection in (self._listener, *connections):
            # wakes the thread that waits on it
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._thread.join(_TIMEOUT_SECONDS)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                if self._is_closed:
                    connection.close()
                    return
                self._connections.add(connection)
            threading.Thread(target=self._serve, args=(connection,), name="fake command", daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection:
                self._reply(connection)
        except OSError:
            pass  # the caller was killed, as some tests do
        finally:
            with self._lock:
                self._connections.discard(connection)

    def _reply(self, connection: socket.socket) -> None:
        call = receive(connection)
        if call is None:
            return
        stdin = functools.cache(functools.partial(read_stdin, connection))
        invocation = Invocation(**cast("dict[str, Any]", call), stdin=stdin, folder=self._folder)
        try:
            result = answer(self._scheduler, self._fake_system, invocation)
        except Exception as e:  # noqa: BLE001  the caller of the command gets an error of the fake
            result = CommandResult(returncode=70, stderr=f"{type(e).__name__} in the fake command: {e}\n")
        if result.timed_out and self._on_hang is not None:
            self._on_hang()
        elif result.timed_out:
            receive(connection)  # returns once the caller has ended
            return
        send(connection, result_fields(result))
        if isinstance(result, TaskLaunch):
            receive(connection)  # returns once its tasks have ended; if `close` comes first, they are killed


def result_fields(result: CommandResult) -> dict[str, object]:
    """Return a result in the form that the client expects."""
    fields: dict[str, object] = {name: getattr(result, name) for name in ("returncode", "stdout", "stderr")}
    if isinstance(result, TaskLaunch):
        fields["tasks"] = [
            [list(task.argv), dict(task.environment), task.stdout, task.stderr] for task in result.tasks
        ]
        for name in ("stdin", "ends_on_failure", "not_found", "not_executable", "is_labelled", "warning"):
            fields[name] = getattr(result, name)
    return fields


def read_stdin(connection: socket.socket) -> str:
    """Return the standard input of the client.

    Raises:
        ConnectionResetError: the client was killed.
    """
    send(connection, _STDIN)
    received = receive(connection)
    if not isinstance(received, bytes):
        raise ConnectionResetError("the caller was killed before it gave its standard input")
    return received.decode(errors="surrogateescape")
