"""Following a file that grows: its bytes, unchanged, on one of our own streams."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable
from pathlib import Path

_CHUNK = 1 << 18
# The next look at a file that was quiet comes later and later: nobody sees the difference to at once, and
# a job that writes nothing costs nothing.
_SHORTEST_SECONDS, _LONGEST_SECONDS = 0.005, 0.08


class Follower:
    """Copies what is in a file, and what is appended to it, to a file descriptor, on a thread of its own.

    The file need not exist yet. When it is truncated it is copied from its beginning again.
    """

    def __init__(self, path: Path, fd: int, failed: Callable[[OSError], None]) -> None:
        """Prepare; `failed` is called from the thread if the descriptor takes no more."""
        self.path = path
        self.fd = fd
        #: Whether the last thing that was copied was not the end of a line.
        self.is_mid_line = False
        #: Why not all of the file could be read, after `finish`.
        self.unreadable: OSError | None = None
        self._failed = failed
        self._offset = 0
        self._is_final = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"jpsi-follow-{fd}", daemon=True)

    def start(self) -> None:
        """Begin to copy."""
        self._thread.start()

    def finish(self) -> None:
        """Copy all that the file holds at this moment, if it was not copied yet, and stop."""
        self._is_final.set()
        self._thread.join()

    def _run(self) -> None:
        source, delay = None, 0.0
        try:
            while not self._is_final.wait(delay):
                source = source if source is not None else _opened(self.path)
                count = 0 if source is None else self._copy(source, _CHUNK)
                if count == _CHUNK:
                    delay = 0.0
                else:
                    delay = (
                        _SHORTEST_SECONDS if count else min(delay * 2 or _SHORTEST_SECONDS, _LONGEST_SECONDS)
                    )
            self._copy_rest()
        except _RefusedError as e:
            self._failed(e.error)
        finally:
            if source is not None:
                os.close(source)

    def _copy(self, source: int, most: int) -> int:
        try:
            if os.fstat(source).st_size < self._offset:
                self._offset = 0
            data = os.pread(source, most, self._offset)
        except OSError:
            # A network filesystem may know better next time; what counts is `_copy_rest`.
            return 0
        self._write(data)
        return len(data)

    def _copy_rest(self) -> None:
        # Opened anew: NFS promises to know the file's true size only then. No further than that: what a job
        # left in the background may write for ever.
        try:
            with self.path.open("rb", buffering=0) as file:
                end = os.fstat(file.fileno()).st_size
                self._offset = self._offset if self._offset <= end else 0
                while self._offset < end:
                    data = os.pread(file.fileno(), min(_CHUNK, end - self._offset), self._offset)
                    if not data:
                        break
                    self._write(data)
        except FileNotFoundError:
            pass
        except OSError as e:
            self.unreadable = e

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            try:
                left = left[os.write(self.fd, left) :]
            except BlockingIOError:
                # Whoever gave us the descriptor made it non-blocking.
                select.select([], [self.fd], [])
            except OSError as e:
                raise _RefusedError(e) from e
        if data:
            self._offset += len(data)
            self.is_mid_line = not data.endswith(b"\n")


class _RefusedError(Exception):
    """The descriptor takes no more; not an OSError, so that it is not taken for one of the file."""

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error


def _opened(path: Path) -> int | None:
    try:
        return os.open(path, os.O_RDONLY)
    except OSError:
        return None
