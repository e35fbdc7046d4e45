"""The transport that runs commands on a remote host; executors of one address share a connection."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable

from jpsi.plugin import BytesResult, Command, CommandResult, RemoteDirectories
from jpsi.plugin.kit import directories_command, read_directories

from .address import Address
from .connection import Connection
from .protocol import RemoteLines


class SshTransport:
    """A transport to one address: a `FileTransport`, `LineTransport` and `BytesTransport` of `jpsi.plugin`.

    It connects when the first command runs. Commands wait for each other if there are more than the
    connection has channels.
    """

    def __init__(self, address: Address) -> None:
        #: The remote host.
        self.address = address
        self._connection: Connection | None = None
        self._directories: RemoteDirectories | None = None

    @property
    def is_local(self) -> bool:
        """Always False: the address may be this machine, but that is not guaranteed."""
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
        """Start a command whose output is streamed; see `jpsi.plugin.LineTransport`."""
        return self._connected().open(command)

    def directories(self) -> RemoteDirectories:
        """Return the user's directories on the remote host; see `jpsi.plugin.FileTransport`."""
        if self._directories is None:
            self._directories = read_directories(self.run(directories_command()))
        return self._directories

    def close(self) -> None:
        """Close the channels, unless other executors use them; the control master stays for a while."""
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
    # The thread that held the lock exists only in the parent.
    global _lock  # noqa: PLW0603  the one of this process
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
