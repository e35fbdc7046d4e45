"""Checks if a user of this machine may read a file, from the modes of the file and its directories.

The dispatcher uses it to see whether the owner of a request could read an output before it reuses that. It
looks at mode bits only: no ACLs, and not the directories above a symlink's target.
"""

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
    # Caches the answer for each directory; it is never renewed, so make a new Reader for each check.
    _may_enter_cache: dict[Path, bool] = attrs.field(factory=dict, init=False, eq=False, repr=False)

    @classmethod
    def of_user_name(cls, name: str) -> Self | None:
        """Return the user with a name; None if this machine knows no such user."""
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            return None
        return cls(user.pw_uid, frozenset(os.getgrouplist(name, user.pw_gid)))

    def may_read(self, path: Path) -> bool:
        """Return True if the user may read a file and enter all directories above it.

        Args:
            path: the absolute path of the file.
        """
        return self._may_enter(path.parent) and self._has_permission(path, stat.S_IRUSR)

    def _may_enter(self, directory: Path) -> bool:
        if directory not in self._may_enter_cache:
            is_top = directory == directory.parent
            may_reach = is_top or self._may_enter(directory.parent)
            self._may_enter_cache[directory] = may_reach and self._has_permission(directory, stat.S_IXUSR)
        return self._may_enter_cache[directory]

    def _has_permission(self, path: Path, owner_bit: int) -> bool:
        try:
            found = path.stat()
        except OSError:
            return False
        return is_allowed(found.st_mode, found.st_uid, found.st_gid, self, owner_bit)


def is_allowed(mode: int, uid: int, gid: int, reader: Reader, owner_bit: int) -> bool:
    """Return True if a mode grants a user the permission whose mode bit for the owner is `owner_bit`.

    >>> is_allowed(0o640, 1, 10, Reader(2, frozenset([10])), stat.S_IRUSR)
    True
    """
    if reader.uid in {0, uid}:
        return reader.uid == 0 or bool(mode & owner_bit)
    return bool(mode & (owner_bit >> 3 if gid in reader.groups else owner_bit >> 6))
