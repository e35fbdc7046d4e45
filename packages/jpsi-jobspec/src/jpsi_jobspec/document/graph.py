"""The dependency graph of a document: resolves names in scopes, finds cycles, orders tasks. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence

import attrs

from .model import Document, Group, Needed, Task, When
from .problems import Findings, suggest_name


@attrs.frozen(slots=True)
class Edge:
    """A dependency of a task on another."""

    #: The index of the other task in the same list.
    index: int
    #: `ok`, `any`, `failed` or `started`.
    when: str = "ok"
    #: True if each replica waits only for the replica of the same number.
    each: bool = False


@attrs.frozen(slots=True)
class Scope:
    """A list of tasks with the dependencies of each."""

    #: The name of the group that has the tasks; empty at the top.
    name: str
    tasks: tuple[Task, ...]
    #: The dependencies of each task.
    edges: tuple[tuple[Edge, ...], ...]
    #: The indexes of all tasks, each after its dependencies, otherwise in the order of the document.
    order: tuple[int, ...]
    #: The index of the first task that cleans up: local tasks at the end of a group, which always run.
    tail: int


@attrs.frozen(slots=True)
class Graph:
    """The scopes of a document by the names of their groups; the top has the empty name."""

    scopes: Mapping[str, Scope]


def resolve(document: Document, findings: Findings) -> Graph:
    """Return the dependencies in a document; `findings` gets problems with names and order."""
    referenced = _find_referenced_groups(document, findings)
    _check_group_cycles(document, findings)
    scopes = {"": _resolve_scope("", _top_tasks(document, referenced), document, findings)}
    for group in document.groups.values():
        scopes[group.name] = _resolve_scope(group.name, group.tasks, document, findings)
    return Graph(scopes)


def _find_referenced_groups(document: Document, findings: Findings) -> set[str]:
    """Return the groups that some list names; note those that do not exist or are named twice."""
    first: dict[str, Task] = {}
    for task in _all_tasks(document):
        if task.group is None:
            continue
        if task.group not in document.groups:
            message = f"names the group {task.group!r}, which does not exist"
            findings.add_error("JS030", task.at, message, suggest_name(task.group, document.groups))
        elif task.group in first:
            message = f"names the group {task.group!r} again, after line {first[task.group].at.line}"
            findings.add_error("JS033", task.at, message, "copy the group under another name: each runs once")
        else:
            first[task.group] = task
    return set(first)


def _all_tasks(document: Document) -> Iterator[Task]:
    yield from document.tasks
    for group in document.groups.values():
        yield from group.tasks


def _top_tasks(document: Document, referenced: set[str]) -> tuple[Task, ...]:
    """Return the tasks at the top and the groups that no list names, in the order of the document."""
    groups = [
        Task(name=it.name, group=it.name, at=it.at)
        for it in document.groups.values()
        if it.name not in referenced
    ]
    if not groups:
        return document.tasks
    return tuple(sorted((*document.tasks, *groups), key=lambda it: (it.at.line, it.at.column)))


def _check_group_cycles(document: Document, findings: Findings) -> None:
    names = {name: [it.group for it in group.tasks if it.group] for name, group in document.groups.items()}
    index = {name: number for number, name in enumerate(names)}
    dependencies = [[index[it] for it in children if it in index] for children in names.values()]
    cycle = find_cycle(dependencies)
    if cycle:
        known = list(names)
        path = " -> ".join(known[it] for it in (*cycle, cycle[0]))
        at = document.groups[known[cycle[0]]].at
        findings.add_error(
            "JS032", at, f"is a group that holds itself: {path}", "take one of them out of the other"
        )


def _resolve_scope(name: str, tasks: tuple[Task, ...], document: Document, findings: Findings) -> Scope:
    indexes = _index_names(tasks, findings)
    tail = _find_tail(tasks) if name else len(tasks)
    own_edges = [
        _find_edges(number, tasks, indexes, document, name, findings) for number in range(len(tasks))
    ]
    edges = _add_barriers(tasks, own_edges, tail, is_group=bool(name))
    order = _sort_tasks(tasks, edges, findings)
    return Scope(name, tasks, edges, order, tail)


def _index_names(tasks: Sequence[Task], findings: Findings) -> dict[str, int]:
    """Return the index of each name in a list; a group has its own name and that of its task."""
    indexes: dict[str, int] = {}
    for number, task in enumerate(tasks):
        for name in dict.fromkeys((task.name, task.group or task.name)):
            if name in indexes:
                line = tasks[indexes[name]].at.line
                message = f"has the name {name!r}, like the entry in line {line}"
                findings.add_error("JS011", task.at, message, "rename one of them")
            else:
                indexes[name] = number
    return indexes


def _find_tail(tasks: Sequence[Task]) -> int:
    """Return the index of the first local task of the tail of a list; a list of local tasks has no tail."""
    start = len(tasks)
    while start and tasks[start - 1].is_local:
        start -= 1
    return start or len(tasks)


def _find_edges(  # noqa: PLR0913, PLR0917  what a name is looked up in
    number: int,
    tasks: Sequence[Task],
    indexes: Mapping[str, int],
    document: Document,
    scope: str,
    findings: Findings,
) -> list[Edge] | None:
    """Return the dependencies that `depends_on` gives a task and its group; None if neither has any."""
    task = tasks[number]
    group = document.groups.get(task.group) if task.group else None
    needs_lists = [it for it in (task.depends_on, group.depends_on if group else None) if it is not None]
    if not needs_lists:
        return None
    edges: dict[int, Edge] = {}
    for need in (need for needs in needs_lists for need in needs):
        index = indexes.get(need.name)
        if index is None:
            if need.name:
                _report_unknown_name(need, indexes, document, scope, findings)
        elif not tasks[index].is_named:
            # the id contains its place in the list, which changes as lines are added
            message = f"names {need.name!r}, which jpsi generated for a task without a name"
            findings.add_error("JS053", need.at, message, "give that task a name")
        elif index == number:
            findings.add_error("JS052", need.at, f"is {need.name!r} itself", "remove it")
        else:
            _check_need(need, task, tasks[index], edges.get(index), findings)
            if not scope and need.each and task.replicas > 1:
                message = (
                    f"waits for each replica of {need.name!r}, and those of a task in no group are one job"
                )
                findings.add_error("JS055", need.at, message, "put both into a group, or remove `each`")
            edges[index] = Edge(index, need.when, need.each)
    return list(edges.values())


def _check_need(need: Needed, task: Task, other: Task, known: Edge | None, findings: Findings) -> None:
    """Note a dependency that conflicts with its tasks, or with an earlier one on the same task."""
    if need.each and task.replicas != other.replicas:
        message = f"waits for each of {other.replicas} replicas, and {task.replicas} wait"
        hint = "give both as many replicas, or remove `each`"
        findings.add_error("JS050", need.at, message, hint)
    if known is None:
        return
    message = f"names {need.name!r} again"
    if (known.when, known.each) == (need.when, need.each):
        findings.add_warning("JS050", need.at, message, "remove one of the two")
    else:
        findings.add_error(
            "JS050", need.at, f"{message}, with another end", "say once after which end it runs"
        )


def _report_unknown_name(
    need: Needed, indexes: Mapping[str, int], document: Document, scope: str, findings: Findings
) -> None:
    owners = [name for name, group in document.groups.items() if _has(group, need.name)]
    if any(it.name == need.name for it in document.tasks):
        owners.append("")
    if scope and need.name in document.groups:
        message = f"names the group {need.name!r}, which is not in {scope!r}"
        findings.add_error(
            "JS054", need.at, message, f"move it to the group: `depends_on` of {scope!r} itself"
        )
    elif owners:
        where = f"the group {owners[0]!r}" if owners[0] else "the top"
        message = f"names {need.name!r}, which is in {where} and not in this list"
        group = scope or owners[0]
        findings.add_error(
            "JS054", need.at, message, f"move it to the group: wait for, or in, {group!r} as a whole"
        )
    else:
        message = f"names {need.name!r}, which does not exist"
        findings.add_error("JS050", need.at, message, suggest_name(need.name, indexes))


def _has(group: Group, name: str) -> bool:
    return any(it.name == name for it in group.tasks)


def _add_barriers(
    tasks: Sequence[Task], own_edges: Sequence[list[Edge] | None], tail: int, *, is_group: bool
) -> tuple[tuple[Edge, ...], ...]:
    """Return the edges in a group: a local task blocks those after it, and waits for those before it.

    A local task with `depends_on` waits only for the tasks that it names, and for the last local task before
    it. Others wait for a service until it has started, since it does not end.
    """
    found: list[tuple[Edge, ...]] = []
    barrier: int | None = None
    pending: list[int] = []
    for number, task in enumerate(tasks):
        edges = {it.index: it for it in own_edges[number] or ()}
        is_barrier = is_group and task.is_local and not task.is_service
        if is_barrier and own_edges[number] is None:
            edges |= {it: Edge(it) for it in pending if not tasks[it].is_service}
            pending = []
        if barrier is not None:
            edges.setdefault(barrier, Edge(barrier))
        found.append(tuple(_adapt_edge(it, task, tasks, is_tail=number >= tail) for it in edges.values()))
        if is_barrier:
            barrier = number
        else:
            pending.append(number)
    return tuple(found)


def _adapt_edge(edge: Edge, task: Task, tasks: Sequence[Task], *, is_tail: bool) -> Edge:
    if tasks[edge.index].is_service:
        return attrs.evolve(edge, when="started")
    when = task.when or (When.ALWAYS if is_tail else When.ON_SUCCESS)
    return attrs.evolve(edge, when="any") if when is not When.ON_SUCCESS and edge.when == "ok" else edge


def _sort_tasks(
    tasks: Sequence[Task], edges: Sequence[Sequence[Edge]], findings: Findings
) -> tuple[int, ...]:
    dependencies = [[it.index for it in own_edges] for own_edges in edges]
    order = topological_order(dependencies)
    if len(order) < len(tasks):
        cycle = find_cycle(dependencies)
        path = " -> ".join(tasks[it].name for it in (*cycle, cycle[0]))
        at = tasks[cycle[0]].at
        findings.add_error(
            "JS051", at, f"waits in the end for itself: {path}", "remove one of these dependencies"
        )
    return tuple(order)


def topological_order(dependencies: Sequence[Sequence[int]]) -> list[int]:
    """Return an order in which each index comes after those it wants, without the members of cycles.

    Of the indexes that may come next, the lowest does.
    """
    remaining = [len(set(it)) for it in dependencies]
    after: list[list[int]] = [[] for _ in dependencies]
    for number, own_edges in enumerate(dependencies):
        for it in set(own_edges):
            after[it].append(number)
    ready = [number for number, count in enumerate(remaining) if not count]
    order = []
    while ready:
        number = heapq.heappop(ready)
        order.append(number)
        for it in after[number]:
            remaining[it] -= 1
            if not remaining[it]:
                heapq.heappush(ready, it)
    return order


def find_cycle(dependencies: Sequence[Sequence[int]]) -> list[int]:
    """Return the members of one cycle, each wanting the next one; empty if there is none.

    >>> find_cycle([[1], [2], [1]]), find_cycle([[1], []])
    ([1, 2], [])
    """
    done: set[int] = set()
    for start in range(len(dependencies)):
        path: list[int] = []
        indexes: dict[int, int] = {}
        stack = [(start, iter(dependencies[start]))] if start not in done else []
        if stack:
            path.append(start)
            indexes[start] = 0
        while stack:
            number, remaining = stack[-1]
            following = next((it for it in remaining if it not in done), None)
            if following is None:
                stack.pop()
                done.add(number)
                del indexes[path.pop()]
            elif following in indexes:
                return path[indexes[following] :]
            else:
                indexes[following] = len(path)
                path.append(following)
                stack.append((following, iter(dependencies[following])))
    return []
