"""Flattens the inside of an allocation: entries of nested groups stand beside the others. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from ..document import Shape
from .plan import After, Entry, Kind


def flatten(allocation: Entry) -> tuple[Entry, ...]:
    """Return all entries that run inside of an allocation, in their order.

    Dependants of a nested group wait for all entries in it, except services, and all entries in it wait for
    the dependencies of the group. An entry without resources has those of the group around it.
    """
    members = {it.id: tuple(_members(it)) for it in allocation.walk() if it.kind is Kind.POOL}
    return tuple(_flatten_entries(allocation, (), members))


def _members(pool: Entry) -> Iterator[Entry]:
    for entry in pool.inside:
        if entry.kind is Kind.POOL:
            yield from _members(entry)
        elif entry.kind is not Kind.SERVICE:
            yield entry


def _flatten_entries(
    outer: Entry, inherited: tuple[After, ...], members: Mapping[str, tuple[Entry, ...]]
) -> Iterator[Entry]:
    for entry in outer.inside:
        after = (*inherited, *_expand_groups(entry.after, members))
        shaped = entry if entry.is_local else attrs.evolve(entry, shape=_inherited_shape(entry, outer))
        if entry.kind is Kind.POOL:
            yield from _flatten_entries(shaped, after, members)
        else:
            yield attrs.evolve(shaped, after=tuple(dict.fromkeys(after)))


def _expand_groups(
    dependencies: tuple[After, ...], members: Mapping[str, tuple[Entry, ...]]
) -> Iterator[After]:
    for after in dependencies:
        if after.id in members:
            yield from (After(it.id, after.when) for it in members[after.id])
        else:
            yield after


def _inherited_shape(entry: Entry, outer: Entry) -> Shape | None:
    return outer.shape if entry.shape is None else entry.shape
