"""Locks files, so that two processes do not have the same calls made."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from jpsi import ConfigError
from jpsi_engine import open_private

# flock of NFS without a lock daemon, of Lustre without the mount option `flock`, and of others
_NO_LOCKS = {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS}


def lock_file(path: Path) -> int:
    """Lock a file, which is made if it is not there; return the descriptor that holds the lock.

    Raises:
        BlockingIOError: another process holds the lock.
        ConfigError: the file system has no locks.
    """
    fd = open_private(path, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as e:
        os.close(fd)
        if e.errno not in _NO_LOCKS:
            raise
        msg = f"the file system of {path.parent} has no locks (flock: {os.strerror(e.errno)}), without which"
        raise ConfigError(
            f"{msg} another process could have the same calls made again; name a directory on another file "
            "system with folder=, or with work_directory in the configuration"
        ) from e
    return fd


def unlock(fd: int) -> None:
    """Release a lock, which a child that was forked meanwhile has as well, and close its descriptor."""
    with contextlib.suppress(OSError):
        fcntl.flock(fd, fcntl.LOCK_UN)
    os.close(fd)


@contextlib.contextmanager
def hold_lock(path: Path) -> Iterator[bool]:
    """Hold the lock on a file within the context; yield False if another process holds it."""
    try:
        fd = lock_file(path)
    except BlockingIOError:
        yield False
        return
    try:
        yield True
    finally:
        unlock(fd)
