"""Which jobs are submitted as one: pure functions."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

#: The fields of a spec of which a batch system is told nothing: the hooks which tell it do not look at them.
FREE = frozenset(
    {"executable", "arguments", "environment", "stdin_path", "stdout_path", "stderr_path"}
    | {"stage_in", "stage_out", "cleanup", "cleanup_flags"}
)


def shape(plain: Mapping[str, Any]) -> str:
    """What jobs have in common for which a backend answers the same.

    >>> shape({"executable": "a", "arguments": ["1"], "name": "n"}) == shape({"executable": "b", "name": "n"})
    True

    Args:
        plain: a spec as plain values.
    """
    return repr([(name, value) for name, value in plain.items() if name not in FREE])


def chunks(keys: Sequence[Hashable], largest: int) -> list[list[int]]:
    """The positions of equal keys together, so many at most, in the order of the first of each.

    >>> chunks("abaaa", 3)
    [[0, 2, 3], [4], [1]]
    """
    alike: dict[Hashable, list[int]] = {}
    for position, key in enumerate(keys):
        alike.setdefault(key, []).append(position)
    return [part for positions in alike.values() for part in _split(positions, largest)]


def _split(positions: Sequence[int], largest: int) -> Iterator[list[int]]:
    return (list(positions[start : start + largest]) for start in range(0, len(positions), largest))


def common(plains: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What several specs, as plain values, have in common."""
    first, *others = plains
    shared = dict(first)
    for other in others:
        for name in [name for name, value in shared.items() if other.get(name, _MISSING) != value]:
            del shared[name]
    return shared


_MISSING = object()
