"""Makes the directories and links of a tree on this machine."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterable

from jpsi_engine.host import failed_here
from jpsi_engine.transfer.trees import Entry, Kind


def made_entries(entries: Iterable[Entry], root: str) -> list[Entry]:
    """Make directories, open to their owner for now, and links; returns the directories to give modes to.

    A directory that was there keeps its mode if it is the root: it may be anybody's, their home, say. A link
    may lead to it; one below it is in the way, as it may have come with the tree before, and lead anywhere.

    Raises:
        TransferError: one cannot be made.
    """
    directories = []
    for entry in entries:
        path = entry.below(root)
        try:
            if entry.kind is Kind.LINK:
                _link(path, entry.text)
            elif entry.kind is Kind.DIRECTORY and (_make(path, entry) or entry.name):
                directories.append(entry)
        except OSError as e:
            raise failed_here(path, "written", e) from e
    return directories


def set_modes(directories: Iterable[Entry], root: str) -> None:
    """Give directories the modes that they are to have.

    Raises:
        TransferError: one cannot have it.
    """
    for entry in reversed(list(directories)):
        path = entry.below(root)
        try:
            os.chmod(path, entry.mode)  # noqa: PTH101  text
        except OSError as e:
            raise failed_here(path, "written", e) from e


def _make(path: str, entry: Entry) -> bool:
    """Have a directory that its owner can use; returns whether it had to be made, or opened."""
    if os.path.isdir(path) and not (entry.name and os.path.islink(path)):  # noqa: PTH112, PTH114
        return not os.access(path, os.W_OK | os.X_OK) and _opened(path)
    os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120
    os.mkdir(path, entry.mode | 0o700)  # noqa: PTH102
    return True


def _opened(path: str) -> bool:
    """Open a directory that is closed to its owner, as where all this was done before."""
    try:
        os.chmod(path, os.stat(path).st_mode | 0o700)  # noqa: PTH101, PTH116  text
    except PermissionError:
        # it is somebody else's, and perhaps nothing in it is to be changed
        return False
    return True


def _link(path: str, text: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):  # noqa: PTH112, PTH114
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108
    os.symlink(text, path)  # noqa: PTH211
