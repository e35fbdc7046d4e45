"""The allocation for the replicas of a task in no group: the share of each, and the walltime. Pure."""

from __future__ import annotations

from datetime import timedelta

import attrs

from ..document import Shape, Task

# The process that runs the inside of an allocation ends it that long before its walltime is over.
_CLEANUP_TIME = timedelta(minutes=1)


def share_allocation(task: Task) -> bool:
    """Return True if the replicas of a task at the top run in one allocation; those of services do not."""
    return task.replicas > 1 and not task.is_service


def one_slot(shape: Shape) -> Shape:
    """Return the shape of one slot of a shape, on any node."""
    return attrs.evolve(
        shape,
        nodes=1 if shape.slots_per_node == 1 else None,
        slots=1,
        memory=shape.memory // shape.slots,
        storage=0,
        racks=0,
        is_exclusive=False,
    )


def total_duration(replicas: int, slots: int, each: timedelta) -> timedelta:
    """Return how long the replicas take at most, with as many at a time as there are slots.

    >>> print(total_duration(5, slots=2, each=timedelta(hours=1)))
    3:01:00
    """
    return -(-replicas // slots) * each + _CLEANUP_TIME if each else each
