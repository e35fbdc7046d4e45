"""The dependency graph of a document: resolves names in scopes, finds cycles, orders tasks. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence

import attrs

from .model import Document, Group, Needed, Task, When
from .problems import Findings, instead


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
    referenced = _referenced(document, findings)
    _check_group_cycles(document, findings)
    scopes = {"": _scope("", _top(document, referenced), document, findings)}
    for group in document.groups.values():
        scopes[group.name] = _scope(group.name, group.tasks, document, findings)
    return Graph(scopes)


def _referenced(document: Document, findings: Findings) -> set[str]:
    """Return the groups that some list names; note those that do not exist or are named twice."""
    first: dict[str, Task] = {}
    for task in _all_tasks(document):
        if task.group is None:
            continue
        if task.group not in document.groups:
            says = f"names the group {task.group!r}, which there is not"
            findings.wrong("JS030", task.at, says, instead(task.group, document.groups))
        elif task.group in first:
            says = f"names the group {task.group!r} again, after line {first[task.group].at.line}"
            findings.wrong("JS033", task.at, says, "copy the group under another name: each runs once")
        else:
            first[task.group] = task
    return set(first)


def _all_tasks(document: Document) -> Iterator[Task]:
    yield from document.tasks
    for group in document.groups.values():
        yield from group.tasks


def _top(document: Document, referenced: set[str]) -> tuple[Task, ...]:
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
    wanted = [[index[it] for it in held if it in index] for held in names.values()]
    cycle = find_cycle(wanted)
    if cycle:
        known = list(names)
        path = " -> ".join(known[it] for it in (*cycle, cycle[0]))
        at = document.groups[known[cycle[0]]].at
        findings.wrong(
            "JS032", at, f"is a group that holds itself: {path}", "take one of them out of the other"
        )


def _scope(name: str, tasks: tuple[Task, ...], document: Document, findings: Findings) -> Scope:
    places = _places(tasks, findings)
    tail = _tail(tasks) if name else len(tasks)
    needed = [_edges(number, tasks, places, document, name, findings) for number in range(len(tasks))]
    edges = _with_barriers(tasks, needed, tail, is_group=bool(name))
    order = _ordered(tasks, edges, findings)
    return Scope(name, tasks, edges, order, tail)


def _places(tasks: Sequence[Task], findings: Findings) -> dict[str, int]:
    """Return the index of each name in a list; a group has its own name and that of its task."""
    places: dict[str, int] = {}
    for number, task in enumerate(tasks):
        for name in dict.fromkeys((task.name, task.group or task.name)):
            if name in places:
                line = tasks[places[name]].at.line
                says = f"is called {name!r}, as what stands in line {line}"
                findings.wrong("JS011", task.at, says, "rename one of them")
            else:
                places[name] = number
    return places


def _tail(tasks: Sequence[Task]) -> int:
    """Return the index of the first local task of the tail of a list; a list of local tasks has no tail."""
    start = len(tasks)
    while start and tasks[start - 1].is_local:
        start -= 1
    return start or len(tasks)


def _edges(  # noqa: PLR0913, PLR0917  what a name is looked up in
    number: int,
    tasks: Sequence[Task],
    places: Mapping[str, int],
    document: Document,
    scope: str,
    findings: Findings,
) -> list[Edge] | None:
    """Return the dependencies that `depends_on` gives a task and its group; None if neither has any."""
    task = tasks[number]
    group = document.groups.get(task.group) if task.group else None
    given = [it for it in (task.depends_on, group.depends_on if group else None) if it is not None]
    if not given:
        return None
    edges: dict[int, Edge] = {}
    for need in (need for needs in given for need in needs):
        place = places.get(need.name)
        if place is None:
            if need.name:
                _tell_unknown(need, places, document, scope, findings)
        elif not tasks[place].is_named:
            # the id contains its place in the list, which changes as lines are added
            says = f"names {need.name!r}, as jpsi calls a task that has no name"
            findings.wrong("JS053", need.at, says, "give that task a name")
        elif place == number:
            findings.wrong("JS052", need.at, f"is {need.name!r} itself", "remove it")
        else:
            _check_need(need, task, tasks[place], edges.get(place), findings)
            if not scope and need.each and task.replicas > 1:
                says = f"waits for each replica of {need.name!r}, and those of a task in no group are one job"
                findings.wrong("JS055", need.at, says, "put both into a group, or remove `each`")
            edges[place] = Edge(place, need.when, need.each)
    return list(edges.values())


def _check_need(need: Needed, task: Task, other: Task, known: Edge | None, findings: Findings) -> None:
    """Note a dependency that conflicts with its tasks, or with an earlier one on the same task."""
    if need.each and task.replicas != other.replicas:
        says = f"waits for each of {other.replicas} replicas, and {task.replicas} wait"
        do = "give both as many replicas, or remove `each`"
        findings.wrong("JS050", need.at, says, do)
    if known is None:
        return
    says = f"names {need.name!r} again"
    if (known.when, known.each) == (need.when, need.each):
        findings.loose("JS050", need.at, says, "remove one of the two")
    else:
        findings.wrong("JS050", need.at, f"{says}, with another end", "say once after which end it runs")


def _tell_unknown(
    need: Needed, places: Mapping[str, int], document: Document, scope: str, findings: Findings
) -> None:
    owners = [name for name, group in document.groups.items() if _has(group, need.name)]
    if any(it.name == need.name for it in document.tasks):
        owners.append("")
    if scope and need.name in document.groups:
        says = f"names the group {need.name!r}, which does not stand in {scope!r}"
        findings.wrong("JS054", need.at, says, f"move it to the group: `depends_on` of {scope!r} itself")
    elif owners:
        where = f"the group {owners[0]!r}" if owners[0] else "the top"
        says = f"names {need.name!r}, which stands in {where} and not in this list"
        group = scope or owners[0]
        findings.wrong("JS054", need.at, says, f"move it to the group: wait for, or in, {group!r} as a whole")
    else:
        says = f"names {need.name!r}, which there is not"
        findings.wrong("JS050", need.at, says, instead(need.name, places))


def _has(group: Group, name: str) -> bool:
    return any(it.name == name for it in group.tasks)


def _with_barriers(
    tasks: Sequence[Task], needed: Sequence[list[Edge] | None], tail: int, *, is_group: bool
) -> tuple[tuple[Edge, ...], ...]:
    """Return the edges in a group: a local task blocks those after it, and waits for those before it.

    A local task with `depends_on` waits only for the tasks that it names, and for the last local task before
    it. Others wait for a service until it has started, since it does not end.
    """
    found: list[tuple[Edge, ...]] = []
    barrier: int | None = None
    pending: list[int] = []
    for number, task in enumerate(tasks):
        edges = {it.index: it for it in needed[number] or ()}
        is_barrier = is_group and task.is_local and not task.is_service
        if is_barrier and needed[number] is None:
            edges |= {it: Edge(it) for it in pending if not tasks[it].is_service}
            pending = []
        if barrier is not None:
            edges.setdefault(barrier, Edge(barrier))
        found.append(tuple(_meant(it, task, tasks, is_tail=number >= tail) for it in edges.values()))
        if is_barrier:
            barrier = number
        else:
            pending.append(number)
    return tuple(found)


def _meant(edge: Edge, task: Task, tasks: Sequence[Task], *, is_tail: bool) -> Edge:
    if tasks[edge.index].is_service:
        return attrs.evolve(edge, when="started")
    when = task.when or (When.ALWAYS if is_tail else When.ON_SUCCESS)
    return attrs.evolve(edge, when="any") if when is not When.ON_SUCCESS and edge.when == "ok" else edge


def _ordered(tasks: Sequence[Task], edges: Sequence[Sequence[Edge]], findings: Findings) -> tuple[int, ...]:
    wanted = [[it.index for it in needed] for needed in edges]
    order = topological(wanted)
    if len(order) < len(tasks):
        cycle = find_cycle(wanted)
        path = " -> ".join(tasks[it].name for it in (*cycle, cycle[0]))
        at = tasks[cycle[0]].at
        findings.wrong(
            "JS051", at, f"waits in the end for itself: {path}", "remove one of these dependencies"
        )
    return tuple(order)


def topological(wanted: Sequence[Sequence[int]]) -> list[int]:
    """Return an order in which each index comes after those it wants, without the members of cycles.

    Of the indexes that may come next, the lowest does.
    """
    left = [len(set(it)) for it in wanted]
    after: list[list[int]] = [[] for _ in wanted]
    for number, needed in enumerate(wanted):
        for it in set(needed):
            after[it].append(number)
    ready = [number for number, count in enumerate(left) if not count]
    order = []
    while ready:
        number = heapq.heappop(ready)
        order.append(number)
        for it in after[number]:
            left[it] -= 1
            if not left[it]:
                heapq.heappush(ready, it)
    return order


def find_cycle(wanted: Sequence[Sequence[int]]) -> list[int]:
    """Return the members of one cycle, each wanting the next one; empty if there is none.

    >>> find_cycle([[1], [2], [1]]), find_cycle([[1], []])
    ([1, 2], [])
    """
    done: set[int] = set()
    for start in range(len(wanted)):
        path: list[int] = []
        places: dict[int, int] = {}
        stack = [(start, iter(wanted[start]))] if start not in done else []
        if stack:
            path.append(start)
            places[start] = 0
        while stack:
            number, left = stack[-1]
            following = next((it for it in left if it not in done), None)
            if following is None:
                stack.pop()
                done.add(number)
                del places[path.pop()]
            elif following in places:
                return path[places[following] :]
            else:
                places[following] = len(path)
                path.append(following)
                stack.append((following, iter(wanted[following])))
    return []
