"""The graph of the tasks of a workflow: resolves names in scopes, finds cycles, orders tasks. Pure.

The rules check a document by it, and the planner follows its order. (The graph of nodes and cores in a job
document of J/PSI is `jpsi.document.graph`.)
"""

from __future__ import annotations

import graphlib
import heapq
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

import attrs

from .model import Document, Needed, Task, When
from .problems import Findings, suggest_name

T = TypeVar("T", bound=Hashable)


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


def resolve(document: Document, findings: Findings) -> dict[str, Scope]:
    """Return the scopes by the names of their groups; `findings` gets problems with names and order.

    The top has the empty name.
    """
    referenced = _find_referenced_groups(document, findings)
    _check_group_cycles(document, findings)
    # a group whose name is wrong may have the empty one
    lists = [
        ("", _top_tasks(document, referenced)),
        *((it.name, it.tasks) for it in document.groups.values()),
    ]
    return {name: _Resolver(name, tasks, document, findings).scope() for name, tasks in lists}


def _find_referenced_groups(document: Document, findings: Findings) -> set[str]:
    """Return the groups that some list names; note those that do not exist or are named twice."""
    first: dict[str, Task] = {}
    for task in document.all_tasks():
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


def _top_tasks(document: Document, referenced: set[str]) -> tuple[Task, ...]:
    """Return the tasks at the top and the groups that no list names, in the order of the document."""
    own = (it for it in document.groups.values() if it.name not in referenced)
    groups = [Task(name=it.name, group=it.name, at=it.at) for it in own]
    if not groups:
        return document.tasks
    return tuple(sorted((*document.tasks, *groups), key=lambda it: (it.at.line, it.at.column)))


def _check_group_cycles(document: Document, findings: Findings) -> None:
    groups = document.groups
    inside = {
        name: [it.group for it in group.tasks if it.group and it.group in groups]
        for name, group in groups.items()
    }
    if cycle := find_cycle(inside):
        message = f"is a group that holds itself: {' -> '.join((*cycle, cycle[0]))}"
        hint = "take one of them out of the other"
        findings.add_error("JS032", groups[cycle[0]].at, message, hint)


