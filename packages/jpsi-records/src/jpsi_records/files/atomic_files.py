"""Writes files atomically, and opens files safely whose path a job controls.

The inbox, the copies of the records and the blob store use it. It guards against half-written files after a
crash, and against links and pipes that a job puts in the place of a file.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from jpsi_engine import sync_directory, write_synced


def write_whole(path: Path, text: str) -> None:
    """Write a private file atomically and durably: after a crash it has all of the text, or does not exist.

    Raises:
        OSError: the file cannot be written; no part of it is left.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    try:
        write_synced(beside, text.encode())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def make_parent_directory(directory: Path) -> None:
    """Create a directory that others may enter but not list, so that they need to know a file's name.

    Raises:
        OSError: the directory cannot be created.
    """
    if not directory.is_dir():
        directory.parent.mkdir(mode=0o711, parents=True, exist_ok=True)
        directory.mkdir(mode=0o711, exist_ok=True)
        # mkdir applies the umask; chmod does not.
        directory.chmod(0o711)


@contextmanager
def open_untrusted(path: Path) -> Iterator[BinaryIO]:
    """Open a file whose path a job controls, for reading.

    Raises:
        OSError: it cannot be read, or is a link or another special file, such as a pipe that would block.
    """
    number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(errno.EINVAL, f"{path.name} is no file")
    with os.fdopen(number, "rb") as file:
        yield file
