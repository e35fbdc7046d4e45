"""Starts a process in a session of its own, with default signal handling and this process's environment.

It inherits no descriptor that was open and inheritable at the last scan, at most a second ago.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from jpsi_engine.host import ProcessId, child_environment
from jpsi_engine.local import watchdog

log = logging.getLogger(__name__)

#: The number of the one descriptor that the new process is given.
INHERITED_FD = watchdog.RUNNER_FD

_EVERY_SIGNAL = tuple(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})
_SCAN_SECONDS = 1.0


def spawn(command: list[str], inherited_fd: int, variables: Mapping[bytes, bytes] | None = None) -> int:
    """Start a command in a session of its own, with /dev/null for its streams, and return its pid.

    Args:
        command: the program, by its path, and its arguments.
        inherited_fd: a descriptor that the process gets as `INHERITED_FD`.
        variables: what its environment has besides.

    Raises:
        OSError: the process could not be started.
    """
    inherited: Any = child_environment()
    # the bytes that os.environ holds inside, if it still does: saves decoding and encoding every one
    environment = getattr(inherited, "_data", inherited)
    return os.posix_spawn(
        command[0],
        command,
        {**environment, **variables} if variables else environment,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDWR, 0),
            (os.POSIX_SPAWN_DUP2, 0, 1),
            (os.POSIX_SPAWN_DUP2, 0, 2),
            *_close_actions(inherited_fd),
            (os.POSIX_SPAWN_DUP2, inherited_fd, INHERITED_FD),
        ],
        setsid=True,
        setsigmask=(),
        setsigdef=_EVERY_SIGNAL,
    )


def spawn_detached(words: list[str], fd: int, variables: Mapping[bytes, bytes] | None = None) -> None:
    """Start a program that is no child of this process, which need not wait for it; see `spawn`.

    A shell starts it, and ends at once. So the program becomes a zombie of this process only if this is the
    first one of a container. The shell of the configuration might read the user's profile first.
    """
    started = spawn(["/bin/sh", "-c", '"$@" &', "sh", *words], fd, variables)
    # the application may have waited for it, or ignore SIGCHLD
    with contextlib.suppress(ChildProcessError):
        os.waitpid(started, 0)


def spawn_watchdog(process: ProcessId, duration: timedelta, kill_delay: timedelta, stop_file: str) -> None:
    """Start a program that ends a job at its time limit, even if this process has ended by then.

    It needs descriptors of processes, which Linux has. Without it, the clients that follow the job end it.
    """
    try:
        runner = os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        return
    try:
        # the executable of a frozen application is not Python
        if not process.is_alive() or not sys.executable or hasattr(sys, "frozen"):
            return
        limits = [str(duration.total_seconds()), str(kill_delay.total_seconds())]
        python = [sys.executable, "-I", "-S", watchdog.__file__]
        spawn_detached([*python, *limits, stop_file, str(process.pid), str(process.start)], runner)
    except OSError:
        log.warning("%s: the program that enforces this time limit did not start", stop_file, exc_info=True)
    finally:
        os.close(runner)


_inherited: tuple[int, ...] = ()
_scanned = float("-inf")


def _close_actions(inherited_fd: int) -> list[tuple[int, int]]:
    """Return the file actions that close inheritable descriptors.

    Descriptors that Python opens are never inherited; those that it was started with, or that a C library
    opened, may be. They change rarely, and a process may have thousands of descriptors, so they are scanned
    at most once a second.
    """
    global _inherited, _scanned  # noqa: PLW0603  a cache
    now = time.monotonic()
    if now - _scanned > _SCAN_SECONDS:
        _scanned = now
        _inherited = tuple(_inheritable())
    return [(os.POSIX_SPAWN_CLOSE, fd) for fd in _inherited if fd != inherited_fd]


def _inheritable() -> list[int]:
    found = []
    for name in os.listdir("/dev/fd"):  # noqa: PTH208  numbers, not paths
        fd = int(name)
        try:
            if fd > 2 and os.get_inheritable(fd):  # noqa: PLR2004  the standard streams
                found.append(fd)
        except OSError:
            pass  # closed since, like the descriptor of the listing itself
    return found
