"""Runs commands on another machine; what executors have, one each, over a connection that they share."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable

from jpsi.plugin import (
    BytesResult,
    Command,
    CommandResult,
    FarDirectories,
    directories_command,
    read_directories,
)

from .address import Address
from .lines import FarLines
from .link import Link


class SshTransport:
    """Runs commands at an address: a `FileTransport`, `LineTransport` and `BytesTransport` of `jpsi.plugin`.

    It connects when the first command is run. Commands wait for each other where there are more than a
    connection can carry.
    """

    def __init__(self, address: Address) -> None:
        #: Where commands run.
        self.address = address
        self._link: Link | None = None
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
        return self._linked().run(command, ready)

    def exchange(self, command: Command, data: bytes = b"") -> BytesResult:
        """Run a command that reads and prints bytes; see `jpsi.plugin.BytesTransport`."""
        return self._linked().exchange(command, data)

    def open(self, command: Command) -> FarLines:
        """Start a command that is listened to; see `jpsi.plugin.LineTransport`."""
        return self._linked().open(command)

    def directories(self) -> FarDirectories:
        """Where the user's directories are; see `jpsi.plugin.FileTransport`."""
        if self._directories is None:
            self._directories = read_directories(self.run(directories_command()))
        return self._directories

    def close(self) -> None:
        """Give up the channels, unless other executors use them; the connection lasts a while longer."""
        self._link = None

    def _linked(self) -> Link:
        link = self._link
        if link is None:
            with _lock:
                link = _links.get(self.address)
                if link is None:
                    link = _links[self.address] = Link(self.address)
            self._link = link
        return link


_lock = threading.Lock()
_links: weakref.WeakValueDictionary[Address, Link] = weakref.WeakValueDictionary()


def _after_fork() -> None:
    # Whoever held it stayed with the parent.
    global _lock  # noqa: PLW0603  the one of this process
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
