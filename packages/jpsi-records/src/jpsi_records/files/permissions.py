"""Whether a user of this machine may read a file, by what its modes say."""

from __future__ import annotations

import os
import pwd
import stat
from pathlib import Path
from typing import Self

import attrs


@attrs.frozen(slots=True)
class Reader:
    """A user, and the groups that he is in."""

    uid: int
    groups: frozenset[int]
    # many files are in few directories
    _entered: dict[Path, bool] = attrs.field(factory=dict, init=False, eq=False, repr=False)

    @classmethod
    def of(cls, name: str) -> Self | None:
        """The user with a name; None if this machine knows none."""
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            return None
        return cls(user.pw_uid, frozenset(os.getgrouplist(name, user.pw_gid)))

    def may_read(self, path: Path) -> bool:
        """Whether he may read a file, and enter the directories where it is."""
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
    """Whether a mode allows somebody what it may allow its owner by this bit.

    >>> is_allowed(0o640, 1, 10, Reader(2, frozenset([10])), stat.S_IRUSR)
    True
    """
    if reader.uid in {0, uid}:
        return reader.uid == 0 or bool(mode & of_owner)
    return bool(mode & (of_owner >> 3 if gid in reader.groups else of_owner >> 6))
