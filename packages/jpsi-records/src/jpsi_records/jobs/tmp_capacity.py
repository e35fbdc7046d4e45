"""Temporary directories of a capacity: whether so much fits in, and whether a job has written more."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

#: Why an execution was cancelled whose job has written more into a temporary directory than fits.
TMP_CAPACITY = "tmp_capacity"


def free_bytes(directory: Path) -> int:
    """Return how many bytes are free where a directory is, or will be."""
    there = next(it for it in (directory, *directory.parents) if it.exists())
    return shutil.disk_usage(there).free


def shortages(
    capacities: Mapping[str, int], directory: Path, free: Callable[[Path], int] = free_bytes
) -> Iterator[str]:
    """Yield why so much does not fit, a sentence for all temporary directories.

    Args:
        capacities: the bytes that must fit, by target.
        directory: where they will be.
        free: tells how many bytes are free there.
    """
    wanted, there = sum(capacities.values()), free(directory) if capacities else 0
    if wanted > there:
        where = ", ".join(sorted(capacities))
        yield f"mounts: {where}: {wanted} bytes must fit, and {there} are free in {directory}"


def excess(capacities: Mapping[str, int], place: Callable[[str], Path]) -> str | None:
    """Return what a job has written too much of, as a sentence; None if everything fits.

    Args:
        capacities: the bytes that fit, by target.
        place: where a target is.
    """
    for target, capacity in sorted(capacities.items()):
        used = tree_size(place(target))
        if used > capacity:
            return f"{target} holds {used} bytes, and its capacity is {capacity}"
    return None


def tree_size(root: Path) -> int:
    """Return the bytes of all files in a directory, each file once; what goes meanwhile does not count."""
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
