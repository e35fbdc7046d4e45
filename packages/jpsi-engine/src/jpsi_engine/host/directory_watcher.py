"""Watches a directory of markers for new files, by inotify(7).

The poll loop of a batch executor and the exit watch of local jobs wait on it, so that they notice at once
that a job began or ended. Without inotify they scan the directory.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterator

# <sys/inotify.h>
_IN_MOVED_TO = 0x80
_IN_CREATE = 0x100
_IN_IGNORED = 0x8000
# struct inotify_event without the name that follows it
_EVENT = struct.Struct("iIII")


class MarkerWatch:
    """A descriptor that becomes readable when a file appears in a directory.

    Raises:
        OSError: the system has no inotify, or this user has used up its watches; scan the directory instead.
    """

    def __init__(self, directory: str) -> None:
        #: True if the directory was removed: no events follow, even if another directory takes its place.
        self.is_removed = False
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
        """Return the descriptor to wait on."""
        return self._fd

    def drain(self) -> set[str]:
        """Return the names of files that have appeared since the last call; some may be gone again.

        If very many appear at the same time, the kernel may drop some events; scan the directory to find all.
        """
        names: set[str] = set()
        try:
            while events := os.read(self._fd, 65536):
                for mask, name in _events(events):
                    self.is_removed = self.is_removed or bool(mask & _IN_IGNORED)
                    names |= {name} - {""}
        except BlockingIOError:
            pass
        return names

    def close(self) -> None:
        """Stop watching."""
        os.close(self._fd)


def _events(events: bytes) -> Iterator[tuple[int, str]]:
    offset = 0
    while offset < len(events):
        _, mask, _, length = _EVENT.unpack_from(events, offset)
        offset += _EVENT.size
        yield mask, os.fsdecode(events[offset : offset + length].rstrip(b"\0"))
        offset += length


def _last_error(directory: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number), directory)
