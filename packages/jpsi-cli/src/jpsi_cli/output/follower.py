"""Follows the output of a job: copies its bytes, unchanged, to a stream of this process.

`jpsi run` and `jpsi logs -f` use it. The output file may be on a remote host, be truncated, or grow for ever.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable

import jpsi

# The largest number of bytes in one read.
_CHUNK = 1 << 18
# The least and most seconds between two reads: of a local file (True), and of a remote one. The pauses grow
# while a job writes nothing, so that it costs nothing; users do not notice the delay.
_PAUSES = {True: (0.005, 0.08), False: (0.2, 1.0)}
# How long to retry reading the end of a remote file if the connection may come back.
_RETRY_SECONDS = 30.0


class Follower:
    """A thread that copies the output of a job, as it grows, to a file descriptor.

    The file need not exist yet. When it is truncated, it is copied from its beginning again.
    """

    def __init__(
        self, output: jpsi.Output, fd: int, failed: Callable[[OSError], None], offset: int = 0
    ) -> None:
        """Prepare; the thread calls `failed` if the descriptor cannot be written to.

        Args:
            output: the output.
            fd: the descriptor.
            failed: called with the error of the descriptor.
            offset: the number of bytes at the beginning of the file that are left out.
        """
        self.output = output
        self.fd = fd
        #: True if the last byte that was copied was not the end of a line.
        self.is_mid_line = False
        #: After `finish`: why the file could not be read to its end; None if it was.
        self.unreadable: jpsi.JpsiError | None = None
        self._failed = failed
        self._offset = offset
        self._is_final = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"jpsi-follow-{fd}", daemon=True)

    def start(self) -> None:
        """Begin to copy."""
        self._thread.start()

    def finish(self) -> None:
        """Copy the rest of the file, as long as it is now, and stop."""
        self._is_final.set()
        self._thread.join()

    def _run(self) -> None:
        shortest, longest = _PAUSES[self.output.is_local]
        delay = 0.0
        try:
            while not self._is_final.wait(delay):
                count = self._copy()
                quiet = shortest if count else min(delay * 2 or shortest, longest)
                delay = 0.0 if count == _CHUNK else quiet
            self._copy_rest()
        except _RefusedError as e:
            self._failed(e.error)

    def _copy(self) -> int:
        try:
            part = self.output.read(self._offset, _CHUNK)
        except jpsi.JpsiError:
            # The next read may succeed; `_copy_rest` reports errors.
            return 0
        return 0 if part is None else self._write_part(part)

    def _copy_rest(self) -> None:
        # No further than the present end: background processes of the job may write for ever.
        end: int | None = None
        deadline = time.monotonic() + (0.0 if self.output.is_local else _RETRY_SECONDS)
        while end is None or self._offset < end:
            limit = _CHUNK if end is None else min(_CHUNK, end - self._offset)
            try:
                part = self.output.read(self._offset, limit)
            except jpsi.SubmitException as e:
                if e.transient and time.monotonic() < deadline:
                    time.sleep(_PAUSES[False][1])
                    continue
                self.unreadable = e
                return
            if part is None or not self._write_part(part):
                return
            end = part.size if end is None else end

    def _write_part(self, part: jpsi.OutputPart) -> int:
        self._offset = part.offset
        self._write(part.data)
        return len(part.data)

    def _write(self, data: bytes) -> None:
        remaining = memoryview(data)
        while remaining:
            try:
                remaining = remaining[os.write(self.fd, remaining) :]
            except BlockingIOError:
                # The creator of the descriptor made it non-blocking.
                select.select([], [self.fd], [])
            except OSError as e:
                raise _RefusedError(e) from e
        if data:
            self._offset += len(data)
            self.is_mid_line = not data.endswith(b"\n")


class _RefusedError(Exception):
    """The descriptor cannot be written to. It is no OSError, to distinguish it from errors of the file."""

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error
