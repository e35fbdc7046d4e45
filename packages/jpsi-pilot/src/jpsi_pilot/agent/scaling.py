"""Decides how many pilots to start and which to end; all functions are pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from .placement import NodeCapacity, Waiting, place_jobs


@attrs.frozen(slots=True, kw_only=True)
class PilotFigures:
    """The figures of a pilot that decide if it is kept."""

    name: str
    #: The seconds since it was last useful; None while something runs in it.
    idle_seconds: float | None = None
    #: True if jobs of its kind wait, and it has not enough time left for any of them.
    is_late: bool = False
    #: The longest time, in seconds, that a job that starts now may run in it.
    seconds: float


def count_pilots_to_start(
    waiting: Sequence[Waiting], free: Sequence[NodeCapacity], fresh: Sequence[NodeCapacity], allowed: int
) -> int:
    """Return how many pilots to start so that every waiting job could start at once, up to the limit.

    Args:
        waiting: the jobs that could run in such pilots.
        free: the free capacity of existing pilots, and of those that are starting.
        fresh: the capacity of one more pilot.
        allowed: how many more pilots there may be.
    """
    remaining = _remaining(waiting, free)
    count = 0
    while remaining and count < allowed:
        next_remaining = _remaining(remaining, fresh)
        if next_remaining == remaining:
            break
        remaining, count = next_remaining, count + 1
    return count


def _remaining(waiting: Iterable[Waiting], capacities: Sequence[NodeCapacity]) -> list[Waiting]:
    """Return the jobs that would still wait after a placement on nodes with these capacities."""
    waiting = list(waiting)
    started: dict[object, int] = {}
    for kind, _, count in place_jobs(waiting, capacities):
        started[kind] = started.get(kind, 0) + count
    remaining = [attrs.evolve(it, count=it.count - started.get(it.kind, 0)) for it in waiting]
    return [it for it in remaining if it.count > 0]


def find_needless_pilots(pilots: Iterable[PilotFigures], idle_limit: float, shortest: float) -> list[str]:
    """Return the names of the pilots to end: idle for too long, or idle with too little time left.

    Args:
        pilots: all pilots.
        idle_limit: how long a pilot may be idle, in seconds.
        shortest: a pilot with less time left than this is of no use, in seconds.
    """
    return [
        it.name
        for it in pilots
        if it.idle_seconds is not None
        and (it.idle_seconds >= idle_limit or it.is_late or it.seconds < shortest)
    ]
