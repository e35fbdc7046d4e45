"""Checks the capacity of a job's temporary directories: enough free space before, not exceeded while it runs.

Previews and commits warn of, or refuse, too little free space; the dispatcher cancels a job that exceeds a
capacity.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

#: The reason of an execution that failed because its job exceeded a capacity.
TMP_CAPACITY = "tmp_capacity"


def free_bytes(directory: Path) -> int:
    """Return the free bytes in the file system of a directory, which need not exist yet."""
    there = next(it for it in (directory, *directory.parents) if it.exists())
    return shutil.disk_usage(there).free


def shortages(
    capacities: Mapping[str, int], directory: Path, free: Callable[[Path], int] = free_bytes
) -> Iterator[str]:
    """Yield a sentence if the capacities of all temporary directories together exceed the free space.

    Args:
        capacities: the capacities in bytes, by target.
        directory: the directory that will hold them.
        free: returns the free bytes in a directory.
    """
    wanted, there = sum(capacities.values()), free(directory) if capacities else 0
    if wanted > there:
        where = ", ".join(sorted(capacities))
        yield f"mounts: {where}: {wanted} bytes must fit, and {there} are free in {directory}"


def excess(capacities: Mapping[str, int], place: Callable[[str], Path]) -> str | None:
    """Return a sentence about the first directory that exceeds its capacity; None if there is none.

    Args:
        capacities: the capacities in bytes, by target.
        place: returns the path of a target.
    """
    for target, capacity in sorted(capacities.items()):
        used = tree_size(place(target))
        if used > capacity:
            return f"{target} holds {used} bytes, and its capacity is {capacity}"
    return None


def tree_size(root: Path) -> int:
    """Return the bytes of all files below a directory, hard links once; vanished files are skipped."""
    seen: set[tuple[int, int]] = set()
    size = 0
    for folder, _, names in os.walk(root):
        for name in names:
            try:
                found = os.lstat(os.path.join(folder, name))  # noqa: PTH118  there may be many
            except OSError:
                continue
            if stat.S_ISREG(found.st_mode) and (found.st_dev, found.st_ino) not in seen:
                seen.add((found.st_dev, found.st_ino))
                size += found.st_size
    return size
