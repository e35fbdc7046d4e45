"""Starts a process that has nothing of this one but its environment: a session and signals of its own.

Of the descriptors that are inherited, it keeps none that was there a second before.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from typing import Any

#: The descriptor under which the new process finds the one that it was given.
KEPT_FD = 9

_EVERY_SIGNAL = tuple(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})
_SCAN_SECONDS = 1.0


def spawn(command: list[str], keep: int) -> int:
    """Start a command in a session of its own, with /dev/null for its streams, and return its pid.

    Args:
        command: the program, by its path, and its arguments.
        keep: a descriptor that the process has as `KEPT_FD`.

    Raises:
        OSError: it could not be started.
    """
    return os.posix_spawn(
        command[0],
        command,
        _environment(),
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDWR, 0),
            (os.POSIX_SPAWN_DUP2, 0, 1),
            (os.POSIX_SPAWN_DUP2, 0, 2),
            *_closing(keep),
            (os.POSIX_SPAWN_DUP2, keep, KEPT_FD),
        ],
        setsid=True,
        setsigmask=(),
        setsigdef=_EVERY_SIGNAL,
    )


def _environment() -> Mapping[Any, str] | Mapping[Any, bytes]:
    # What os.environ itself holds, where it is what it was, is not decoded and encoded once per variable.
    return getattr(os.environ, "_data", os.environ)


_inherited: tuple[int, ...] = ()
_scanned = float("-inf")


def _closing(keep: int) -> list[tuple[int, int]]:
    """What closes the descriptors that would be inherited.

    What Python opens is never inherited; what it was started with, or a C library opened, may be. That
    changes rarely, and a process may have thousands of descriptors: they are looked at once a second.
    """
    global _inherited, _scanned  # noqa: PLW0603  a cache
    now = time.monotonic()
    if now - _scanned > _SCAN_SECONDS:
        _scanned = now
        _inherited = tuple(_inheritable())
    return [(os.POSIX_SPAWN_CLOSE, fd) for fd in _inherited if fd != keep]


def _inheritable() -> list[int]:
    found = []
    for name in os.listdir("/dev/fd"):  # noqa: PTH208  numbers, not paths
        fd = int(name)
        try:
            if fd > 2 and os.get_inheritable(fd):  # noqa: PLR2004  the standard streams
                found.append(fd)
        except OSError:
            pass  # closed since, as that of the listing itself
    return found
