"""The protocols of transports, which run commands here or on a remote host; the user's directories there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Protocol, runtime_checkable

import attrs

from jpsi.contract.command import BytesResult, Command, CommandResult
from jpsi.model import TransportError

_TIMEOUT = timedelta(minutes=1)
_MARK = "jpsi-directory"
# A relative XDG_STATE_HOME counts as none (XDG Base Directory Specification).
_TEXT = f"""\
case ${{XDG_STATE_HOME-}} in /*) ;; *) XDG_STATE_HOME=$HOME/.local/state ;; esac
printf '{_MARK} %s\\n' "$HOME" "$XDG_STATE_HOME/jpsi/work"
"""


class Transport(Protocol):
    """The connection to the machine on which a backend's commands run. Any thread may call its methods."""

    @property
    def is_local(self) -> bool:
        """True if commands run on the machine of this process and see its files."""

    def run(
        self, command: Command, keep: int | None = None, ready: Callable[[], None] | None = None
    ) -> CommandResult:
        """Run a command until it ends or its timeout, which is set, expires.

        If the command is a process of this machine, it keeps the file descriptor `keep` of this process open
        until it ends, even if this process ends first. `ready` is called before the command receives any
        input, or before it is run: work that can be done while the program starts. An exception of it is
        raised, and the command then has received no input.

        Raises:
            TransportError: the command could not be run, or it is unknown how it ended.
        """

    def close(self) -> None:
        """Release the resources of the transport; running commands are left alone."""


class Lines(Protocol):
    """The output lines of a running command; one thread iterates over them, once."""

    def __iter__(self) -> Iterator[str]:
        """Yield the lines, without their line ends, until the command has ended."""

    def close(self) -> None:
        """End the command; any thread may call this."""


@runtime_checkable
class LineTransport(Transport, Protocol):
    """A transport that also runs long-lived commands and delivers their output line by line."""

    def open(self, command: Command) -> Lines:
        """Start a command; its `timeout` is ignored.

        Raises:
            TransportError: the command could not be started.
        """


@runtime_checkable
class BytesTransport(Transport, Protocol):
    """A transport to a machine with files of its own that can also run commands on binary data.

    Files are transferred in both directions by these commands.
    """

    def exchange(self, command: Command, data: bytes = b"") -> BytesResult:
        """Run a command as `run` does, with these bytes as its input; its output may be any bytes.

        The command has a `timeout`; its `stdin` is ignored. If the connection breaks, it may run with a part
        of its input.

        Raises:
            TransportError: the command could not be run, or it is unknown how it ended.
        """


@runtime_checkable
class FileTransport(Transport, Protocol):
    """A transport to a remote host with its own files: its jobs see no files of this machine.

    The files that jobs need are then sent along, in shell text that `run` passes as input. If the transport
    is a `LineTransport` as well, it reports changes of jobs at once; otherwise the engine polls it every few
    seconds.
    """

    def directories(self) -> RemoteDirectories:
        """Return the user's directories on the remote host; called once, when they are needed.

        Raises:
            TransportError: they cannot be determined now.
        """


@attrs.frozen(slots=True)
class RemoteDirectories:
    """The user's directories on a remote host, as absolute paths."""

    home: str
    #: The directory for jpsi's files of jobs, unless another one is configured.
    work: str

    def expanded(self, path: str) -> str:
        """Return an absolute path on the remote host; `~/` and relative paths begin at the home directory.

        >>> RemoteDirectories("/home/me", "").expanded("~/jobs")
        '/home/me/jobs'
        """
        rest = path[1:].lstrip("/") if path == "~" or path.startswith("~/") else path
        return f"{self.home}/{rest}".rstrip("/") if not rest.startswith("/") else rest


def directories_command() -> Command:
    """Return the command that prints the directories."""
    return Command(["/bin/sh", "-c", _TEXT], timeout=_TIMEOUT)


def read_directories(result: CommandResult) -> RemoteDirectories:
    """Read the directories from the output of `directories_command`.

    Raises:
        TransportError: the output does not contain them.
    """
    lines = [line.partition(" ") for line in result.stdout.splitlines()]
    found = [path for mark, _, path in lines if mark == _MARK and path.startswith("/")]
    if result.returncode != 0 or len(found) != 2:  # noqa: PLR2004  home and work
        msg = f"the home directory on the remote host is not known: {result.complaint}"
        raise TransportError(msg, transient=result.timed_out)
    return RemoteDirectories(*found)
