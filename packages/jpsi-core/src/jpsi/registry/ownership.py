"""Whose files are believed: those that nobody but root and the user may change."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator

#: As many links as Linux follows.
_LINKS = 40


def refusal(path: str | os.PathLike[str]) -> str | None:
    """Why what stands at `path` is not believed; None if it is, or if nothing is there.

    Every directory and link that leads there counts, as ssh does it: who may rename one of them decides
    what is found.
    """
    steps = list(_way(os.path.abspath(path)))  # noqa: PTH100  text is what the rest works on
    judged = (_judged(at, status, is_way=at != steps[-1][0]) for at, status in steps)
    return next(filter(None, judged), None)


def refusal_within(path: str | os.PathLike[str]) -> str | None:
    """Why something inside the directory `path`, or that file, is not believed; not how one gets there."""
    for parent, directories, files in os.walk(path):
        for name in (".", *directories, *files):
            at = os.path.normpath(os.path.join(parent, name))  # noqa: PTH118  os.walk speaks text
            try:
                status = os.lstat(at)
            except FileNotFoundError:
                continue  # what vanished meanwhile, such as the draft of a .pyc, is not loaded
            if found := refusal(at) if stat.S_ISLNK(status.st_mode) else _judged(at, status):
                return found
    return None if os.path.isdir(path) else refusal(path)  # noqa: PTH112


def problem(
    path: str,
    status: os.stat_result,
    *,
    user: int,
    is_private: Callable[[int, int], bool],
    is_way: bool = False,
) -> str | None:
    """Why a file or directory with these properties is not believed: a pure function.

    Args:
        path: what it is called in the sentence.
        status: what stat(2) says of it; lstat(2) if it is a link.
        user: who would believe it.
        is_private: tells of a group id whether nobody but the owner (the second argument) is a member.
        is_way: whether it only leads to what is believed: then it may be writable by all if it is sticky,
            like /tmp, since nobody can rename what others have in it.
    """
    if status.st_uid not in (0, user):
        return f"{path} belongs to user {status.st_uid}, not to you or root; have its owner changed"
    if stat.S_ISLNK(status.st_mode) or (is_way and status.st_mode & stat.S_ISVTX):
        return None
    group = status.st_mode & stat.S_IWGRP and not is_private(status.st_gid, status.st_uid)
    if group or status.st_mode & stat.S_IWOTH:
        mode = stat.S_IMODE(status.st_mode)
        return f"{path} can be written by others (mode {mode:04o}); change that: chmod go-w {path}"
    return None


def _judged(path: str, status: os.stat_result, *, is_way: bool = False) -> str | None:
    return problem(path, status, user=os.geteuid(), is_private=_is_private, is_way=is_way)


def _way(path: str) -> Iterator[tuple[str, os.stat_result]]:
    """What leads to an absolute path, links with all that they lead over, and at last what is there."""
    left = [part for part in reversed(path.split("/")) if part]
    at, links = "/", 0
    yield at, os.stat(at)  # noqa: PTH116
    while left:
        step = left.pop()
        if step == "..":
            at = os.path.dirname(at)  # noqa: PTH120
            continue
        if step in {"", "."}:
            continue
        there = f"{at.rstrip('/')}/{step}"
        try:
            status = os.lstat(there)
        except OSError:
            return
        yield there, status
        if not stat.S_ISLNK(status.st_mode):
            at = there
            continue
        links += 1
        if links > _LINKS:
            return
        target = os.readlink(there)  # noqa: PTH115
        at = "/" if target.startswith("/") else at
        left += reversed(target.split("/"))


def _is_private(group: int, owner: int) -> bool:
    """Whether a group is the one that many systems make for each user: of that name, with no others."""
    import grp
    import pwd

    try:
        who, found = pwd.getpwuid(owner), grp.getgrgid(group)
    except KeyError:
        return False
    return who.pw_gid == group and found.gr_name == who.pw_name and set(found.gr_mem) <= {who.pw_name}
