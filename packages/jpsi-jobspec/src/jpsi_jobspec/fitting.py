"""The rules about what runs inside of groups: it fits into what the group has, in room and in time. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

import attrs

from .model import Document, Expression, Group, Resource, Task
from .problems import Findings
from .shape import Shape, excess, measure, side_by_side, together


@attrs.frozen(slots=True)
class _Outer:
    """What the groups around something leave to it, and the names of those that do; None is any."""

    limit: timedelta | None = None
    limited_by: str = ""
    room: Resource | None = None
    room_of: str = ""


def check_fit(document: Document, findings: Findings) -> None:
    """Note what is in a group, however deep, and does not fit into it."""
    inside = {it.group for group in document.groups.values() for it in group.tasks if it.group}
    for group in document.groups.values():
        if group.name not in inside:
            _check_inside(document, group, _Outer(), findings)


def _check_inside(document: Document, group: Group, outer: _Outer, findings: Findings) -> None:
    here = _narrowed(document, group, outer)
    for task in group.tasks:
        held = document.groups.get(task.group) if task.group else None
        inner: Task | Group = held or task
        _check_time(document, inner, here, findings)
        _check_room(document, inner, here, findings)
        if held is not None:
            _check_inside(document, held, here, findings)


def _narrowed(document: Document, group: Group, outer: _Outer) -> _Outer:
    """What a group leaves to what is in it; of one that names alternatives nobody knows yet which it has.

    Nor does anybody of one that names a resource which there is not.
    """
    named = list(_named(document, group.resources))
    count = 0 if group.resources is None else len(group.resources.names)
    found = outer
    if count == len(named) == 1:
        found = attrs.evolve(found, room=named[0], room_of=group.name)
    elif count:
        found = attrs.evolve(found, room=None)
    times = _times(document, group)
    if times and (count <= 1 or group.attributes.duration is not None) and times[0]:
        found = attrs.evolve(found, limit=times[0], limited_by=group.name)
    return found


def _check_time(document: Document, inner: Task | Group, outer: _Outer, findings: Findings) -> None:
    if not outer.limit:
        return
    for asked in _times(document, inner):
        if not asked or asked > outer.limit:
            told = f"{asked}" if asked else "without limit"
            says = f"may run {told}, in the group {outer.limited_by!r} that has {outer.limit}"
            findings.wrong("JS063", inner.at, says, "give it less time, or the group more")


def _check_room(document: Document, inner: Task | Group, outer: _Outer, findings: Findings) -> None:
    if outer.room is None:
        return
    alternatives = () if inner.resources is None else inner.resources.alternatives
    resources = [
        [document.resources[it] for it in names if it in document.resources] for names in alternatives
    ]
    whole = measure(outer.room.vertex)
    found = [excess(_sum(it), whole) if it else [] for it in resources]
    note = findings.wrong if all(found) else findings.loose
    for too_much in filter(None, found):
        says = f"asks for {', '.join(too_much)} that the group {outer.room_of!r} has"
        note("JS070", inner.at, says, f"ask for less, or give {outer.room.name!r} more")


def _sum(resources: Sequence[Resource]) -> Shape:
    """Return what several resources are at once."""
    shapes = [measure(it.vertex) for it in resources]
    return together(shapes) or side_by_side(shapes)


def _times(document: Document, it: Task | Group) -> list[timedelta]:
    """How long something may run: as it says itself, or as each of the resources that it may get does."""
    if it.attributes.duration is not None:
        return [it.attributes.duration]
    found = (resource.attributes.duration for resource in _named(document, it.resources))
    return [duration for duration in found if duration is not None]


def _named(document: Document, expression: Expression | None) -> Iterator[Resource]:
    names = () if expression is None else expression.names
    return (document.resources[name] for name in names if name in document.resources)
