"""Channels to a shell on the remote host: each is one process of the OpenSSH client, with its streams."""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
import secrets
import select
import subprocess
import time
from collections.abc import Callable, Iterator

from .remote_shell import program
from .requests import Request
from .responses import Response

_SIZE = 1 << 18
# The requested capacity of a pipe, on systems that can set it; with a small one, transfers take many steps.
_PIPE_SIZE = 1 << 20
_NONCE_BYTES = 16
# The wait after an abort. The remote command ends at once, unless the network delivers nothing.
_END_SECONDS = 1.0
_REAP_SECONDS = 1.0
# Client processes that were killed and not reaped yet.
_ending: list[subprocess.Popen[bytes]] = []
# A line that is no request: it ends the running command and the shell.
_ABORT = b"end\n"


class LostError(Exception):
    """The channel has failed and cannot be used any more.

    Args:
        words: ssh's messages.
        was_sent: True if the request may have been executed.
    """

    def __init__(self, words: str, *, was_sent: bool) -> None:
        super().__init__(words)
        self.words = words
        self.was_sent = was_sent


class Channel:
    """A channel to a shell on the remote host. One thread at a time may use it.

    Args:
        command: the command line that starts the shell.

    Raises:
        OSError: the command could not be started.
    """

    def __init__(self, command: list[str]) -> None:
        _reap_ended_clients()
        self._process = subprocess.Popen(  # noqa: S603  no shell of this machine takes part
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        self._owner = os.getpid()
        self._stdin, self._stdout, self._stderr = (
            stream.fileno()
            for stream in (self._process.stdin, self._process.stdout, self._process.stderr)
            if stream is not None
        )
        for fd in (self._stdin, self._stdout, self._stderr):
            os.set_blocking(fd, False)
            _widen(fd)
        self._open = {self._stdout, self._stderr}
        self._is_spent = False

    def greet(self, seconds: float) -> None:
        """Send the shell its program and wait until it is ready for requests.

        Raises:
            LostError: the shell did not get ready within `seconds`.
        """
        nonce = secrets.token_hex(_NONCE_BYTES)
        ready = f"\n{nonce} ready\n".encode("ascii")
        out, err = bytearray(), bytearray()

        def on_data(fd: int, data: bytes) -> None:
            (out if fd == self._stdout else err).extend(data)

        self._converse(program(nonce), on_data, lambda: ready in out, time.monotonic() + seconds)
        if ready not in out:
            words = (bytes(err) + b"\n" + bytes(out)).decode(errors="replace").strip()
            if self._stdout in self._open:
                words = f"no response in {seconds:.0f} seconds {words}"
            raise LostError(words, was_sent=False)

    @property
    def is_usable(self) -> bool:
        """True if the shell is still connected, as far as this process can see."""
        self._converse(b"", _ignored, lambda: False, time.monotonic())
        return self._stdout in self._open and not self._is_spent

    def exchange(self, request: Request, deadline: float | None) -> Response:
        """Send a request and return the response.

        At the deadline, the command is aborted and the response is incomplete.

        Raises:
            LostError: the shell ended before the response was complete.
        """
        response = Response.for_nonce(request.nonce)

        def on_data(fd: int, data: bytes) -> None:
            (response.out if fd == self._stdout else response.err).feed(data)

        self._is_spent = True
        try:
            unsent = self._converse(request.sent, on_data, lambda: response.is_complete, deadline)
        except BaseException:
            self._abort(_ignored)
            raise
        if response.is_complete:
            self._is_spent = response.is_refused
            return response
        if self._stdout in self._open:
            self._abort(on_data)
            return response
        raise LostError(response.words, was_sent=not unsent)

    def listen(self, request: Request) -> Iterator[bytes]:
        """Send a request and yield its output as it arrives, until the shell's output ends."""
        received: list[bytes] = []

        def on_data(fd: int, data: bytes) -> None:
            if fd == self._stdout:
                received.append(data)

        data = request.sent
        while self._stdout in self._open:
            unsent = self._converse(data, on_data, lambda: bool(received), None)
            data = data[len(data) - unsent :]
            yield b"".join(received)
            received.clear()

    def _abort(self, on_data: Callable[[int, bytes], None]) -> None:
        """End the running command; read for up to `_END_SECONDS`, but do not require a response."""
        self._converse(_ABORT, on_data, lambda: False, time.monotonic() + _END_SECONDS)

    def _converse(
        self,
        data: bytes,
        on_data: Callable[[int, bytes], None],
        is_done: Callable[[], bool],
        deadline: float | None,
    ) -> int:
        """Send and receive at the same time; return the number of bytes that were not sent.

        It returns when `is_done` does, when both streams have ended, or at the deadline.
        """
        unsent = memoryview(data)
        can_send = True
        while self._open and not is_done():
            if self._stdout not in self._open:
                # read ssh's last messages, but not for long: another process may keep the stream open
                last = time.monotonic() + _END_SECONDS
                deadline = last if deadline is None else min(deadline, last)
            ready = self._wait(deadline, sends=bool(unsent) and can_send)
            if not ready:
                break
            for fd in ready:
                if fd != self._stdin:
                    self._receive(fd, on_data)
                elif (written := _write(fd, unsent[:_SIZE])) is None:
                    can_send = False
                else:
                    unsent = unsent[written:]
            if deadline is not None and time.monotonic() > deadline:
                break
        return len(unsent)

    def _receive(self, fd: int, on_data: Callable[[int, bytes], None]) -> None:
        received = _read(fd)
        if received:
            on_data(fd, received)
        elif received is not None:
            self._open.discard(fd)

    def _wait(self, deadline: float | None, *, sends: bool) -> list[int]:
        poll = select.poll()
        for fd in self._open:
            poll.register(fd, select.POLLIN)
        if sends:
            poll.register(self._stdin, select.POLLOUT)
        seconds = None if deadline is None else max(0.0, deadline - time.monotonic())
        return [fd for fd, _ in poll.poll(None if seconds is None else math.ceil(seconds * 1000))]

    def kill(self) -> None:
        """Kill the client process; any thread may call this at any time. A forked child does nothing."""
        if os.getpid() == self._owner:
            self._process.kill()

    def close(self) -> None:
        """Kill the client, wait for it and close its streams; a forked child only closes the streams."""
        if os.getpid() == self._owner:
            self.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_REAP_SECONDS)
        self.drop()

    def drop(self) -> None:
        """Close the channel without waiting: garbage collection may run this in any thread at any time."""
        if os.getpid() != self._owner:
            self._process.returncode = 0
        elif self._process.returncode is None:
            self.kill()
            _ending.append(self._process)
        self._open.clear()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()


def _reap_ended_clients() -> None:
    for process in list(_ending):
        if process.poll() is not None:
            # another thread may have removed it first
            with contextlib.suppress(ValueError):
                _ending.remove(process)


def _widen(fd: int) -> None:
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with contextlib.suppress(OSError):
            fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, _PIPE_SIZE)


def _read(fd: int) -> bytes | None:
    """Return the bytes that have arrived, None if there are none yet, b"" at the end of the stream."""
    try:
        return os.read(fd, _SIZE)
    except BlockingIOError:
        return None
    except OSError:
        return b""


def _write(fd: int, data: memoryview) -> int | None:
    """Return the number of bytes that could be written now; None if the stream is closed."""
    try:
        return os.write(fd, data)
    except BlockingIOError:
        return 0
    except OSError:
        return None


def _ignored(_fd: int, _data: bytes) -> None:
    """Discard the data."""
