"""What is in a file or a directory tree that is to be moved: values, and reading them here."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from enum import Enum, auto

import attrs

from jpsi import TransferError
from jpsi_engine.host import failed_here

#: The bits of a mode that are moved; what gives rights to others than the user asked for stays behind.
PERMISSIONS = 0o777


class Kind(Enum):
    """What there can be in a tree."""

    FILE = auto()
    DIRECTORY = auto()
    LINK = auto()


@attrs.frozen(slots=True)
class Entry:
    """One thing in a tree."""

    #: Its path below the root of the tree; empty for the root itself.
    name: str
    kind: Kind
    #: Its permission bits.
    mode: int = 0o777
    #: How long a file is, in bytes.
    size: int = 0
    #: What is written in a symbolic link.
    text: str = ""

    def below(self, root: str) -> str:
        """Its path, given the root's."""
        return f"{root.rstrip('/')}/{self.name}" if self.name else root


def tree(root: str) -> list[Entry]:
    """What is in a tree of this machine, directories first; a root that is a link is followed.

    Raises:
        TransferError: it cannot be read, or there is something in it that is no file, directory or link.
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
        raise failed_here(path, "read", e) from e
    if kind is None:
        raise no_kind(path)
    size = found.st_size if kind is Kind.FILE else 0
    yield Entry(name, kind, found.st_mode & PERMISSIONS, size, text)
    for child in names:
        yield from _walk(root, f"{name}/{child}" if name else child)


def kind_of(mode: int) -> Kind | None:
    """What has a mode; None if it is none of what is moved."""
    return _KINDS.get(stat.S_IFMT(mode))


def no_kind(path: str) -> TransferError:
    """Nothing to be moved."""
    return TransferError(f"{path} cannot be read: it is no file, no directory and no symbolic link")


_KINDS = {stat.S_IFREG: Kind.FILE, stat.S_IFDIR: Kind.DIRECTORY, stat.S_IFLNK: Kind.LINK}
