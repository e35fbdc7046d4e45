"""Files of this machine that come piece by piece: beside their target, until they take its place."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
from collections.abc import Iterator

import attrs

from jpsi.plugin.kit import open_private
from jpsi_engine.host import failed_here, forget, take_lock, write_all

_NAME_LENGTH = 16
_NONCE_BYTES = 4


def part_of(target: str) -> str:
    """Where a file is until it is whole: the same place each time, so that what came is found again."""
    folder, _, name = target.rpartition("/")
    digest = hashlib.sha256(name.encode(errors="surrogateescape")).hexdigest()
    return f"{folder}/.jpsi-{digest[:_NAME_LENGTH]}.part"


@attrs.frozen(slots=True)
class Part:
    """A file until it is whole; nobody else writes to it meanwhile."""

    fd: int
    path: str


@contextlib.contextmanager
def opened_part(target: str) -> Iterator[Part]:
    """The part of a target, which is at its end, with what came of it before.

    Where somebody else is getting the same target, it is an empty one, of which nothing is left if it does
    not become whole.

    Raises:
        TransferError: it cannot be written; or an `OSError` was raised inside.
    """
    part = None
    try:
        os.makedirs(target.rpartition("/")[0] or "/", exist_ok=True)  # noqa: PTH103  text
        if os.path.isdir(target):  # noqa: PTH112
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        part = _own(part_of(target))
        yield part
    except OSError as e:
        raise failed_here(target, "written", e) from e
    finally:
        if part is not None:
            os.close(part.fd)
            if part.path != part_of(target):
                forget(part.path)


def append(part: Part, data: bytes | memoryview) -> None:
    """Write what comes next."""
    write_all(part.fd, data)


def complete(part: Part, target: str, mode: int) -> None:
    """Have a part take the place of its target, with this mode."""
    os.fchmod(part.fd, mode)
    os.replace(part.path, target)  # noqa: PTH105


def _own(path: str) -> Part:
    fd = _opened(path)
    if _is_locked(fd) and _is_at(fd, path):
        return Part(fd, path)
    os.close(fd)
    path = f"{path}.{secrets.token_hex(_NONCE_BYTES)}"
    return Part(_made(path), path)


def _is_locked(fd: int) -> bool:
    """Lock it for this one; false where somebody else has, or nobody can."""
    try:
        return take_lock(fd, 0.0)
    except OSError:
        return False


def _is_at(fd: int, path: str) -> bool:
    """Whether nobody has completed it since it was opened."""
    try:
        return os.path.samestat(os.fstat(fd), os.lstat(path))
    except FileNotFoundError:
        return False


def _opened(part: str) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
    try:
        fd = open_private(part, flags)
    except OSError:
        # a link, say, which somebody else may have put there
        return _made(part)
    if os.fstat(fd).st_nlink == 1:
        return fd
    os.close(fd)
    return _made(part)


def _made(part: str) -> int:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(part)  # noqa: PTH108
    return open_private(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND)
