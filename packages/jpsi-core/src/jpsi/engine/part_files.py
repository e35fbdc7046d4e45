"""Files of this machine that come piece by piece: beside their target, until they take its place."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Iterator

from jpsi.engine.file_errors import failed_here
from jpsi.engine.files import PRIVATE_FILE, write_all

_NAME_LENGTH = 16


def part_of(target: str) -> str:
    """Where a file is until it is whole: the same place each time, so that what came is found again."""
    folder, _, name = target.rpartition("/")
    digest = hashlib.sha256(name.encode(errors="surrogateescape")).hexdigest()
    return f"{folder}/.jpsi-{digest[:_NAME_LENGTH]}.part"


@contextlib.contextmanager
def opened_part(target: str) -> Iterator[int]:
    """The descriptor of the part of a target, which is at its end, with what came of it before.

    Raises:
        TransferError: it cannot be written; or an `OSError` was raised inside.
    """
    fd = -1
    try:
        os.makedirs(target.rpartition("/")[0] or "/", exist_ok=True)  # noqa: PTH103  text
        if os.path.isdir(target):  # noqa: PTH112
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        fd = _opened(part_of(target))
        yield fd
    except OSError as e:
        raise failed_here(target, "written", e) from e
    finally:
        if fd >= 0:
            os.close(fd)


def append(fd: int, data: bytes | memoryview) -> None:
    """Write what comes next."""
    write_all(fd, data)


def complete(fd: int, target: str, mode: int) -> None:
    """Have a part take the place of its target, with this mode."""
    os.fchmod(fd, mode)
    os.replace(part_of(target), target)  # noqa: PTH105


def _opened(part: str) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        fd = os.open(part, flags, PRIVATE_FILE)
    except OSError:
        # a link, say, which somebody else may have put there
        return _made(part)
    found = os.fstat(fd)
    if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and found.st_nlink == 1:
        return fd
    os.close(fd)
    return _made(part)


def _made(part: str) -> int:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(part)  # noqa: PTH108
    return os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, PRIVATE_FILE)
