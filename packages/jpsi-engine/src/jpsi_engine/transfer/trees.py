"""Reads a file or a directory tree of this machine into entries, and makes directories and links of one.

The copies in `local_files` and `remote_copy` use it; the entries of a remote tree have the same form.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Iterator
from enum import Enum, auto

import attrs

from jpsi import TransferError
from jpsi_engine.host import local_file_error

#: The mode bits that are transferred; set-id bits stay behind, as they give other users rights that the user
#: did not ask for.
PERMISSIONS = 0o777


class Kind(Enum):
    """The kinds of entries in a tree."""

    FILE = auto()
    DIRECTORY = auto()
    LINK = auto()


@attrs.frozen(slots=True)
class Entry:
    """A file, directory or symbolic link in a tree."""

    #: The path below the root of the tree; empty for the root itself.
    name: str
    kind: Kind
    #: The permission bits.
    mode: int = 0o777
    #: The size of a file, in bytes; 0 for other kinds.
    size: int = 0
    #: The target of a symbolic link, as written in it.
    text: str = ""

    def below(self, root: str) -> str:
        """Return the path of the entry, given the root's."""
        return f"{root.rstrip('/')}/{self.name}" if self.name else root


def tree(root: str) -> list[Entry]:
    """Return the entries of a tree of this machine, directories first; a root that is a link is followed.

    Raises:
        TransferError: the tree cannot be read, or an entry is no file, directory or link.
    """
    return list(_walk(root, ""))


def _walk(root: str, name: str) -> Iterator[Entry]:
    path = f"{root.rstrip('/')}/{name}" if name else root
    try:
        found = os.lstat(path) if name else os.stat(path)  # noqa: PTH116  text
        kind = kind_of(found.st_mode)
        text = os.readlink(path) if kind is Kind.LINK else ""  # noqa: PTH115  text
        names = sorted(os.listdir(path)) if kind is Kind.DIRECTORY else []  # noqa: PTH208  text
    except OSError as e:
        raise local_file_error(path, "read", e) from e
    if kind is None:
        raise unsupported_entry(path)
    size = found.st_size if kind is Kind.FILE else 0
    yield Entry(name, kind, found.st_mode & PERMISSIONS, size, text)
    for child in names:
        yield from _walk(root, f"{name}/{child}" if name else child)


def kind_of(mode: int) -> Kind | None:
    """Return the kind of an entry with this mode; None if it cannot be transferred."""
    return _KINDS.get(stat.S_IFMT(mode))


def unsupported_entry(path: str) -> TransferError:
    """Return the error for an entry that cannot be transferred."""
    return TransferError(f"{path} cannot be read: it is no file, no directory and no symbolic link")


_KINDS = {stat.S_IFREG: Kind.FILE, stat.S_IFDIR: Kind.DIRECTORY, stat.S_IFLNK: Kind.LINK}


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
