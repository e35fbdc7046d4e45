"""The check whether a user of this machine may read a file, from the modes of file and directories."""

from __future__ import annotations

import os
import pwd
import stat
from pathlib import Path
from typing import Self

import attrs


@attrs.frozen(slots=True)
class Reader:
    """A user with the user's groups."""

    uid: int
    groups: frozenset[int]
    # A cache: many files are in few directories.
    _entered: dict[Path, bool] = attrs.field(factory=dict, init=False, eq=False, repr=False)

    @classmethod
    def of(cls, name: str) -> Self | None:
        """Return the user with a name; None if this machine has none."""
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            return None
        return cls(user.pw_uid, frozenset(os.getgrouplist(name, user.pw_gid)))

    def may_read(self, path: Path) -> bool:
        """Return True if the user may read a file and enter all directories above it."""
        return self._may_enter(path.parent) and self._is_allowed(path, stat.S_IRUSR)

    def _may_enter(self, directory: Path) -> bool:
        if directory not in self._entered:
            is_top = directory == directory.parent
            may_reach = is_top or self._may_enter(directory.parent)
            self._entered[directory] = may_reach and self._is_allowed(directory, stat.S_IXUSR)
        return self._entered[directory]

    def _is_allowed(self, path: Path, of_owner: int) -> bool:
        try:
            found = path.stat()
        except OSError:
            return False
        return is_allowed(found.st_mode, found.st_uid, found.st_gid, self, of_owner)


def is_allowed(mode: int, uid: int, gid: int, reader: Reader, of_owner: int) -> bool:
    """Return True if a mode grants a user the permission that `of_owner` denotes for the owner.

    >>> is_allowed(0o640, 1, 10, Reader(2, frozenset([10])), stat.S_IRUSR)
    True
    """
    if reader.uid in {0, uid}:
        return reader.uid == 0 or bool(mode & of_owner)
    return bool(mode & (of_owner >> 3 if gid in reader.groups else of_owner >> 6))
