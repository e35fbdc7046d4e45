"""Waits for the end of a process of one's own, for some time at most."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import time

# poll(2) takes no longer time, in milliseconds.
_LONGEST = 2.0**31 - 1


def ends_within(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Whether a process has ended when the time is up; returns as soon as it has.

    `Popen.wait` with a time limit looks ever more rarely instead: it hears of an end by half as late as the
    process has run.
    """
    try:
        ended = os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        # not Linux, or before 5.3; or there are no more descriptors
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        return process.returncode is not None
    try:
        return _is_readable_within(ended, seconds)
    finally:
        os.close(ended)


def _is_readable_within(fd: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        if poll.poll(min(left * 1000, _LONGEST)):
            return True
    return False
