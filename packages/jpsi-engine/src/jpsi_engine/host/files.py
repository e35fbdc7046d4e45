"""Reads, writes and locks files of the user, which appear complete or not at all.

The spool is built on it: a process that is killed, or reads at the same time, never leaves or sees half a
file.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from jpsi_engine.host.private_files import open_private


def exists(path: str) -> bool:
    """Return True if there is such a file.

    Raises:
        OSError: the system cannot tell now.
    """
    try:
        os.stat(path)  # noqa: PTH116  text, as in the spool
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def list_names(path: str) -> list[str]:
    """Return the names in a directory; none if there is nothing at this path."""
    try:
        return os.listdir(path)  # noqa: PTH208  text, as in the spool
    except FileNotFoundError:
        return []


def read_text(path: str) -> str:
    """Return the text of a file that jpsi wrote.

    It takes a third of the time of reading with `open`, which counts for thousands of files.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is not ASCII, so jpsi did not write it.
    """
    fd = os.open(path, os.O_RDONLY)
    try:
        chunks = [os.read(fd, _CHUNK)]
        while len(chunks[-1]) == _CHUNK:
            chunks.append(os.read(fd, _CHUNK))
    finally:
        os.close(fd)
    return b"".join(chunks).decode("ascii")


_CHUNK = 1 << 15


def read_json(path: str) -> dict[str, Any] | None:
    """Return the mapping in a file; None if there is no file, or it holds something else."""
    try:
        with open(path, encoding="ascii") as file:  # noqa: PTH123
            content = json.load(file)
    except (FileNotFoundError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def write(path: str, data: bytes) -> None:
    """Write a file so that it appears complete or not at all."""
    draft_path = _write_draft(path, data)
    try:
        os.rename(draft_path, path)  # noqa: PTH104
    except BaseException:
        forget(draft_path)
        raise


def write_once(path: str, data: bytes) -> bool:
    """Write a file like `write`, unless it exists; return True if it was written."""
    draft_path = _write_draft(path, data)
    try:
        os.link(draft_path, path)
    except FileExistsError:
        return False
    finally:
        forget(draft_path)
    return True


def _write_draft(path: str, data: bytes) -> str:
    draft_path = f"{path}.{os.getpid()}.{threading.get_ident()}"
    try:
        _write_private(draft_path, os.O_TRUNC, data)
    except BaseException:
        forget(draft_path)
        raise
    return draft_path


def forget(path: str) -> None:
    """Remove a file; never raises."""
    with contextlib.suppress(OSError):
        os.unlink(path)  # noqa: PTH108


def write_new(path: str, data: bytes) -> None:
    """Write a new file that no process reads before this returns."""
    _write_private(path, os.O_EXCL, data)


def _write_private(path: str, flags: int, data: bytes) -> None:
    fd = open_private(path, os.O_WRONLY | os.O_CREAT | flags)
    try:
        write_all(fd, data)
    finally:
        os.close(fd)


def write_all(fd: int, data: bytes | memoryview) -> None:
    """Write all of the data, in as many calls as needed."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def is_transient(error: OSError) -> bool:
    """Return True if the same call may succeed later: no space, no descriptors, no processes, no memory."""
    match error.errno:
        case errno.EAGAIN | errno.EINTR | errno.EIO | errno.ESTALE | errno.ETIMEDOUT:
            return True
        case errno.EDQUOT | errno.EMFILE | errno.ENFILE | errno.ENOMEM | errno.ENOSPC:
            return True
    return False


@contextlib.contextmanager
def hold_lock(path: str, timeout_seconds: float, *, create: bool = False) -> Iterator[bool | None]:
    """Hold the lock on a file; yield what `take_lock` returns, or None if the locked file is gone.

    Args:
        path: the file.
        timeout_seconds: see `take_lock`.
        create: True to make the file if there is none.
    """
    try:
        fd = open_private(path, os.O_RDWR | (os.O_CREAT if create else 0))
    except FileNotFoundError:
        yield None
        return
    try:
        is_held = take_lock(fd, timeout_seconds)
        # a file that was removed meanwhile locks nothing, and another one may have its name
        yield None if is_held and not _is_at(path, fd) else is_held
    finally:
        # a child that was forked in the meantime has the descriptor too
        with contextlib.suppress(OSError):
            fcntl.flock(fd, fcntl.LOCK_UN)
        os.close(fd)


def _is_at(path: str, fd: int) -> bool:
    """Return True if an open file has this path."""
    try:
        return os.path.samestat(os.lstat(path), os.fstat(fd))
    except OSError as e:
        # a file server forgets a file that was removed
        if e.errno in {errno.ENOENT, errno.ESTALE}:
            return False
        raise


def is_locked(path: str) -> bool:
    """Return True if a process holds the lock on a file; calls at the same time do not see each other."""
    try:
        fd = open_private(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        # a child that was forked in the meantime has the descriptor too
        fcntl.flock(fd, fcntl.LOCK_UN)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def create_locked(path: str) -> int:
    """Make a new file, and return a descriptor that holds the lock on it."""
    fd = open_private(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
    except BaseException:
        os.close(fd)
        forget(path)
        raise
    return fd


def take_lock(
    fd: int,
    timeout_seconds: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> bool:
    """Lock an open file; return False if another process keeps the lock for `timeout_seconds`."""
    deadline = clock() + timeout_seconds
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if clock() > deadline:
                return False
            sleep(_LOCK_POLL_SECONDS)
        else:
            return True


_LOCK_POLL_SECONDS = 0.01
