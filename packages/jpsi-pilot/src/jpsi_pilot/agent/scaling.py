"""Decides how many pilots to start and which to end; all functions are pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from .placement import Room, Waiting, placed


@attrs.frozen(slots=True, kw_only=True)
class Pilot:
    """The figures of a pilot that decide if it is kept."""

    name: str
    #: The seconds since it was last useful; None while something runs in it.
    idle: float | None = None
    #: True if jobs of its kind wait, and it has not enough time left for any of them.
    late: bool = False
    #: The longest time, in seconds, that a job that starts now may run in it.
    seconds: float


def more(waiting: Sequence[Waiting], free: Sequence[Room], fresh: Sequence[Room], allowed: int) -> int:
    """Return how many pilots to start so that every waiting job could start at once, up to the limit.

    Args:
        waiting: the jobs that could run in such pilots.
        free: the free capacity of existing pilots, and of those that are starting.
        fresh: the capacity of one more pilot.
        allowed: how many more pilots there may be.
    """
    left = _left(waiting, free)
    count = 0
    while left and count < allowed:
        after = _left(left, fresh)
        if after == left:
            break
        left, count = after, count + 1
    return count


def _left(waiting: Iterable[Waiting], rooms: Sequence[Room]) -> list[Waiting]:
    """Return the jobs that would still wait after a placement in these rooms."""
    waiting = list(waiting)
    started: dict[object, int] = {}
    for kind, _, times in placed(waiting, rooms):
        started[kind] = started.get(kind, 0) + times
    rest = [attrs.evolve(it, count=it.count - started.get(it.kind, 0)) for it in waiting]
    return [it for it in rest if it.count > 0]


def needless(pilots: Iterable[Pilot], patience: float, shortest: float) -> list[str]:
    """Return the names of the pilots to end: idle for too long, or idle with too little time left.

    Args:
        pilots: all pilots.
        patience: how long a pilot may be idle, in seconds.
        shortest: a pilot with less time left than this is of no use, in seconds.
    """
    return [
        it.name
        for it in pilots
        if it.idle is not None and (it.idle >= patience or it.late or it.seconds < shortest)
    ]
