"""The connection of this process to one address: a few channels, each for one command at a time."""

from __future__ import annotations

import os
import secrets
import threading
import time
import weakref
from collections.abc import Callable

from jpsi.plugin import BytesResult, Command, CommandResult, TransportError

from .address import Address
from .backoff import Backoff
from .openssh import connect, control_path, explain_failure, is_session_refused, shell_command
from .protocol import NOT_FOUND, Channel, LostError, Mode, RemoteLines, Request, request

# The channel of `Connection.open` is a third; some sites allow no more sessions per connection.
_CHANNELS = 2
# The number of connections that are tried if other processes use up the sessions of one.
_SLOTS = 4
_GREET_SECONDS = 30.0
# The number of attempts for a command that was certainly not run.
_TRIES = 3
_NONCE_BYTES = 16


class _FullError(Exception):
    """The remote host refuses another channel on the connection."""


class Connection:
    """Runs commands at one address. Any thread may call its methods.

    Args:
        address: the remote host.
        clock: returns the time in seconds; the backoff uses it.
    """

    def __init__(self, address: Address, clock: Callable[[], float] = time.monotonic) -> None:
        self._address = address
        self._clock = clock
        self._reset()
        _connections.add(self)

    def _reset(self) -> None:
        """Start without channels and with new locks; after a fork, the old ones belong to the parent."""
        self._channels: set[Channel] = set()
        weakref.finalize(self, _drop_all, self._channels)
        self._changed = threading.Condition()
        self._idle: list[Channel] = []
        #: The number of channels, including those that are being opened, and the largest number allowed.
        self._count, self._limit = 0, _CHANNELS
        self._connecting = threading.Lock()
        self._backoff = Backoff()
        self._slot = 0
        self._has_connected = False
        self._lines: Callable[[], RemoteLines | None] = lambda: None

    def _abandon(self) -> None:
        lines = self._lines()
        if lines is not None:
            lines.abandon()
        while self._channels:
            self._channels.pop().close()
        self._reset()

    def run(self, command: Command, ready: Callable[[], None] | None = None) -> CommandResult:
        """Run a command; see `jpsi.plugin.Transport`."""
        return self.exchange(command, ready=ready).decoded

    def exchange(
        self, command: Command, data: bytes | None = None, ready: Callable[[], None] | None = None
    ) -> BytesResult:
        """Run a command that reads `data`, or else its own `stdin`; see `jpsi.plugin.BytesTransport`."""
        for tries_left in reversed(range(_TRIES)):
            channel = self._acquire_channel()
            try:
                if ready is not None:
                    ready()
                    ready = None
                return self._run(channel, command, data)
            except LostError as e:
                if e.was_sent or not tries_left:
                    msg = f"the connection to {self._address} broke: {e.words or 'ssh has ended'}"
                    raise TransportError(msg, e, transient=True, may_have_run=e.was_sent) from e
            finally:
                self._release_channel(channel)
        raise AssertionError  # the last try has returned or raised

    def open(self, command: Command) -> RemoteLines:
        """Start a command whose output is streamed, one at a time; see `jpsi.plugin.LineTransport`."""
        with self._connecting:
            lines = self._lines()
            if lines is not None and lines.is_open:
                msg = f"a command at {self._address} is streamed already; only one command at a time can be"
                raise TransportError(msg, transient=True)
            try:
                channel = self._open_channel()
            except _FullError as e:
                msg = f"{self._address} allows no further session on one connection (MaxSessions)"
                raise TransportError(msg, e, transient=True) from e
            lines = RemoteLines(channel, request(command, _nonce(), Mode.FOLLOW))
            self._lines = weakref.ref(lines)
            return lines

    def _run(self, channel: Channel, command: Command, data: bytes | None) -> BytesResult:
        request_to_run = request(command, _nonce(), data=data)
        deadline = None if command.timeout is None else time.monotonic() + command.timeout.total_seconds()
        response = channel.exchange(request_to_run, deadline)
        if response.is_refused:
            reason = response.err.text.decode(errors="replace").strip()
            msg = f"{self._address} has no disk space for the input of {command.argv[0]}: {reason}"
            raise TransportError(msg, transient=True)
        result = response.result(timed_out=not response.is_complete)
        if _is_not_found(result, request_to_run):
            raise TransportError(f"the command {command.argv[0]} was not found on PATH at {self._address}")
        return result

    # --------------------------------------------------------------------------------------- channels

    def _acquire_channel(self) -> Channel:
        """Return a channel for exclusive use by the calling thread; wait for one if all are in use.

        Raises:
            TransportError: no channel could be opened.
        """
        while True:
            with self._changed:
                # without a deadline: the commands that hold the channels have deadlines of their own, and
                # waiting for a channel is no error
                while not self._idle and self._count >= self._limit:
                    self._changed.wait()
                if self._idle:
                    channel = self._idle.pop()
                else:
                    channel = None
                    self._count += 1
            if channel is None:
                channel = self._open_another()
            if channel is not None and channel.is_usable:
                return channel
            if channel is not None:
                self._release_channel(channel)

    def _open_another(self) -> Channel | None:
        """Open one more channel; return None if the connection allows no more."""
        try:
            with self._connecting:
                channel = self._open_channel()
        except _FullError:
            with self._changed:
                self._count -= 1
                self._limit = max(1, self._count)
            return None
        except BaseException:
            self._decrement_count()
            raise
        self._channels.add(channel)
        return channel

    def _release_channel(self, channel: Channel) -> None:
        if channel.is_usable:
            with self._changed:
                self._idle.append(channel)
                self._changed.notify()
            return
        self._channels.discard(channel)
        channel.close()
        self._decrement_count()

    def _decrement_count(self) -> None:
        with self._changed:
            self._count -= 1
            if not self._count:
                self._limit = _CHANNELS
            self._changed.notify()

    def _open_channel(self) -> Channel:
        """Open a channel, connecting first if needed; the caller holds `_connecting`."""
        seconds_left = self._backoff.seconds_left(self._clock())
        if seconds_left > 0:
            msg = f"{self._backoff.why} (jpsi tries again in {seconds_left:.0f} s)"
            raise TransportError(msg, transient=True)
        try:
            channel = self._connect_channel()
        except TransportError as e:
            self._backoff.failed(self._clock(), str(e))
            raise
        except OSError as e:
            # for example no file descriptors left, or no disk space for ssh's messages
            msg = f"this machine cannot open a connection to {self._address}: {e}"
            raise TransportError(msg, e, transient=True) from e
        self._backoff.succeeded()
        self._has_connected = True
        return channel

    def _connect_channel(self) -> Channel:
        while True:
            path = control_path(self._address, self._slot)
            # Only the first connection may prompt the user at the terminal.
            connect(self._address, path, may_prompt=not self._has_connected)
            channel = Channel(shell_command(self._address, path))
            try:
                channel.greet(_GREET_SECONDS)
            except LostError as e:
                channel.close()
                if is_session_refused(e.words) and self._channels:
                    raise _FullError from e
                if not is_session_refused(e.words) or self._slot + 1 == _SLOTS:
                    # the processes that use up the other connections may have ended by the next attempt
                    self._slot = 0
                    why = explain_failure(self._address, e.words, is_connected=True)
                    raise TransportError(why, e, transient=True) from e
                self._slot += 1
            except BaseException:
                channel.close()
                raise
            else:
                return channel


def _drop_all(channels: set[Channel]) -> None:
    """Close channels without waiting: for garbage collection, and at exit while threads still run."""
    for channel in list(channels):
        channel.drop()


def _nonce() -> str:
    return secrets.token_hex(_NONCE_BYTES)


def _is_not_found(result: BytesResult, request_to_run: Request) -> bool:
    expected = f"{request_to_run.nonce} {NOT_FOUND}".encode("ascii")
    return result.returncode == 127 and result.stdout == expected  # noqa: PLR2004  as sh has it


_connections: weakref.WeakSet[Connection] = weakref.WeakSet()


def _after_fork() -> None:
    for connection in _connections:
        connection._abandon()  # noqa: SLF001  the same module


os.register_at_fork(after_in_child=_after_fork)
