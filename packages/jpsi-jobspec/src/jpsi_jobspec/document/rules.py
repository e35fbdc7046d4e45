"""Checks the rules about a whole document: references, and limits of resources and time. Pure.

The loader calls it once all parts of a document were read.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta

import attrs

from .graph import resolve
from .model import Document, Expression, Group, Requester, Resource, Task
from .problems import Findings, suggest_name
from .shape import Shape, combine_pieces, find_excess, measure, merge_alike, vertices


def check(document: Document, findings: Findings) -> None:
    """Note every problem of a document whose parts have been read."""
    for resource in document.resources.values():
        _check_resource(resource, findings)
    _check_references(document, findings)
    resolve(document, findings)
    _check_top_tasks(document, findings)
    if _is_nested(document, findings):
        _check_groups(document, findings)
        check_fit(document, findings)
        _check_scheduled(document, findings)


def _is_nested(document: Document, findings: Findings) -> bool:
    """Return True if the nesting is known: each named group exists, and no group is inside of itself."""
    is_known = all(it.group is None or it.group in document.groups for it in document.all_tasks())
    return is_known and not any(it.code == "JS032" for it in findings.errors)


def _check_resource(resource: Resource, findings: Findings) -> None:
    inside = list(vertices(resource.vertex))
    slots = [it for it in inside if it.is_slot]
    if len(slots) > 1:
        message = f"has a second slot, after that of line {slots[0].at.line}"
        hint = "keep one `replicas`, or slot, and write count in the others"
        findings.add_error("JS025", slots[1].at, message, hint)
    for outer in (it for it in inside if it.type == "node"):
        for inner in (it for child in outer.children for it in vertices(child) if it.type == "node"):
            findings.add_error("JS026", inner.at, "is a node in a node", "write the nodes beside each other")


def _check_references(document: Document, findings: Findings) -> None:
    for it in (*document.all_tasks(), *document.groups.values()):
        _check_names(it.resources, "resource", document.resources, findings)
        _check_names(it.requires, "requirement", document.requires, findings)


def _check_names(
    expression: Expression | None, what: str, known: Collection[str], findings: Findings
) -> None:
    if expression is None:
        return
    for name in expression.names:
        if name not in known:
            message = f"names the {what} {name!r}, which does not exist"
            findings.add_error("JS030", expression.at, message, suggest_name(name, known))


def _check_top_tasks(document: Document, findings: Findings) -> None:
    """Note tasks that may not be at the top."""
    for task in document.tasks:
        if task.is_local:
            hint = "move it into a group, or give it resources instead of `local`"
            findings.add_error("JS043", task.at, "is local, but in no group", hint)
        elif task.command and task.resources is None:
            message = "has no resources, and is in no group that has some; it gets one slot"
            findings.add_warning("JS044", task.at, message, "add `resources:`")


def _check_groups(document: Document, findings: Findings) -> None:
    """Note groups that may not be at the top."""
    referenced = {it.group for it in document.tasks}
    for it in document.top_items():
        if isinstance(it, Group) and it.resources is None:
            where = "stands at the top" if it.name in referenced else "stands alone"
            findings.add_error("JS044", it.at, f"has no resources, and {where}", "add `resources:`")


def _check_scheduled(document: Document, findings: Findings) -> None:
    """Note tasks and groups at the top that ask for resources which are not to be scheduled.

    With `schedule: true` anywhere, jobs may ask for such resources only; with `schedule: false`, for none
    that has it.
    """
    if all(it.schedule is None for it in document.resources.values()):
        return
    allowed = schedulable(document)
    is_marked = any(it.schedule for it in document.resources.values())
    reason = "not marked as the scheduled ones are" if is_marked else "not to be scheduled"
    hint = f"{'add `schedule: true` to' if is_marked else 'remove `schedule: false` from'} what it needs"
    used: set[str] = set()
    for it in document.top_items():
        if it.resources is None:
            if isinstance(it, Task) and it.command:
                message = "asks for no resources that are scheduled"
                findings.add_error("JS071", it.at, message, "give it some, or move it into a group")
            continue
        names = set(it.resources.names)
        used |= names
        if names <= document.resources.keys() and not allowed & names:
            message = f"asks for {str(it.resources)!r}, which is {reason}"
            findings.add_error("JS071", it.at, message, f"{hint}, or move this into a group")
    # a name that does not exist may be a misspelled one of these
    if is_marked and used <= document.resources.keys():
        _warn_of_unused(document, allowed - used, findings)


def _warn_of_unused(document: Document, names: set[str], findings: Findings) -> None:
    for name in sorted(names):
        message = "has `schedule: true`, but no task or group at the top asks for it"
        at = document.resources[name].at
        findings.add_warning("JS072", at, message, "remove `schedule: true`, or use it")


def schedulable(document: Document) -> set[str]:
    """Return the names of the resources that tasks and groups at the top may ask for."""
    marked = {name for name, it in document.resources.items() if it.schedule}
    return marked or {name for name, it in document.resources.items() if it.schedule is not False}


@attrs.frozen(slots=True)
class _OuterLimits:
    """The limits that the groups around a task set, with the names of those groups; None is no limit."""

    duration: timedelta | None = None
    duration_group: str = ""
    resource: Resource | None = None
    resource_group: str = ""


def check_fit(document: Document, findings: Findings) -> None:
    """Note tasks and groups, at any depth, that do not fit into the group around them."""
    for it in document.top_items():
        if isinstance(it, Group):
            _check_inside(document, it, _OuterLimits(), findings)


def _check_inside(document: Document, group: Group, outer: _OuterLimits, findings: Findings) -> None:
    limits = _narrow_limits(document, group, outer)
    for task in group.tasks:
        inner_group = document.groups.get(task.group) if task.group else None
        inner: Requester = inner_group or task
        _check_time(document, inner, limits, findings)
        _check_capacity(document, inner, limits, findings)
        if inner_group is not None:
            _check_inside(document, inner_group, limits, findings)


def _narrow_limits(document: Document, group: Group, outer: _OuterLimits) -> _OuterLimits:
    """Return the limits that a group sets for its tasks.

    A group that names alternatives, or a resource that does not exist, sets no limit of resources, since its
    share is not known yet.
    """
    named = _named_resources(document, group)
    count = 0 if group.resources is None else len(group.resources.names)
    found = outer
    if count == len(named) == 1:
        found = attrs.evolve(found, resource=named[0], resource_group=group.name)
    elif count:
        found = attrs.evolve(found, resource=None)
    durations = _durations(document, group)
    if durations and (count <= 1 or group.attributes.duration is not None) and durations[0]:
        found = attrs.evolve(found, duration=durations[0], duration_group=group.name)
    return found


def _check_time(document: Document, inner: Requester, outer: _OuterLimits, findings: Findings) -> None:
    for duration in _durations(document, inner):
        if outer.duration and (not duration or duration > outer.duration):
            limit = f"in the group {outer.duration_group!r} that has {outer.duration}"
            message = f"may run {duration or 'without limit'}, {limit}"
            findings.add_error("JS063", inner.at, message, "give it less time, or the group more")


def _check_capacity(document: Document, inner: Requester, outer: _OuterLimits, findings: Findings) -> None:
    if outer.resource is None:
        return
    alternatives = () if inner.resources is None else inner.resources.alternatives
    resources = [
        [document.resources[it] for it in names if it in document.resources] for names in alternatives
    ]
    capacity = measure(outer.resource.vertex)
    found = [find_excess(_sum(it), capacity) if it else [] for it in resources]
    add_problem = findings.add_error if all(found) else findings.add_warning
    for excesses in filter(None, found):
        message = f"asks for {', '.join(excesses)} that the group {outer.resource_group!r} has"
        add_problem("JS070", inner.at, message, f"ask for less, or give {outer.resource.name!r} more")


def _sum(resources: Sequence[Resource]) -> Shape:
    """Return the shape of several resources together."""
    shapes = [measure(it.vertex) for it in resources]
    return merge_alike(shapes) or combine_pieces(shapes)


def _durations(document: Document, it: Requester) -> list[timedelta]:
    """Return the durations that a task or group may have: its own, else those of its resources."""
    if it.attributes.duration is not None:
        return [it.attributes.duration]
    found = (resource.attributes.duration for resource in _named_resources(document, it))
    return [duration for duration in found if duration is not None]


def _named_resources(document: Document, it: Requester) -> list[Resource]:
    names = () if it.resources is None else it.resources.names
    return [document.resources[name] for name in names if name in document.resources]
