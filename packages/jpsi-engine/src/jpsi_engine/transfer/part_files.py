"""Writes part files on this machine: files beside their target, which they replace when they are complete.

All copies to this machine use it. No reader sees half a file, and an interrupted transfer is resumed.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
from collections.abc import Iterator

import attrs

from jpsi_engine.host import forget, local_file_error, open_private, take_lock, write_all

_NAME_LENGTH = 16
_NONCE_BYTES = 4


def part_path(target: str) -> str:
    """Return the path of a target's part file; it is always the same, so that a transfer can be resumed."""
    folder, _, name = target.rpartition("/")
    digest = hashlib.sha256(name.encode(errors="surrogateescape")).hexdigest()
    return f"{folder}/.jpsi-{digest[:_NAME_LENGTH]}.part"


@attrs.frozen(slots=True)
class PartFile:
    """An open part file; no other process writes to it."""

    fd: int
    path: str


@contextlib.contextmanager
def open_part_file(target: str) -> Iterator[PartFile]:
    """Open the part file of a target, with the data of an interrupted transfer, and yield it.

    If another process transfers the same target, the part is a new, empty file, which is removed unless it
    becomes complete.

    Raises:
        TransferError: the file cannot be written, or the body raised an `OSError`.
    """
    part = None
    try:
        os.makedirs(target.rpartition("/")[0] or "/", exist_ok=True)  # noqa: PTH103  text
        if os.path.isdir(target):  # noqa: PTH112
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        part = _lock_part(part_path(target))
        yield part
    except OSError as e:
        raise local_file_error(target, "written", e) from e
    finally:
        if part is not None:
            os.close(part.fd)
            if part.path != part_path(target):
                forget(part.path)


def append(part: PartFile, data: bytes | memoryview) -> None:
    """Append data to a part file."""
    write_all(part.fd, data)


def complete(part: PartFile, target: str, mode: int) -> None:
    """Give a part file its mode, and rename it to its target."""
    os.fchmod(part.fd, mode)
    os.replace(part.path, target)  # noqa: PTH105


def _lock_part(path: str) -> PartFile:
    fd = _open_part(path)
    # another process may have the lock, or have completed or replaced the file, or there are no locks
    with contextlib.suppress(OSError):
        if take_lock(fd, 0.0) and os.path.samestat(os.fstat(fd), os.lstat(path)):
            return PartFile(fd, path)
    os.close(fd)
    path = f"{path}.{secrets.token_hex(_NONCE_BYTES)}"
    return PartFile(_create_part(path), path)


def _open_part(part: str) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
    try:
        fd = open_private(part, flags)
    except OSError:
        # for example a link, which another user may have made
        return _create_part(part)
    if os.fstat(fd).st_nlink == 1:
        return fd
    os.close(fd)
    return _create_part(part)


def _create_part(part: str) -> int:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(part)  # noqa: PTH108
    return open_private(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND)
