"""Runs long-lived commands on this machine and reads their output line by line."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from typing import BinaryIO, cast

from jpsi.plugin import Command, TransportError
from jpsi_engine.host.files import is_transient

# A killed process is gone at once, unless it is blocked in the kernel.
_REAP_SECONDS = 1.0


class ProcessLines:
    """The output lines of one process; implements `jpsi.plugin.Lines`.

    The process runs in a session of its own; `close` kills the whole session.
    """

    def __init__(self, command: Command, environment: Mapping[str, str]) -> None:
        data = b"" if command.stdin is None else command.stdin.encode(errors="surrogateescape")
        try:
            self._process = subprocess.Popen(  # noqa: S603  a command that a hook made
                command.argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                start_new_session=True,
            )
        except OSError as e:
            msg = f"the command {command.argv[0]} could not be run: {e}"
            raise TransportError(msg, e, transient=is_transient(e)) from e
        self._owner = os.getpid()
        self._lock = threading.Lock()
        with contextlib.suppress(OSError), cast("BinaryIO", self._process.stdin) as stdin:
            stdin.write(data)

    def __iter__(self) -> Iterator[str]:
        """Yield the lines, without their ends, until the process closes its output."""
        try:
            with cast("BinaryIO", self._process.stdout) as stdout:
                for line in stdout:
                    yield line.decode(errors="replace").rstrip("\n")
        finally:
            self.close()
            if os.getpid() == self._owner:
                with self._lock, contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(_REAP_SECONDS)

    def close(self) -> None:
        """Kill the process and its children; does nothing in a forked child.

        The thread that reads the lines waits for the end of the process. The garbage collector may call this
        method, in any thread at any time, so it never waits and takes no lock that is held.
        """
        if os.getpid() == self._owner and self._lock.acquire(blocking=False):
            try:
                if self._process.poll() is None:
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.killpg(self._process.pid, signal.SIGKILL)
            finally:
                self._lock.release()
