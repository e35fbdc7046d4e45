"""Runs commands on another machine; what executors have, one each, over a connection that they share."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable

from jpsi.plugin import BytesResult, Command, CommandResult, FarDirectories
from jpsi.plugin.kit import directories_command, read_directories

from .address import Address
from .connection import Connection
from .protocol import RemoteLines


class SshTransport:
    """Runs commands at an address: a `FileTransport`, `LineTransport` and `BytesTransport` of `jpsi.plugin`.

    It connects when the first command is run. Commands wait for each other where there are more than a
    connection can carry.
    """

    def __init__(self, address: Address) -> None:
        #: Where commands run.
        self.address = address
        self._connection: Connection | None = None
        self._directories: FarDirectories | None = None

    @property
    def is_local(self) -> bool:
        """Always false: this machine may be at the other end, but nobody promises that."""
        return False

    def run(
        self, command: Command, keep: int | None = None, ready: Callable[[], None] | None = None
    ) -> CommandResult:
        """Run a command; see `jpsi.plugin.Transport`."""
        del keep  # no process of this machine
        return self._connected().run(command, ready)

    def exchange(self, command: Command, data: bytes = b"") -> BytesResult:
        """Run a command that reads and prints bytes; see `jpsi.plugin.BytesTransport`."""
        return self._connected().exchange(command, data)

    def open(self, command: Command) -> RemoteLines:
        """Start a command that is listened to; see `jpsi.plugin.LineTransport`."""
        return self._connected().open(command)

    def directories(self) -> FarDirectories:
        """Where the user's directories are; see `jpsi.plugin.FileTransport`."""
        if self._directories is None:
            self._directories = read_directories(self.run(directories_command()))
        return self._directories

    def close(self) -> None:
        """Give up the channels, unless other executors use them; the connection lasts a while longer."""
        self._connection = None

    def _connected(self) -> Connection:
        connection = self._connection
        if connection is None:
            with _lock:
                connection = _connections.get(self.address)
                if connection is None:
                    connection = _connections[self.address] = Connection(self.address)
            self._connection = connection
        return connection


_lock = threading.Lock()
_connections: weakref.WeakValueDictionary[Address, Connection] = weakref.WeakValueDictionary()


def _after_fork() -> None:
    # Whoever held it stayed with the parent.
    global _lock  # noqa: PLW0603  the one of this process
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
