"""Reads and writes the indices of array elements, as batch systems write several of them."""

from __future__ import annotations

import re
from collections.abc import Iterable

# 7, 1-5 and 1-9:2
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9})(?::([1-9][0-9]{0,8}))?)?\Z")


def read_indices(text: str) -> list[range]:
    """Return the ranges of indices in a text.

    >>> read_indices("1-3,7,10-20:5")
    [range(1, 4), range(7, 8), range(10, 21, 5)]

    Raises:
        ValueError: the text is no list of indices.
    """
    found = []
    for part in text.split(","):
        match = _RANGE.match(part)
        if match is None:
            msg = f"{text!r} names no indices of an array"
            raise ValueError(msg)
        first = int(match[1])
        found.append(range(first, int(match[2] or first) + 1, int(match[3] or 1)))
    return found


def write_indices(indices: Iterable[int]) -> str:
    """Return a text for these indices, as short as it can be without steps.

    >>> write_indices([9, 3, 1, 2])
    '1-3,9'
    """
    runs: list[list[int]] = []
    for index in sorted(set(indices)):
        if runs and runs[-1][-1] == index - 1:
            runs[-1] = [runs[-1][0], index]
        else:
            runs.append([index])
    return ",".join("-".join(map(str, run)) for run in runs)
