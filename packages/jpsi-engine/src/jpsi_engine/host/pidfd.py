"""Opens pidfds (pidfd_open(2)) and reads through them how processes ended.

The exit watch of local jobs and the local transport wait on them. Unlike a pid, a pidfd never means another
process that got the same number later.
"""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import struct

# linux/pidfd.h: PIDFD_GET_INFO = _IOWR(0xFF, 11, struct pidfd_info), with the exit code since Linux 6.15
_PIDFD_GET_INFO = (3 << 30) | (64 << 16) | (0xFF << 8) | 11
_PIDFD_INFO_SIZE = 64
_PIDFD_INFO_EXIT = 1 << 3
_EXIT_CODE_OFFSET = 60
_KIBIBYTE = 1024


def open_pidfd(pid: int) -> int:
    """Return a descriptor that becomes readable when the process that has this pid now ends.

    Raises:
        ProcessLookupError: there is no such process.
        OSError: this system has no pidfds, or there is no descriptor left for one.
    """
    if not hasattr(os, "pidfd_open"):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    return os.pidfd_open(pid)


def reap(fd: int) -> tuple[int, int | None] | None:
    """Reap an ended child; return its status, as wait(2) reports it, and its peak memory in bytes.

    The memory is that of the largest process that it was or waited for; None if that was no larger than this
    process, from which Linux counts a part until the child has executed its program. The result is None if
    the child has not ended yet, or is not one.
    """
    try:
        ended = os.waitid(os.P_PIDFD, fd, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is None:
            return None
        # Only wait4(2) reports the memory. No other process gets this pid before the child is reaped.
        pid, status, used = os.wait4(ended.si_pid, os.WNOHANG)
    except ChildProcessError:
        return None  # the application collects every child, or ignores SIGCHLD
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return (status, used.ru_maxrss * _KIBIBYTE if used.ru_maxrss > own else None) if pid else None


def wait_status(fd: int) -> int | None:
    """Return the status of an ended process, as wait(2) reports it; None if it is unknown, or not ended yet.

    A child has to be reaped before.
    """
    info = bytearray(_PIDFD_INFO_SIZE)
    struct.pack_into("Q", info, 0, _PIDFD_INFO_EXIT)
    try:
        fcntl.ioctl(fd, _PIDFD_GET_INFO, info)
    except OSError:
        return None  # Linux < 6.15
    if not struct.unpack_from("Q", info, 0)[0] & _PIDFD_INFO_EXIT:
        return None
    status: int = struct.unpack_from("i", info, _EXIT_CODE_OFFSET)[0]
    return status


def max_pidfds() -> int:
    """Return how many descriptors jpsi may use for processes; the rest are left to the application."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return 1 << 20
    return max(soft - 256, soft // 2)
