"""Makes directories and files that only the user can access: modes 0700 and 0600, whatever the umask is.

Everything that jpsi keeps on disk is made with it, and it refuses to use directories that other users could
change: they could forge jobs there.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable

from jpsi.plugin import ConfigError
from jpsi.plugin.engine import ownership

PRIVATE_DIRECTORY = 0o700
PRIVATE_FILE = 0o600

_PERMISSIONS = 0o777
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_DEFAULT_ACL = "system.posix_acl_default"


def make_private_directory(path: str | os.PathLike[str], what: str = "the directory") -> None:
    """Make a directory and its missing parents for the user alone, or check that an existing one is safe.

    Args:
        path: the directory.
        what: its name in messages, such as "the work directory".

    Raises:
        ConfigError: other users can change it or its parents, or it is not the user's.
        OSError: it cannot be made.
    """
    text = os.fspath(path)
    # before anything is made: other users could move what is made in an unsafe directory
    check_way(text, what)
    # another process that makes one of them first may have made a link
    make_directories(text, lambda taken: check_way(taken, what))
    check_private_directory(text, what)


def check_way(path: str | os.PathLike[str], what: str = "the directory") -> None:
    """Raise if other users can change the path to a directory, as far as it exists; it need not exist.

    Raises:
        ConfigError: other users can change it.
    """
    found = ownership.refusal(path, is_way=True)
    if found is not None:
        raise _unsafe(os.fspath(path), what, found)


def check_private_directory(path: str | os.PathLike[str], what: str = "the directory") -> None:
    """Raise if a directory is not the user's, or if other users can change it or the path to it.

    Raises:
        ConfigError: it is not safe to use.
        OSError: it does not exist, or is no directory.
    """
    text = os.fspath(path)
    status = os.stat(text)  # noqa: PTH116  text
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), text)
    found = ownership.refusal(text) or _not_ours(text, status)
    if found is not None:
        raise _unsafe(text, what, found)


def check_directory_here(path: str, what: str = "the directory") -> os.stat_result:
    """Raise unless a directory inside a safe one is the user's, no link, and writable by the user alone.

    Raises:
        ConfigError: it is not safe to use.
        OSError: it does not exist.
    """
    status = ownership.look(path)
    found = _not_ours(path, status)
    if found is not None:
        raise _unsafe(path, what, found)
    return status


def _not_ours(path: str, status: os.stat_result) -> str | None:
    if not stat.S_ISDIR(status.st_mode):
        kind = "a symbolic link" if stat.S_ISLNK(status.st_mode) else "a file"
        return f"{path} is {kind} and must be a directory; move it away"
    mode = f"mode {stat.S_IMODE(status.st_mode):04o}"
    if status.st_uid != os.geteuid():
        return f"{path} belongs to user {status.st_uid} ({mode}), not to you; have its owner changed"
    if status.st_mode & _OTHERS_WRITE:
        return f"{path} can be written by others (yours, {mode}); change that: chmod go-w {path}"
    return None


def _unsafe(path: str, what: str, why: str) -> ConfigError:
    return ConfigError(f"{what} {path} is not safe to use: {why}; or choose another")


def make_directories(path: str, check: Callable[[str], None] = lambda _: None) -> None:
    """Make a directory and its missing parents for the user alone; existing ones stay as they are.

    Args:
        path: the directory.
        check: called for a directory that another process made meanwhile; raises if it must not be used.

    Raises:
        OSError: it cannot be made.
    """
    missing = []
    while not os.path.isdir(path):  # noqa: PTH112  text
        missing.append(path)
        parent = os.path.dirname(path.rstrip("/"))  # noqa: PTH120
        if parent == path or not parent:
            break
        path = parent
    for it in reversed(missing):
        try:
            make_directory(it)
        except FileExistsError:
            check(it)


def make_directory(path: str) -> None:
    """Make one directory for the user alone.

    Raises:
        OSError: it cannot be made, or exists already.
    """
    os.mkdir(path, PRIVATE_DIRECTORY)  # noqa: PTH102  every submission calls this
    status = os.lstat(path)
    is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
    if is_ours and status.st_mode & _PERMISSIONS != PRIVATE_DIRECTORY:
        # the umask removed permissions of the user, too
        os.chmod(path, stat.S_IMODE(status.st_mode) & ~_PERMISSIONS | PRIVATE_DIRECTORY)  # noqa: PTH101


def shed_default_acl(path: str) -> None:
    """Remove a directory's default access control list, which new entries would inherit; never raises.

    With such a list the umask has no effect.
    """
    if hasattr(os, "removexattr"):
        with contextlib.suppress(OSError):
            os.removexattr(path, _DEFAULT_ACL)


def open_private(path: str | os.PathLike[str], flags: int, *, dir_fd: int | None = None) -> int:
    """Open a regular file of the user's, following no link in its last step, and return the descriptor.

    With `os.O_CREAT` the file is made for the user alone.

    Raises:
        PermissionError: it is no regular file, or belongs to another user.
        OSError: it cannot be opened; ELOOP if it is a link.
    """
    # without O_NONBLOCK, a pipe that another user has put there would block
    flags |= os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
    fd = os.open(path, flags & ~os.O_TRUNC, PRIVATE_FILE, dir_fd=dir_fd)
    try:
        status = _checked(os.fstat(fd), path)
        if flags & os.O_CREAT and status.st_mode & _PERMISSIONS != PRIVATE_FILE:
            os.fchmod(fd, PRIVATE_FILE)
        if flags & os.O_TRUNC and status.st_size:
            os.ftruncate(fd, 0)
    except BaseException:
        os.close(fd)
        raise
    return fd


def write_synced(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file for the user alone, which survives a crash of the machine once its directory is synced.

    Raises:
        OSError: it cannot be written; see `open_private`.
    """
    fd = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    with os.fdopen(fd, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(fd)


def sync_directory(path: str | os.PathLike[str]) -> None:
    """Flush a directory to disk, so that the names in it survive a crash of the machine."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _checked(status: os.stat_result, path: str | os.PathLike[str]) -> os.stat_result:
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, "it is no file of yours", os.fspath(path))
    return status
