"""Decides which files and directories are safe: only root and the user can change them.

Configuration files, plugins and jpsi's records are used only if they are safe. The rule holds for every
directory and every symbolic link on the way to a path, and for the file at its end:

- It belongs to the user or to root. This applies to a link as well: its owner decides where it leads.
- Others cannot write to it: neither all users, nor its group unless that is the user's private one, nor any
  user or group in an access control list.
- A directory on the way may be writable by others if it is sticky, as /tmp is: other users cannot rename or
  remove the user's entries in it, and the first rule refuses entries that belong to others.

The check starts at the root of the path. So no other user can change a step after it was checked: that would
take a permission that was just found to be missing.
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Callable, Iterator

import attrs

#: The largest number of links that Linux follows.
_MAX_LINKS = 40
_ACL = "system.posix_acl_access"
# <linux/posix_acl_xattr.h>: a version, then entries of a tag, permissions and an id
_ACL_VERSION = 2
_ACL_HEADER = struct.Struct("<I")
_ACL_ENTRY = struct.Struct("<HHI")
_ACL_USER, _ACL_GROUP_OBJ, _ACL_GROUP, _ACL_MASK = 0x02, 0x04, 0x08, 0x10
_ACL_WRITE = 0x02


@attrs.frozen(slots=True)
class Step:
    """A directory, link or file on the way to a path, or at its end."""

    path: str
    #: The result of lstat(2).
    status: os.stat_result
    #: Its access control list in Linux's format; None if there is none, or it cannot be read.
    acl: bytes | None = None

    @property
    def is_link(self) -> bool:
        """True for a symbolic link."""
        return stat.S_ISLNK(self.status.st_mode)


def refusal(path: str | os.PathLike[str], *, is_way: bool = False) -> str | None:
    """Return why the file or directory at `path` is not safe; None if it is, or if it does not exist.

    Every directory and link that leads to it is checked too, as far as they exist. A directory in which
    something will be made, `is_way`, may be sticky.
    """
    steps = list(walk(path))
    last = None if is_way or not steps else steps[-1]
    judged = (_step_problem(step, is_way=step is not last) for step in steps)
    return next(filter(None, judged), None)


def refusal_within(path: str | os.PathLike[str]) -> str | None:
    """Return why the file `path`, or anything in the directory `path`, is not safe, ignoring its parents."""
    for parent, directories, files in os.walk(path):
        for name in (".", *directories, *files):
            at = os.path.normpath(os.path.join(parent, name))  # noqa: PTH118  os.walk yields text
            try:
                step = _step(at)
            except FileNotFoundError:
                continue  # a file that vanished meanwhile, such as a temporary .pyc, is not loaded
            if found := refusal(at) if step.is_link else _step_problem(step):
                return found
    return None if os.path.isdir(path) else refusal(path)  # noqa: PTH112


def problem(
    step: Step, *, user: int, is_private: Callable[[int, int], bool], is_way: bool = False
) -> str | None:
    """Return why a step is not safe for this user: a pure function.

    `is_private` returns True if a group (first argument) has no members besides the owner (second argument).
    A step that only leads to the file in question, `is_way`, may be sticky.
    """
    path, status = step.path, step.status
    mode = f"mode {stat.S_IMODE(status.st_mode):04o}"
    if status.st_uid not in (0, user):
        return f"{path} belongs to user {status.st_uid} ({mode}), not to you or root; have its owner changed"
    if step.is_link or (is_way and status.st_mode & stat.S_ISVTX):
        return None
    owned = f"{'yours' if status.st_uid == user else 'of root'}, {mode}"
    if status.st_mode & stat.S_IWOTH:
        return f"{path} can be written by others ({owned}); change that: chmod go-w {path}"
    if not status.st_mode & stat.S_IWGRP:
        # with an access control list these bits are its mask: no user or group in it can write
        return None
    if step.acl is None:
        by_group = [] if is_private(status.st_gid, status.st_uid) else [f"group {status.st_gid}"]
    else:
        by_group = list(_writers(step, user, is_private))
    if not by_group:
        return None
    return f"{path} can be written by others ({owned}: {by_group[0]}); change that: chmod go-w {path}"


def _writers(step: Step, user: int, is_private: Callable[[int, int], bool]) -> Iterator[str]:
    """Yield the users and groups, other than owner, root and the user, whom an access list lets write."""
    acl = step.acl or b""
    try:
        (version,) = _ACL_HEADER.unpack_from(acl)
        entries = list(_ACL_ENTRY.iter_unpack(acl[_ACL_HEADER.size :]))
    except struct.error:
        version = None
    if version != _ACL_VERSION:
        yield "an access control list of an unknown form"
        return
    mask = next((permissions for tag, permissions, _ in entries if tag == _ACL_MASK), _ACL_WRITE)
    owner, group = step.status.st_uid, step.status.st_gid
    for tag, permissions, number in entries:
        if not permissions & mask & _ACL_WRITE:
            continue
        if tag == _ACL_USER and number not in (0, user):
            yield f"user {number} by its access control list"
        elif tag == _ACL_GROUP_OBJ and not is_private(group, owner):
            yield f"group {group}"
        elif tag == _ACL_GROUP and not is_private(number, owner):
            yield f"group {number} by its access control list"


def look(path: str) -> os.stat_result:
    """Return the result of lstat(2) for a path; every decision of this module rests on it."""
    return os.lstat(path)


def walk(path: str | os.PathLike[str]) -> Iterator[Step]:
    """Yield the steps to a path, including all steps that its links lead over, and at last its end.

    The iteration ends early where a step does not exist or cannot be read.
    """
    text = os.fspath(path)
    # not os.path.abspath: a `..` after a link starts at the link's target
    remaining = (text if text.startswith("/") else f"{os.getcwd()}/{text}").split("/")[::-1]  # noqa: PTH109
    at, links = "/", 0
    yield Step(at, look(at))
    while remaining:
        name = remaining.pop()
        if name == "..":
            at = os.path.dirname(at)  # noqa: PTH120  `at` has no links in it
            continue
        if name in {"", "."}:
            continue
        try:
            yield (step := _step(f"{at.rstrip('/')}/{name}"))
            target = os.readlink(step.path) if step.is_link else None  # noqa: PTH115
        except OSError:
            return
        if target is None:
            at = step.path
            continue
        links += 1
        if links > _MAX_LINKS:
            return
        at = "/" if target.startswith("/") else at
        remaining += reversed(target.split("/"))


def _step(path: str) -> Step:
    status = look(path)
    return Step(path, status, _acl(path, status))


def _step_problem(step: Step, *, is_way: bool = False) -> str | None:
    return problem(step, user=os.geteuid(), is_private=_is_private, is_way=is_way)


def _acl(path: str, status: os.stat_result) -> bytes | None:
    """Return the access control list if it says more than the mode: if the group, or its mask, may write."""
    if stat.S_ISLNK(status.st_mode) or not status.st_mode & stat.S_IWGRP or not hasattr(os, "getxattr"):
        return None
    try:
        return os.getxattr(path, _ACL, follow_symlinks=False)
    except OSError:
        return None


def _is_private(group: int, owner: int) -> bool:
    """Return True for the group that many systems make for each user: of the user's name, with no others."""
    import grp  # noqa: PLC0415  most programs need neither
    import pwd  # noqa: PLC0415

    try:
        who, found = pwd.getpwuid(owner), grp.getgrgid(group)
    except KeyError:
        return False
    return who.pw_gid == group and found.gr_name == who.pw_name and set(found.gr_mem) <= {who.pw_name}
