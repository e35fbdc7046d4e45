"""Tells that something was put into a directory of markers: by inotify(7), where the system has it."""

from __future__ import annotations

import ctypes
import os

# <sys/inotify.h>
_IN_MOVED_TO = 0x80
_IN_CREATE = 0x100


class MarkerWatch:
    """A descriptor that becomes readable when a file appears in a directory.

    Raises:
        OSError: the system has no inotify, or no more of it for this user; scan the directory instead.
    """

    def __init__(self, directory: str) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        if not hasattr(libc, "inotify_init1"):
            raise OSError(0, "this system has no inotify")
        self._fd: int = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._fd < 0:
            raise _last_error(directory)
        mask = _IN_CREATE | _IN_MOVED_TO
        if libc.inotify_add_watch(self._fd, os.fsencode(directory), mask) < 0:
            error = _last_error(directory)
            self.close()
            raise error

    def fileno(self) -> int:
        """The descriptor to wait on."""
        return self._fd

    def drain(self) -> None:
        """Forget what was announced so far; the directory itself says what there is."""
        try:
            while os.read(self._fd, 65536):
                pass
        except BlockingIOError:
            pass

    def close(self) -> None:
        """Stop watching."""
        os.close(self._fd)


def _last_error(directory: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number), directory)
