"""Reads host lists, the short form in which several batch systems write the names of many nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator

# node[01-03,7], and anything between commas; a name may have several brackets
_NAME = re.compile(r"(?:[^,\[\]]|\[[^\]]*\])+")
_BRACKET = re.compile(r"([^\[]*)\[([^\]]*)\](.*)\Z", re.DOTALL)
_RANGE = re.compile(r"([0-9]+)-([0-9]+)\Z")
# No machine has more nodes; a garbled list must not fill the memory.
_MOST = 1_000_000


def hostlist(text: str) -> tuple[str, ...]:
    """Return the nodes of a host list (Slurm: scontrol(1), show hostnames; Flux: RFC 29).

    >>> hostlist("login1,node[08-10,x]-ib")
    ('login1', 'node08-ib', 'node09-ib', 'node10-ib', 'nodex-ib')
    """
    return tuple(node for name in _NAME.findall(text) for node in _expanded(name) if node)


def _expanded(name: str) -> Iterator[str]:
    bracket = _BRACKET.match(name)
    if bracket is None:
        yield name
        return
    before, inside, after = bracket.groups()
    ends = list(_expanded(after))
    for part in inside.split(","):
        for number in _numbers(part):
            for end in ends:
                yield f"{before}{number}{end}"


def _numbers(part: str) -> Iterator[str]:
    match = _RANGE.match(part)
    if match is None or int(match[2]) - int(match[1]) > _MOST:
        yield part
        return
    first, last = match.groups()
    for number in range(int(first), int(last) + 1):
        yield f"{number:0{len(first)}}"
