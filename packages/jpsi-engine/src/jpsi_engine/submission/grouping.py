"""Groups jobs that are submitted together: pure functions."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any


def group_equal(keys: Sequence[Hashable], largest: int) -> list[list[int]]:
    """Return the positions of equal keys together, at most `largest` each, in the order of first occurrence.

    >>> group_equal("abaaa", 3)
    [[0, 2, 3], [4], [1]]
    """
    alike: dict[Hashable, list[int]] = {}
    for position, key in enumerate(keys):
        alike.setdefault(key, []).append(position)
    return [part for positions in alike.values() for part in _split(positions, largest)]


def _split(positions: Sequence[int], largest: int) -> Iterator[list[int]]:
    return (list(positions[start : start + largest]) for start in range(0, len(positions), largest))


def common_entries(plains: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the entries that several specs, as plain values, have in common."""
    first, *others = plains
    shared = dict(first)
    for other in others:
        for name in [name for name, value in shared.items() if other.get(name, _MISSING) != value]:
            del shared[name]
    return shared


_MISSING = object()
