"""The transport `elsewhere`: this machine as if it were another one, with another home directory."""

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
    FarDirectories,
    Lines,
    ShellLine,
    Transport,
    TransportError,
    hookimpl,
)
from jpsi.plugin.kit import command_lines, directories_command, read_directories

if TYPE_CHECKING:
    from jpsi_engine.host import LocalTransport

T = TypeVar("T")

_SCHEME = "elsewhere://"
_GONE = "the connection broke"


class ElsewhereTransport:
    """Runs commands on this machine as if it had files of its own; implements `jpsi.plugin.FileTransport`.

    It is a `LineTransport` and a `BytesTransport` as well. Commands find another home directory and begin in
    it. What is sent there and brought here is as for a machine behind ssh, so that a backend can be tested
    for that without one:

        elsewhere = ElsewhereTransport(tmp_path / "home")
        executor = JobExecutor.get_instance("slurm", url=elsewhere.url)

    A URL of this form leads to such a transport in any process; faults are those of this one.

    Args:
        home: the home directory over there; it is made.
    """

    is_local = False

    def __init__(self, home: Path) -> None:
        #: The home directory over there.
        self.home = home.absolute()
        self.home.mkdir(parents=True, exist_ok=True)
        #: What leads to this transport.
        self.url = f"{_SCHEME}{self.home}"
        #: Whether the connection is cut.
        self.is_down = False
        #: Whether something can be listened to.
        self.listens = True
        #: The words and the input of each command that was sent.
        self.sent: list[str] = []
        self._here = _this_machine()
        self._lock = threading.Lock()
        self._cuts: list[_Cut] = []
        self._open: weakref.WeakSet[_Listened] = weakref.WeakSet()
        _transports[self.url] = self

    def cut(self, word: str, *, after: bool = False, stays_down: bool = False) -> None:
        """Have the connection break at the next command in whose words or input this stands.

        Args:
            word: the word.
            after: whether the command is done by then, and only its answer is lost; it is not run otherwise.
            stays_down: whether no other connection is made until `up`.
        """
        with self._lock:
            self._cuts.append(_Cut(word, after, stays_down))

    def down(self) -> None:
        """Cut the connection until `up`; nothing can be run, and what is listened to ends."""
        self.is_down = True
        self.hang_up()

    def hang_up(self) -> None:
        """Have end what is listened to."""
        for lines in list(self._open):
            lines.close()

    def up(self) -> None:
        """Let the connection be made again."""
        self.is_down = False

    def directories(self) -> FarDirectories:
        """Where things are over there; see `jpsi.plugin.FileTransport`."""
        return read_directories(self.run(directories_command()))

    def run(
        self, command: Command, keep: int | None = None, ready: Callable[[], None] | None = None
    ) -> CommandResult:
        """Run a command; see `jpsi.plugin.Transport`."""
        del keep  # no process of this machine, as far as anybody knows
        return self._sent(command, lambda there: self._here.run(there, None, ready))

    def exchange(self, command: Command, data: bytes = b"") -> BytesResult:
        """Run a command that reads and prints bytes; see `jpsi.plugin.BytesTransport`."""
        return self._sent(command, lambda there: self._here.exchange(there, data))

    def _sent(self, command: Command, run: Callable[[Command], T]) -> T:
        cut = self._struck(command)
        if cut is not None and not cut.after:
            self.is_down = cut.stays_down
            raise TransportError(_GONE, transient=True, may_have_run=True)
        result = run(self._over_there(command))
        if cut is not None:
            self.is_down = cut.stays_down
        if cut is not None or self.is_down:
            raise TransportError(_GONE, transient=True, may_have_run=True)
        return result

    def open(self, command: Command) -> Lines:
        """Start a command that is listened to; see `jpsi.plugin.LineTransport`."""
        self._struck(command)
        if not self.listens:
            msg = "nothing can be listened to"
            raise TransportError(msg, transient=True)
        lines = _Listened(self._here.open(self._over_there(command)))
        self._open.add(lines)
        if self.is_down or not self.listens:
            # it was cut as it was opened
            lines.close()
        return lines

    def close(self) -> None:
        """Nothing is held."""

    def _struck(self, command: Command) -> _Cut | None:
        if self.is_down:
            msg = "there is no connection"
            raise TransportError(msg, transient=True)
        text = "\n".join([*command.argv, command.stdin or ""])
        with self._lock:
            self.sent.append(text)
            cut = next((it for it in self._cuts if it.word in text), None)
            if cut is not None:
                self._cuts.remove(cut)
        return cut

    def _over_there(self, command: Command) -> Command:
        if shutil.which(command.argv[0]) is None:
            msg = f"the command {command.argv[0]} was not found on PATH elsewhere"
            raise TransportError(msg)
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
    """Where a connection breaks."""

    word: str
    after: bool
    stays_down: bool


class _Listened:
    """What a command prints, until the connection is cut."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines

    def __iter__(self) -> Iterator[str]:
        return iter(self._lines)

    def close(self) -> None:
        self._lines.close()


def _this_machine() -> LocalTransport:
    from jpsi_engine.host import LocalTransport  # noqa: PLC0415  nothing is imported before it is used

    return LocalTransport()


_transports: weakref.WeakValueDictionary[str, ElsewhereTransport] = weakref.WeakValueDictionary()


@hookimpl
def open_transport(url: str) -> Transport:
    """The transport that an `elsewhere://` URL leads to."""
    known = _transports.get(url)
    return ElsewhereTransport(Path(url.removeprefix(_SCHEME))) if known is None else known
