"""Files between processes that know nothing of each other: they appear whole, and nothing else is read."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def write_whole(path: Path, text: str) -> None:
    """Let a private file appear with a text: all of it, and for good, or nothing.

    Raises:
        OSError: it cannot be written; nothing is left of it.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    number = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    keep_names(path.parent)


def make_way(directory: Path) -> None:
    """Make a directory in which others find what they know the name of, and list nothing.

    Raises:
        OSError: it cannot be made.
    """
    if not directory.is_dir():
        directory.parent.mkdir(mode=0o711, parents=True, exist_ok=True)
        directory.mkdir(mode=0o711, exist_ok=True)
        # whatever the umask
        directory.chmod(0o711)


def keep_names(directory: Path) -> None:
    """See to it that the names in a directory outlast a crash of the machine."""
    number = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(number)
    finally:
        os.close(number)


@contextmanager
def open_untrusted(path: Path) -> Iterator[BinaryIO]:
    """A file for reading that a job has left, who decides what lies there.

    Raises:
        OSError: it cannot be read, is a link to another file, or no file, such as a pipe that says nothing.
    """
    number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(errno.EINVAL, f"{path.name} is no file")
    with os.fdopen(number, "rb") as file:
        yield file
