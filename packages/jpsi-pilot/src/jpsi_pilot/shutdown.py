"""Ends the agent of a work directory whose pilots are not needed any more.

A group of jpsi-jobspec that uses several nodes calls it at its end, so that its pilot does not stay idle.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import socket
from pathlib import Path

from .client import LOCK, agent_directory


def leave(work_directory: Path) -> None:
    """End the agent of a work directory, if there is one on this machine; return at once.

    Its pilots then take no more jobs, and end when no job runs in them any more.
    """
    with (
        contextlib.suppress(OSError, ValueError),
        Path(agent_directory(str(work_directory)), LOCK).open() as lock,
    ):
        pid, _, host = lock.read().strip().partition(" ")
        if host == socket.gethostname() and _is_held(lock.fileno()):
            os.kill(int(pid), signal.SIGTERM)


def _is_held(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False