@attrs.define(slots=True)
class _Resolver:
    """The resolver of the names in one list of tasks."""

    _name: str
    _tasks: tuple[Task, ...]
    _document: Document
    _findings: Findings

    def scope(self) -> Scope:
        """Return the tasks with their dependencies."""
        tail = self._find_tail() if self._name else len(self._tasks)
        indexes = self._index_names()
        edges = self._add_barriers([self._find_edges(it, indexes) for it in self._tasks], tail)
        return Scope(self._name, self._tasks, edges, self._sort(edges), tail)

    def _index_names(self) -> dict[str, int]:
        """Return the index of each name in the list; a group has its own name and that of its task."""
        indexes: dict[str, int] = {}
        for number, task in enumerate(self._tasks):
            for name in dict.fromkeys((task.name, task.group or task.name)):
                first = indexes.setdefault(name, number)
                if first != number:
                    line = self._tasks[first].at.line
                    message = f"has the name {name!r}, like the entry in line {line}"
                    self._findings.add_error("JS011", task.at, message, "rename one of them")
        return indexes

    def _find_tail(self) -> int:
        """Return the index of the first local task of the tail; a list of local tasks has no tail."""
        start = len(self._tasks)
        while start and self._tasks[start - 1].is_local:
            start -= 1
        return start or len(self._tasks)

    def _find_edges(self, task: Task, indexes: Mapping[str, int]) -> list[Edge] | None:
        """Return the dependencies that `depends_on` gives a task and its group; None if neither has any."""
        group = self._document.groups.get(task.group) if task.group else None
        needs_lists = [it.depends_on for it in (task, group) if it is not None and it.depends_on is not None]
        if not needs_lists:
            return None
        edges: dict[int, Edge] = {}
        for need in (need for needs in needs_lists for need in needs):
            index = indexes.get(need.name)
            if index is None:
                self._report_unknown_name(need, indexes)
            elif self._is_possible(need, task, self._tasks[index], edges.get(index)):
                edges[index] = Edge(index, need.when, need.each)
        return list(edges.values())

    def _is_possible(self, need: Needed, task: Task, other: Task, known: Edge | None) -> bool:
        """Return True if a task may depend on another one; note what is wrong with that.

        `known` is an earlier dependency on the same task.
        """
        add_error = self._findings.add_error
        if not other.is_named:
            # the id contains its place in the list, which changes as lines are added
            message = f"names {need.name!r}, which jpsi generated for a task without a name"
            add_error("JS053", need.at, message, "give that task a name")
            return False
        if other is task:
            add_error("JS052", need.at, f"is {need.name!r} itself", "remove it")
            return False
        if need.each and task.replicas != other.replicas:
            message = f"waits for each of {other.replicas} replicas, and {task.replicas} wait"
            add_error("JS050", need.at, message, "give both as many replicas, or remove `each`")
        if need.each and not self._name and task.replicas > 1:
            message = f"waits for each replica of {need.name!r}, and those of a task in no group are one job"
            add_error("JS055", need.at, message, "put both into a group, or remove `each`")
        message = f"names {need.name!r} again"
        if known is not None and (known.when, known.each) == (need.when, need.each):
            self._findings.add_warning("JS050", need.at, message, "remove one of the two")
        elif known is not None:
            add_error("JS050", need.at, f"{message}, with another end", "say once after which end it runs")
        return True

    def _report_unknown_name(self, need: Needed, indexes: Mapping[str, int]) -> None:
        if not need.name:
            return
        lists = {**{name: it.tasks for name, it in self._document.groups.items()}, "": self._document.tasks}
        owners = [name for name, tasks in lists.items() if any(it.name == need.name for it in tasks)]
        code, message = "JS050", f"names {need.name!r}, which does not exist"
        if self._name and need.name in self._document.groups:
            code, message = "JS054", f"names the group {need.name!r}, which is not in {self._name!r}"
            hint = f"move it to the group: `depends_on` of {self._name!r} itself"
        elif owners:
            where = f"the group {owners[0]!r}" if owners[0] else "the top"
            code, message = "JS054", f"names {need.name!r}, which is in {where} and not in this list"
            hint = f"move it to the group: wait for, or in, {self._name or owners[0]!r} as a whole"
        else:
            hint = suggest_name(need.name, indexes)
        self._findings.add_error(code, need.at, message, hint)

    def _add_barriers(
        self, own_edges: Sequence[list[Edge] | None], tail: int
    ) -> tuple[tuple[Edge, ...], ...]:
        """Return the edges in a group: a local task blocks those after it, and waits for those before it.

        A local task with `depends_on` waits only for the tasks that it names, and for the last local task
        before it. Others wait for a service until it has started, since it does not end.
        """
        found: list[tuple[Edge, ...]] = []
        barrier: int | None = None
        pending: list[int] = []
        for number, task in enumerate(self._tasks):
            edges = {it.index: it for it in own_edges[number] or ()}
            is_barrier = bool(self._name) and task.is_local and not task.is_service
            if is_barrier and own_edges[number] is None:
                edges |= {it: Edge(it) for it in pending if not self._tasks[it].is_service}
                pending = []
            if barrier is not None:
                edges.setdefault(barrier, Edge(barrier))
            when = task.when or (When.ALWAYS if number >= tail else When.ON_SUCCESS)
            found.append(tuple(self._adapt_edge(it, when) for it in edges.values()))
            if is_barrier:
                barrier = number
            else:
                pending.append(number)
        return tuple(found)

    def _adapt_edge(self, edge: Edge, when: When) -> Edge:
        if self._tasks[edge.index].is_service:
            return attrs.evolve(edge, when="started")
        is_any = when is not When.ON_SUCCESS and edge.when == "ok"
        return attrs.evolve(edge, when="any") if is_any else edge

    def _sort(self, edges: Sequence[Sequence[Edge]]) -> tuple[int, ...]:
        """Return an order in which each task comes after its dependencies; none if there is a cycle.

        Of the tasks that may come next, the first one in the document does.
        """
        dependencies = {number: [it.index for it in own] for number, own in enumerate(edges)}
        if cycle := find_cycle(dependencies):
            path = " -> ".join(self._tasks[it].name for it in (*cycle, cycle[0]))
            message = f"waits in the end for itself: {path}"
            self._findings.add_error(
                "JS051", self._tasks[cycle[0]].at, message, "remove one of these dependencies"
            )
            return ()
        sorter = graphlib.TopologicalSorter(dependencies)
        sorter.prepare()
        ready: list[int] = []
        order: list[int] = []
        while sorter.is_active():
            for it in sorter.get_ready():
                heapq.heappush(ready, it)
            order.append(heapq.heappop(ready))
            sorter.done(order[-1])
        return tuple(order)


def find_cycle(dependencies: Mapping[T, Iterable[T]]) -> list[T]:
    """Return the members of one cycle, each wanting the next one; empty if there is none.

    >>> find_cycle({0: [1], 1: [2], 2: [1]}), find_cycle({0: [1], 1: []})
    ([1, 2], [])
    """
    try:
        graphlib.TopologicalSorter(dependencies).prepare()
    except graphlib.CycleError as e:
        # each is a dependency of the next one, and the last one is the first one
        cycle: list[T] = e.args[1][:0:-1]
        first = cycle.index(next(it for it in dependencies if it in cycle))
        return cycle[first:] + cycle[:first]
    return []
