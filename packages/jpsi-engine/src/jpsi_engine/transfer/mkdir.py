"""Makes the directories and links of a tree on this machine."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterable

from jpsi_engine.host import local_file_error
from jpsi_engine.transfer.trees import Entry, Kind


def make_entries(entries: Iterable[Entry], root: str) -> list[Entry]:
    """Make links and directories, open to their owner for now.

    Returns the directories that need their final mode.

    A root directory that existed keeps its mode, as it may belong to another user, or be a home directory. A
    link may lead to the root. A link below it where a directory belongs is an error: an earlier transfer may
    have brought it, and it may lead anywhere.

    Raises:
        TransferError: a directory or link cannot be made.
    """
    directories = []
    for entry in entries:
        path = entry.below(root)
        try:
            if entry.kind is Kind.LINK:
                _make_link(path, entry.text)
            elif entry.kind is Kind.DIRECTORY and (_make_directory(path, entry) or entry.name):
                directories.append(entry)
        except OSError as e:
            raise local_file_error(path, "written", e) from e
    return directories


def set_modes(directories: Iterable[Entry], root: str) -> None:
    """Give directories their final modes.

    Raises:
        TransferError: a directory cannot have its mode.
    """
    for entry in reversed(list(directories)):
        path = entry.below(root)
        try:
            os.chmod(path, entry.mode)  # noqa: PTH101  text
        except OSError as e:
            raise local_file_error(path, "written", e) from e


def _make_directory(path: str, entry: Entry) -> bool:
    """Make a directory that its owner can use; return True if this made it, or changed its mode."""
    if os.path.isdir(path) and not (entry.name and os.path.islink(path)):  # noqa: PTH112, PTH114
        return not os.access(path, os.W_OK | os.X_OK) and _make_accessible(path)
    os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120
    os.mkdir(path, entry.mode | 0o700)  # noqa: PTH102
    return True


def _make_accessible(path: str) -> bool:
    """Open a directory that is closed to its owner, as an earlier transfer may have left it."""
    try:
        os.chmod(path, os.stat(path).st_mode | 0o700)  # noqa: PTH101, PTH116  text
    except PermissionError:
        # it belongs to another user, and perhaps nothing in it needs to change
        return False
    return True


def _make_link(path: str, text: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):  # noqa: PTH112, PTH114
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108
    os.symlink(text, path)  # noqa: PTH211
