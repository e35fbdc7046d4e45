"""Normalizes paths in a computation, so that equal computations have equal texts.

The paths of mounts, outputs and the working directory are POSIX paths below the root of the job. None may
lead out of it.
"""

from __future__ import annotations


def place(path: str) -> str:
    """Normalize an absolute path.

    >>> place("/in//data/./a/")
    '/in/data/a'

    Raises:
        ValueError: the path is relative, contains `..`, or contains a NUL.
    """
    if not path.startswith("/"):
        raise ValueError(f"{path!r} does not begin with a slash")
    return "/" + _parts(path)


def working_place(path: str) -> str:
    """Normalize a working directory, absolute or relative to the root.

    >>> working_place("."), working_place("in/"), working_place("/in")
    ('/', '/in', '/in')
    """
    return "/" + _parts(path)


def _parts(path: str) -> str:
    parts = [part for part in path.split("/") if part not in {"", "."}]
    if ".." in parts or "\0" in path:
        raise ValueError(f"{path!r} goes up, or holds a NUL")
    return "/".join(parts)


def is_inside(path: str, outer: str) -> bool:
    """Return True if a path equals another, or lies inside it.

    >>> is_inside("/out/a", "/out"), is_inside("/outer", "/out")
    (True, False)
    """
    return outer in {path, "/"} or path.startswith(outer + "/")
