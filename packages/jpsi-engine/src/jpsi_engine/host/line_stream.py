"""Long-lived commands of this machine, whose output is read line by line while they run."""

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

# A process that was killed is gone at once, unless the kernel is busy with it.
_REAP_SECONDS = 1.0


class ProcessLines:
    """What one process prints; implements `jpsi.plugin.Lines`.

    The process is a session of its own, all of which ends when this is closed.
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
        """The lines, without their ends, until the process closes its output."""
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
        """Kill the process and what it has started; does nothing in a forked child.

        Whoever reads the lines waits for its end: this may be called while garbage is collected, in a
        thread that is at anything, so it waits for nobody and takes no lock that is held.
        """
        if os.getpid() == self._owner and self._lock.acquire(blocking=False):
            try:
                if self._process.poll() is None:
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.killpg(self._process.pid, signal.SIGKILL)
            finally:
                self._lock.release()
