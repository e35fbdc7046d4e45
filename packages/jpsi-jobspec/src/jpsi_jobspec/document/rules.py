"""Checks the rules about a whole document: references, and limits of resources and time. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import timedelta

import attrs

from .graph import resolve
from .model import Document, Expression, Group, Resource, Task
from .problems import Findings, instead
from .shape import Shape, excess, measure, side_by_side, together, vertices


def check(document: Document, findings: Findings) -> None:
    """Note every problem of a document whose parts have been read."""
    for resource in document.resources.values():
        _check_resource(resource, findings)
    _check_references(document, findings)
    resolve(document, findings)
    _check_tops(document, findings)
    if _is_nested(document, findings):
        _check_groups(document, findings)
        check_fit(document, findings)
        _check_scheduled(document, findings)


def _is_nested(document: Document, findings: Findings) -> bool:
    """Return True if the nesting is known: each named group exists, and no group is inside of itself."""
    is_known = all(it.group is None or it.group in document.groups for it in _everything(document))
    return is_known and not any(it.code == "JS032" for it in findings.errors)


def _check_resource(resource: Resource, findings: Findings) -> None:
    root = resource.vertex
    slots = [it for it in vertices(root) if it.is_slot]
    if len(slots) > 1:
        says = f"has a second slot, after that of line {slots[0].at.line}"
        findings.wrong(
            "JS025", slots[1].at, says, "keep one `replicas`, or slot, and write count in the others"
        )
    nodes = [it for it in vertices(root) if it.type == "node"]
    for outer in nodes:
        for inner in (it for held in outer.holds for it in vertices(held)):
            if inner.type == "node":
                findings.wrong("JS026", inner.at, "is a node in a node", "write the nodes beside each other")


def _check_references(document: Document, findings: Findings) -> None:
    everything: list[Task | Group] = [*_everything(document), *document.groups.values()]
    for it in everything:
        _check_names(it.resources, "resource", document.resources, findings)
        _check_names(it.requires, "requirement", document.requires, findings)


def _everything(document: Document) -> Iterator[Task]:
    yield from document.tasks
    for group in document.groups.values():
        yield from group.tasks


def _check_names(
    expression: Expression | None, what: str, known: Collection[str], findings: Findings
) -> None:
    if expression is None:
        return
    for name in expression.names:
        if name not in known:
            says = f"names the {what} {name!r}, which there is not"
            findings.wrong("JS030", expression.at, says, instead(name, known))


def _check_tops(document: Document, findings: Findings) -> None:
    """Note tasks that may not be at the top."""
    for task in document.tasks:
        if task.is_local:
            do = "move it into a group, or give it resources instead of `local`"
            findings.wrong("JS043", task.at, "is local, and in no group", do)
        elif task.command and task.resources is None:
            says = "has no resources, and is in no group whose it could have; it gets one slot"
            findings.loose("JS044", task.at, says, "add `resources:`")


def _check_groups(document: Document, findings: Findings) -> None:
    """Note groups that may not be at the top."""
    held = {it.group for it in _everything(document) if it.group}
    inside = {it.group for group in document.groups.values() for it in group.tasks if it.group}
    for group in document.groups.values():
        if group.resources is None and group.name not in inside:
            where = "stands at the top" if group.name in held else "stands alone"
            findings.wrong("JS044", group.at, f"has no resources, and {where}", "add `resources:`")


def _check_scheduled(document: Document, findings: Findings) -> None:
    """Note tasks and groups at the top that ask for resources which are not to be scheduled.

    With `schedule: true` anywhere, jobs may ask for such resources only; with `schedule: false`, for none
    that has it.
    """
    if all(it.schedule is None for it in document.resources.values()):
        return
    allowed = schedulable(document)
    inside = {it.group for group in document.groups.values() for it in group.tasks if it.group}
    tops: list[Task | Group] = [*document.tasks, *document.groups.values()]
    asking = [it for it in tops if not (isinstance(it, Group) and it.name in inside)]
    is_marked = any(it.schedule for it in document.resources.values())
    do = f"{'add `schedule: true` to' if is_marked else 'remove `schedule: false` from'} what it needs"
    unknown = {name for it in asking for name in _names(it) if name not in document.resources}
    for it in asking:
        if unknown & set(_names(it)):
            continue
        if it.resources is not None and not allowed & set(it.resources.names):
            which = "not marked as the scheduled ones are" if is_marked else "not to be scheduled"
            says = f"asks for {str(it.resources)!r}, which is {which}"
            findings.wrong("JS071", it.at, says, f"{do}, or move this into a group")
        elif it.resources is None and isinstance(it, Task) and it.command:
            says = "asks for no resources that are scheduled"
            findings.wrong("JS071", it.at, says, "give it some, or move it into a group")
    used = {name for it in asking for name in _names(it)}
    # a name that does not exist may be a misspelled one of these
    for name in sorted(allowed - used if is_marked and not unknown else ()):
        says = "is to be scheduled, and nothing that is submitted asks for it"
        findings.loose("JS072", document.resources[name].at, says, "remove `schedule: true`, or use it")


def _names(asking: Task | Group) -> tuple[str, ...]:
    """Return the resources that a task or group names."""
    return () if asking.resources is None else asking.resources.names


def schedulable(document: Document) -> set[str]:
    """Return the names of the resources that tasks and groups at the top may ask for."""
    marked = {name for name, it in document.resources.items() if it.schedule}
    return marked or {name for name, it in document.resources.items() if it.schedule is not False}


@attrs.frozen(slots=True)
class _Outer:
    """The limits that the groups around a task set, with the names of those groups; None is no limit."""

    limit: timedelta | None = None
    limited_by: str = ""
    room: Resource | None = None
    room_of: str = ""


def check_fit(document: Document, findings: Findings) -> None:
    """Note tasks and groups, at any depth, that do not fit into the group around them."""
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
    """Return the limits that a group sets for its tasks.

    A group that names alternatives, or a resource that does not exist, sets no limit of resources, since its
    share is not known yet.
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
    """Return the shape of several resources together."""
    shapes = [measure(it.vertex) for it in resources]
    return together(shapes) or side_by_side(shapes)


def _times(document: Document, it: Task | Group) -> list[timedelta]:
    """Return the durations that a task or group may have: its own, else those of its resources."""
    if it.attributes.duration is not None:
        return [it.attributes.duration]
    found = (resource.attributes.duration for resource in _named(document, it.resources))
    return [duration for duration in found if duration is not None]


def _named(document: Document, expression: Expression | None) -> Iterator[Resource]:
    names = () if expression is None else expression.names
    return (document.resources[name] for name in names if name in document.resources)
