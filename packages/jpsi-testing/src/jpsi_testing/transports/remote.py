"""A transport to a simulated remote host on this machine, for tests of remote jobs without ssh."""

from __future__ import annotations

import shutil
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import attrs

from jpsi.plugin import (
    BytesResult,
    Command,
    CommandResult,
    Lines,
    RemoteDirectories,
    ShellLine,
    Transport,
    TransportError,
    hookimpl,
)
from jpsi.plugin.kit import command_lines, directories_command, read_directories

if TYPE_CHECKING:
    from jpsi_engine.host import LocalTransport

T = TypeVar("T")

_SCHEME = "remote://"
_BROKEN_CONNECTION = "the connection broke"


class RemoteTransport:
    """A transport to a simulated remote host on this machine; implements `jpsi.plugin.FileTransport`.

    It is a `LineTransport` and a `BytesTransport` as well. Commands find another home directory and begin in
    it. Files are staged as for a host behind ssh, so that a backend can be tested for that without one:

        transport = RemoteTransport(tmp_path / "home")
        executor = JobExecutor.get_instance("slurm", url=transport.url)

    A URL of this form leads to such a transport in any process; faults apply to this object alone.

    Args:
        home: the home directory on the remote host; it is created.
    """

    is_local = False

    def __init__(self, home: Path) -> None:
        #: The home directory on the remote host.
        self.home = home.absolute()
        self.home.mkdir(parents=True, exist_ok=True)
        #: The url of this transport.
        self.url = f"{_SCHEME}{self.home}"
        #: True if the connection is cut.
        self.is_down = False
        #: True if `open` works.
        self.listens = True
        #: The arguments and the input of each command that was sent.
        self.sent: list[str] = []
        self._local = _this_machine()
        self._lock = threading.Lock()
        self._cuts: list[_Cut] = []
        self._open: weakref.WeakSet[_Listened] = weakref.WeakSet()
        _transports[self.url] = self

    def cut(self, word: str, *, after: bool = False, stays_down: bool = False) -> None:
        """Break the connection at the next command whose arguments or input contain this word.

        Args:
            word: the word.
            after: whether the command runs, and only its answer is lost; otherwise it does not run.
            stays_down: whether no new connection is possible until `up`.
        """
        with self._lock:
            self._cuts.append(_Cut(word, after, stays_down))

    def down(self) -> None:
        """Cut the connection until `up`; no command can run, and opened commands end."""
        self.is_down = True
        self.hang_up()

    def hang_up(self) -> None:
        """End all opened commands."""
        for lines in list(self._open):
            lines.close()

    def up(self) -> None:
        """Allow connections again."""
        self.is_down = False

    def directories(self) -> RemoteDirectories:
        """Return the directories of the remote host; see `jpsi.plugin.FileTransport`."""
        return read_directories(self.run(directories_command()))

    def run(
        self, command: Command, keep: int | None = None, ready: Callable[[], None] | None = None
    ) -> CommandResult:
        """Run a command; see `jpsi.plugin.Transport`."""
        del keep  # a remote command is no process of this machine, and cannot hold a descriptor of this one
        return self._send(command, lambda remote_command: self._local.run(remote_command, None, ready))

    def exchange(self, command: Command, data: bytes = b"") -> BytesResult:
        """Run a command that reads and prints bytes; see `jpsi.plugin.BytesTransport`."""
        return self._send(command, lambda remote_command: self._local.exchange(remote_command, data))

    def _send(self, command: Command, run: Callable[[Command], T]) -> T:
        cut = self._apply_cuts(command)
        if cut is not None and not cut.after:
            self.is_down = cut.stays_down
            raise TransportError(_BROKEN_CONNECTION, transient=True, may_have_run=True)
        result = run(self._on_remote_host(command))
        if cut is not None:
            self.is_down = cut.stays_down
        if cut is not None or self.is_down:
            raise TransportError(_BROKEN_CONNECTION, transient=True, may_have_run=True)
        return result

    def open(self, command: Command) -> Lines:
        """Start a command and return its lines as they come; see `jpsi.plugin.LineTransport`."""
        self._apply_cuts(command)
        if not self.listens:
            raise TransportError("no output can be streamed", transient=True)
        lines = _Listened(self._local.open(self._on_remote_host(command)))
        self._open.add(lines)
        if self.is_down or not self.listens:
            # the connection was cut during the start
            lines.close()
        return lines

    def close(self) -> None:
        """Do nothing: there is nothing to release."""

    def _apply_cuts(self, command: Command) -> _Cut | None:
        if self.is_down:
            raise TransportError("there is no connection", transient=True)
        text = "\n".join([*command.argv, command.stdin or ""])
        with self._lock:
            self.sent.append(text)
            cut = next((it for it in self._cuts if it.word in text), None)
            if cut is not None:
                self._cuts.remove(cut)
        return cut

    def _on_remote_host(self, command: Command) -> Command:
        if shutil.which(command.argv[0]) is None:
            raise TransportError(f"the command {command.argv[0]} was not found on PATH of the remote host")
        text = "\n".join(['cd "$HOME" || exit', *command_lines(command, ShellLine("exit 127"))])
        return Command(
            ["/bin/sh", "-c", text],
            stdin=command.stdin,
            timeout=command.timeout,
            environment={"HOME": str(self.home)},
            unset=["XDG_STATE_HOME"],
        )


@attrs.frozen
class _Cut:
    """A planned break of the connection."""

    word: str
    after: bool
    stays_down: bool


class _Listened:
    """The lines of an opened command, until the connection is cut."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines

    def __iter__(self) -> Iterator[str]:
        return iter(self._lines)

    def close(self) -> None:
        self._lines.close()


def _this_machine() -> LocalTransport:
    from jpsi_engine.host import LocalTransport  # noqa: PLC0415  nothing is imported before it is used

    return LocalTransport()


_transports: weakref.WeakValueDictionary[str, RemoteTransport] = weakref.WeakValueDictionary()


@hookimpl
def open_transport(url: str) -> Transport:
    """Return the transport with this URL."""
    known = _transports.get(url)
    return RemoteTransport(Path(url.removeprefix(_SCHEME))) if known is None else known
