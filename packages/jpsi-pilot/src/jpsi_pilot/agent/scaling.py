"""How many pilots there should be: pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from .placement import Room, Waiting, placed


@attrs.frozen(slots=True, kw_only=True)
class Pilot:
    """A pilot, as far as its number is decided by it."""

    name: str
    #: For how many seconds it has been of no use; None while something runs in it.
    idle: float | None = None
    #: Whether there are jobs that it would take, and for which it has not enough time any more.
    late: bool = False
    #: How long a job that starts now may run in it.
    seconds: float


def more(waiting: Sequence[Waiting], free: Sequence[Room], fresh: Sequence[Room], allowed: int) -> int:
    """How many pilots to start, so that every waiting job could start at once, within what is allowed.

    Args:
        waiting: the jobs that could run in such pilots.
        free: what is free in those that are there, or will be in those that were started.
        fresh: what one more would have.
        allowed: how many more there may be.
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
    """What would still wait if the others had started there."""
    waiting = list(waiting)
    started: dict[object, int] = {}
    for kind, _, times in placed(waiting, rooms):
        started[kind] = started.get(kind, 0) + times
    rest = [attrs.evolve(it, count=it.count - started.get(it.kind, 0)) for it in waiting]
    return [it for it in rest if it.count > 0]


def needless(pilots: Iterable[Pilot], patience: float, shortest: float) -> list[str]:
    """The pilots to end: idle for too long, or idle with too little time left.

    Args:
        pilots: those that there are.
        patience: how long a pilot may be idle.
        shortest: less time than this is of no use to anybody.
    """
    return [
        it.name
        for it in pilots
        if it.idle is not None and (it.idle >= patience or it.late or it.seconds < shortest)
    ]
