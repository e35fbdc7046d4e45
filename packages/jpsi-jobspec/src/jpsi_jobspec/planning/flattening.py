"""The inside of an allocation as one list: what is in nested groups stands beside the rest. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from ..document import Shape
from .plan import After, Entry, Kind


def flatten(allocation: Entry) -> tuple[Entry, ...]:
    """All that runs inside of an allocation, in its order.

    What waits for a nested group waits for all that is in it, services excepted, and all that is in it waits
    for what the group waits for. What has no resources of its own has those of the group that it stands in.
    """
    members = {it.id: tuple(_members(it)) for it in allocation.walk() if it.kind is Kind.POOL}
    return tuple(_flat(allocation, (), members))


def _members(pool: Entry) -> Iterator[Entry]:
    for entry in pool.inside:
        if entry.kind is Kind.POOL:
            yield from _members(entry)
        elif entry.kind is not Kind.SERVICE:
            yield entry


def _flat(
    outer: Entry, inherited: tuple[After, ...], members: Mapping[str, tuple[Entry, ...]]
) -> Iterator[Entry]:
    for entry in outer.inside:
        after = (*inherited, *_spread(entry.after, members))
        shaped = entry if entry.is_local else attrs.evolve(entry, shape=_shape(entry, outer))
        if entry.kind is Kind.POOL:
            yield from _flat(shaped, after, members)
        else:
            yield attrs.evolve(shaped, after=tuple(dict.fromkeys(after)))


def _spread(waits: tuple[After, ...], members: Mapping[str, tuple[Entry, ...]]) -> Iterator[After]:
    for after in waits:
        if after.id in members:
            yield from (After(it.id, after.when) for it in members[after.id])
        else:
            yield after


def _shape(entry: Entry, outer: Entry) -> Shape | None:
    return outer.shape if entry.shape is None else entry.shape
