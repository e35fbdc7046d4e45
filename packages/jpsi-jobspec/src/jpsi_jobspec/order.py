"""An order in which each comes after what it wants, or a cycle that leaves none. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Sequence


def topological(wanted: Sequence[Sequence[int]]) -> list[int]:
    """An order in which each comes after what it wants, the first ones first; without what is in a cycle."""
    left = [len(set(it)) for it in wanted]
    after: list[list[int]] = [[] for _ in wanted]
    for number, needed in enumerate(wanted):
        for it in set(needed):
            after[it].append(number)
    ready = [number for number, count in enumerate(left) if not count]
    order = []
    while ready:
        number = heapq.heappop(ready)
        order.append(number)
        for it in after[number]:
            left[it] -= 1
            if not left[it]:
                heapq.heappush(ready, it)
    return order


def find_cycle(wanted: Sequence[Sequence[int]]) -> list[int]:
    """The members of one cycle, each wanting the next one; empty if there is none.

    >>> find_cycle([[1], [2], [1]]), find_cycle([[1], []])
    ([1, 2], [])
    """
    done: set[int] = set()
    for start in range(len(wanted)):
        path: list[int] = []
        places: dict[int, int] = {}
        stack = [(start, iter(wanted[start]))] if start not in done else []
        if stack:
            path.append(start)
            places[start] = 0
        while stack:
            number, left = stack[-1]
            following = next((it for it in left if it not in done), None)
            if following is None:
                stack.pop()
                done.add(number)
                del places[path.pop()]
            elif following in places:
                return path[places[following] :]
            else:
                places[following] = len(path)
                path.append(following)
                stack.append((following, iter(wanted[following])))
    return []
