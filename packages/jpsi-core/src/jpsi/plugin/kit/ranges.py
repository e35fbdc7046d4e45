"""Reads and writes host lists and indices of array elements in ranges, such as `node[01-03]` and `1-9:2`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

# node[01-03,7], and anything between commas; a name may have several brackets
_NAME = re.compile(r"(?:[^,\[\]]|\[[^\]]*\])+")
_BRACKET = re.compile(r"([^\[]*)\[([^\]]*)\](.*)\Z", re.DOTALL)
_HOST_RANGE = re.compile(r"([0-9]+)-([0-9]+)\Z")
# No machine has more nodes; a garbled list must not fill the memory.
_MAX_NODES = 1_000_000
# 7, 1-5 and 1-9:2
_INDEX_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9})(?::([1-9][0-9]{0,8}))?)?\Z")


def expand_hostlist(text: str) -> tuple[str, ...]:
    """Return the nodes of a host list (Slurm: scontrol(1), show hostnames; Flux: RFC 29).

    >>> expand_hostlist("login1,node[08-10,x]-ib")
    ('login1', 'node08-ib', 'node09-ib', 'node10-ib', 'nodex-ib')
    """
    return tuple(node for name in _NAME.findall(text) for node in _expand(name) if node)


def _expand(name: str) -> Iterator[str]:
    bracket = _BRACKET.match(name)
    if bracket is None:
        yield name
        return
    prefix, inside, suffix = bracket.groups()
    ends = list(_expand(suffix))
    for part in inside.split(","):
        for number in _numbers(part):
            yield from (f"{prefix}{number}{end}" for end in ends)


def _numbers(part: str) -> Iterator[str]:
    match = _HOST_RANGE.match(part)
    if match is None or int(match[2]) - int(match[1]) > _MAX_NODES:
        yield part
        return
    first, last = match.groups()
    for number in range(int(first), int(last) + 1):
        yield f"{number:0{len(first)}}"


def read_indices(text: str) -> list[range]:
    """Return the ranges of indices in a text.

    >>> read_indices("1-3,7,10-20:5")
    [range(1, 4), range(7, 8), range(10, 21, 5)]

    Raises:
        ValueError: the text is no list of indices.
    """
    found = []
    for part in text.split(","):
        match = _INDEX_RANGE.match(part)
        if match is None:
            raise ValueError(f"{text!r} names no indices of an array")
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
