"""Waits for the end of a child process, with a timeout."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import time

# The longest timeout of poll(2), in milliseconds.
_MAX_TIMEOUT = 2.0**31 - 1


def wait_for_exit(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Return True as soon as a process has ended, or False after so many seconds.

    `Popen.wait` with a timeout polls ever more rarely instead: it notices an end late by up to half the time
    that the process has run.
    """
    try:
        pidfd = os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        # not Linux, or before 5.3; or there are no more descriptors
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        return process.returncode is not None
    try:
        return _wait_until_readable(pidfd, seconds)
    finally:
        os.close(pidfd)


def _wait_until_readable(fd: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    deadline = time.monotonic() + seconds
    while (remaining := deadline - time.monotonic()) > 0:
        if poll.poll(min(remaining * 1000, _MAX_TIMEOUT)):
            return True
    return False
