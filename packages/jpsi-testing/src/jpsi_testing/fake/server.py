"""Answers the fake commands of other processes, over sockets; `path` starts it, and commands call it."""

from __future__ import annotations

import contextlib
import functools
import socket
import threading
from collections.abc import Callable
from pathlib import Path

from jpsi.plugin import CommandResult
from jpsi_testing.fake.callers import Caller, Port, ScriptCaller
from jpsi_testing.fake.client import receive
from jpsi_testing.fake.commands import FakeSystem, answer
from jpsi_testing.fake.invocation import Invocation
from jpsi_testing.fake.scheduler import FakeScheduler
from jpsi_testing.fake.tasks import TaskLaunch

# The seconds that `close` waits for each thread.
_TIMEOUT_SECONDS = 10.0
# The number of connections that may wait to be accepted.
_BACKLOG = 1024


class CommandServer:
    """A server on a Unix socket, and for scripts on a port; `close` ends all connections.

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
        self._threads: dict[socket.socket, threading.Thread] = {}
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        self._listen(listener, Caller)
        #: The port for scripts; None without a /proc that shows their calls, or a network.
        self.port = self._open_port()

    def _open_port(self) -> Port | None:
        if not Path("/proc/self/environ").exists():
            return None
        try:
            listener = socket.create_server(("127.0.0.1", 0))
        except OSError:
            return None
        port = Port(listener.getsockname()[1])
        self._listen(listener, functools.partial(ScriptCaller, port=port))
        return port

    def _listen(self, listener: socket.socket, caller: Callable[[socket.socket], Caller]) -> None:
        listener.listen(_BACKLOG)
        thread = threading.Thread(
            target=self._accept, args=(listener, caller), name="fake commands", daemon=True
        )
        self._threads[listener] = thread
        thread.start()

    def close(self) -> None:
        """Close the sockets and all connections."""
        with self._lock:
            self._is_closed = True
            connections = list(self._connections)
        for connection in (*self._threads, *connections):
            # wakes the thread that waits on it
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for listener, thread in self._threads.items():
            thread.join(_TIMEOUT_SECONDS)
            listener.close()

    def _accept(self, listener: socket.socket, caller: Callable[[socket.socket], Caller]) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with self._lock:
                if self._is_closed:
                    connection.close()
                    return
                self._connections.add(connection)
            arguments = (connection, caller(connection))
            threading.Thread(target=self._serve, args=arguments, name="fake command", daemon=True).start()

    def _serve(self, connection: socket.socket, caller: Caller) -> None:
        try:
            with connection:
                self._reply(connection, caller)
        except OSError:
            pass  # the caller was killed, as some tests do
        finally:
            with self._lock:
                self._connections.discard(connection)

    def _reply(self, connection: socket.socket, caller: Caller) -> None:
        call = caller.read_call()
        if call is None:
            return
        invocation = Invocation(**call, stdin=functools.cache(caller.read_stdin), folder=self._folder)
        try:
            result = answer(self._scheduler, self._fake_system, invocation)
        except Exception as e:  # noqa: BLE001  the caller of the command gets an error of the fake
            result = CommandResult(returncode=70, stderr=f"{type(e).__name__} in the fake command: {e}\n")
        if result.timed_out and self._on_hang is not None:
            self._on_hang()
        elif result.timed_out:
            receive(connection)  # returns once the caller has ended
            return
        caller.give(result)
        if isinstance(result, TaskLaunch):
            receive(connection)  # returns once its tasks have ended; if `close` comes first, they are killed
