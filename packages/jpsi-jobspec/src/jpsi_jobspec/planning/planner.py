"""Plans a document for a target: its jobs, arrays and allocations, with resources and reasons. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta

import attrs

from ..document import (
    NO_ATTRIBUTES,
    Attributes,
    Document,
    Findings,
    Graph,
    Group,
    Position,
    Scope,
    Shape,
    Step,
    Task,
    When,
    resolve,
)
from .capacity import Capacity
from .chooser import Choice, Chooser
from .constraints import Mapped
from .flattening import flatten
from .limits import Limit
from .machine import Machine
from .nodes import multinode_entries, slots_of_nodes
from .plan import After, Entry, Kind, Plan
from .replicas import one_slot, share_allocation, total_duration
from .subsystems import Subsystems


@attrs.frozen(slots=True, kw_only=True)
class Site:
    """The facts about a target that a plan depends on."""

    #: The name of an executor, or of a configured target.
    target: str = "local"
    subsystems: Subsystems = attrs.field(factory=dict)
    #: True if a requirement of an unknown subsystem keeps a document from running.
    is_missing_error: bool = False
    #: True if there is one machine only, which then stands for all nodes that jobs ask for.
    is_one_machine: bool = False
    #: The hardware of that machine; None if it is not known, or the target is no single local machine.
    machine: Machine | None = None
    #: True if a job may have slots of several kinds; queried only if the document needs that.
    is_heterogeneous: bool = False
    #: True if the target is a remote host, which a URL leads to.
    is_remote: bool = False
    #: The walltime of jobs without a duration on targets that need one, such as pilots; None on other
    #: targets.
    default_duration: timedelta | None = None
    #: The option of a batch system that expresses a requirement, by `subsystem.field`.
    constraints: Mapping[str, Mapped] = attrs.field(factory=dict)
    #: The limits of its queues; queried only if the document leaves a choice.
    limits: tuple[Limit, ...] = ()


def make_plan(document: Document, site: Site, findings: Findings) -> Plan:
    """Return the plan of a document.

    Raises:
        WorkflowError: the document cannot run on the target; the error names every reason.
    """
    plan = draft_plan(document, site, findings)
    findings.check()
    return plan


def draft_plan(document: Document, site: Site, findings: Findings) -> Plan:
    """Return the plan of a document; `findings` gets the reasons why it cannot run."""
    planner = _Planner(document, site, findings)
    return Plan(source=document.source, target=site.target, entries=planner.plan_top())


class _Planner:
    def __init__(self, document: Document, site: Site, findings: Findings) -> None:
        self._document = document
        self._site = site
        self._findings = findings
        self._graph: Graph = resolve(document, findings)
        # positions of entries in groups
        self._positions: dict[str, Position] = {}
        self._chooser = Chooser(
            document=document,
            subsystems=site.subsystems,
            is_missing_error=site.is_missing_error,
            is_one_machine=site.is_one_machine,
            is_heterogeneous=site.is_heterogeneous,
            constraints=site.constraints,
            limits=site.limits,
            machine=site.machine,
            findings=findings,
        )

    def plan_top(self) -> tuple[Entry, ...]:
        """Return the entries that are submitted."""
        scope = self._graph.scopes[""]
        entries = [self._plan_top_task(scope, number) for number in scope.order]
        found = tuple(_with_shown(_with_watch_barriers(entries)))
        return found if self._site.is_one_machine else tuple(_with_staged_paths(found))

    def _files(self, steps: Iterable[Step]) -> tuple[str, ...]:
        """Return what happens to the files of steps."""
        remote_staging = "is looked for by each process on its node, and copied there if it is missing"
        if self._site.is_remote:
            remote_staging = f"is put on {self._site.target!r}, and looked for by each process on its node"
        staged = "has to be on this machine" if self._site.is_one_machine else remote_staging
        return tuple(f"{it.path} {staged if it.content is None else 'is written'}" for it in steps)

    def _plan_top_task(self, scope: Scope, number: int) -> Entry:
        task = scope.tasks[number]
        after = _dependencies(scope, number, "")
        if task.group is not None:
            return self._plan_group(task, self._document.groups[task.group], after)
        if not task.command:
            why = ("it has steps alone, which need no job",)
            return Entry(
                id=task.name,
                kind=Kind.FILES,
                steps=task.steps,
                files=self._files(task.steps),
                after=after,
                why=why,
            )
        self._check_remote_probe(task)
        choice = self._chooser.choose(task, task.resources)
        if share_allocation(task) and not self._site.is_remote:
            return self._plan_replicas(task, choice, after)
        shape = choice.shape
        if share_allocation(task):
            machine = f"{self._site.target!r} is a remote host"
            message = f"has replicas, which are jobs of their own, with one slot each: {machine}"
            hint = "run the workflow there, for them to have one allocation"
            self._findings.add_warning("JS093", task.at, message, hint)
            shape = one_slot(shape)
        attributes, why_time = self._with_default_duration(
            task.at, self._attributes(choice.attributes, task.attributes)
        )
        return attrs.evolve(
            self._base_entry(task, choice, after, attributes),
            kind=_top_kind(task),
            command=task.command,
            replicas=task.replicas,
            shape=shape,
            ready=task.ready,
            why=(*_explain_resources(task, choice.name, shape), *choice.why, *why_time),
        )

    def _base_entry(
        self, task: Task, choice: Choice, after: tuple[After, ...], attributes: Attributes
    ) -> Entry:
        """Return an entry for a task in no group: the allocation of its choice, which runs nothing yet."""
        return Entry(
            id=task.name,
            kind=Kind.ALLOCATION,
            steps=task.steps,
            files=self._files(task.steps),
            resources=choice.name,
            shape=choice.shape,
            after=after,
            when=task.when or When.ON_SUCCESS,
            attributes=attributes,
            constraints=choice.constraints,
            lost=choice.lost,
        )

    def _plan_replicas(self, task: Task, choice: Choice, after: tuple[After, ...]) -> Entry:
        """Return the allocation in which all replicas of a task run, each with one slot of it."""
        own, slots = task.attributes.duration, choice.shape.slots
        merged = self._attributes(choice.attributes, task.attributes)
        whole = merged.duration if own is None else total_duration(task.replicas, slots, own)
        # variables are for the replicas: the process that runs them needs those of the batch system
        outer = attrs.evolve(merged, duration=whole, environment={})
        attributes, why_time = self._with_default_duration(task.at, outer)
        inner = Entry(
            id=f"{task.name}/{task.name}",
            task=task.name,
            kind=Kind.TASK,
            command=task.command,
            replicas=task.replicas,
            resources=choice.name,
            shape=one_slot(choice.shape),
            attributes=attrs.evolve(merged, duration=own),
            why=("each replica has one slot of the allocation",),
        )
        concurrent = min(slots, task.replicas)
        return attrs.evolve(
            self._base_entry(task, choice, after, attributes),
            why=(
                f"its {task.replicas} replicas run in one allocation, {concurrent} at a time",
                *choice.why,
                *why_time,
            ),
            inside=(inner,),
        )

    def _attributes(self, *nearer: Attributes) -> Attributes:
        """Return the attributes of the document, overridden by nearer ones, the nearest last."""
        found = self._document.attributes
        for it in nearer:
            if it is not NO_ATTRIBUTES:
                found = found.overridden_by(it)
        return found

    def _with_default_duration(self, at: Position, merged: Attributes) -> tuple[Attributes, tuple[str, ...]]:
        """Return the attributes of a job, with a walltime where the target needs one, and why it has that."""
        default = self._site.default_duration
        if default is None or merged.duration:
            return merged, ()
        if merged.duration is not None:
            message = f"has `duration: 0`, no limit, and jobs on {self._site.target!r} need one"
            self._findings.add_error("JS094", at, message, "write a `duration` such as 1h, or leave it out")
            return merged, ()
        why = f"it has no duration, and gets {default}, as jobs there need a time limit"
        return attrs.evolve(merged, duration=default), (why,)

    def _check_remote_probe(self, task: Task) -> None:
        """Note a probe that this machine cannot run for a service on a remote host."""
        ready = task.ready
        if self._site.is_remote and ready is not None and ready.file is None:
            message = f"probes from this machine a service on the remote host {self._site.target!r}"
            self._findings.add_error(
                "JS093", ready.at, message, "have the service make a file, and write `file: path`"
            )

    def _plan_group(self, task: Task, group: Group, after: tuple[After, ...]) -> Entry:
        if self._site.is_remote:
            message = (
                f"is a group, and {self._site.target!r} is a remote host,"
                " which has no access to the run directory"
            )
            self._findings.add_error(
                "JS093", group.at, message, "run the workflow there, or write tasks without a group"
            )
        choice = self._chooser.choose(group, group.resources)
        merged = self._attributes(choice.attributes, group.attributes, task.attributes)
        attributes, why_time = self._with_default_duration(group.at, merged)
        found = Entry(
            id=task.name,
            kind=Kind.ALLOCATION,
            resources=choice.name,
            shape=choice.shape,
            after=after,
            when=task.when or When.ON_SUCCESS,
            attributes=attributes,
            constraints=choice.constraints,
            why=("a group is one allocation, and its tasks run inside of it", *choice.why, *why_time),
            lost=choice.lost,
            inside=self._plan_group_tasks(group, task.name, attributes),
        )
        self._check_capacity(found)
        return found

    def _check_capacity(self, allocation: Entry) -> None:
        """Note entries that can never run inside of an allocation, as they ask for more than it has."""
        if allocation.shape is None or allocation.shape.pieces:
            return
        nodes = slots_of_nodes(allocation.shape, ())
        capacity = Capacity(allocation, nodes, can_span=any(multinode_entries(allocation)))
        for entry in flatten(allocation):
            if entry.shape is not None and not entry.is_local and not capacity.can_ever_fit(entry):
                message = f"asks for {entry.shape}, and its group has {allocation.shape}"
                hint = "ask for less, or give the group more"
                self._findings.add_error("JS070", self._positions[entry.id], message, hint)

    def _plan_group_tasks(self, group: Group, path: str, attributes: Attributes) -> tuple[Entry, ...]:
        scope = self._graph.scopes[group.name]
        entries = [self._plan_inner_task(scope, number, path, attributes) for number in scope.order]
        return tuple(_with_watch_barriers(entries))

    def _plan_inner_task(self, scope: Scope, number: int, path: str, outer: Attributes) -> Entry:
        task = scope.tasks[number]
        self._positions[f"{path}/{task.name}"] = task.at
        entry = Entry(
            id=f"{path}/{task.name}",
            kind=Kind.TASK,
            command=task.command,
            steps=task.steps,
            files=self._files(task.steps),
            replicas=task.replicas,
            after=_dependencies(scope, number, f"{path}/"),
            when=task.when or (When.ALWAYS if number >= scope.tail else When.ON_SUCCESS),
            ready=task.ready,
        )
        if task.group is not None:
            return self._plan_nested_group(entry, task, outer)
        attributes = attrs.evolve(outer, duration=None, watch=None)
        if not task.command:
            reasons = ("it has steps alone, which need no part of the allocation",)
            return attrs.evolve(entry, kind=Kind.FILES, is_local=True, why=reasons)
        if task.is_local:
            kind = Kind.SERVICE if task.is_service else Kind.LOCAL
            why = _explain_local(scope, number)
            merged = attributes.overridden_by(task.attributes)
            return attrs.evolve(entry, kind=kind, is_local=True, attributes=merged, why=why)
        choices = self._chooser.options(task, task.resources)
        first = choices[0]
        why = (
            first.why if task.resources else ("it has no resources of its own, and takes all of the group's",)
        )
        return attrs.evolve(
            entry,
            kind=Kind.SERVICE if task.is_service else Kind.TASK,
            resources=first.name,
            shape=first.shape if task.resources else None,
            others=tuple((it.name, it.shape) for it in choices[1:]),
            attributes=attributes.overridden_by(first.attributes).overridden_by(task.attributes),
            why=why,
            lost=first.lost,
        )

    def _plan_nested_group(self, entry: Entry, task: Task, outer: Attributes) -> Entry:
        group = self._document.groups[task.group or ""]
        choices = self._chooser.options(group, group.resources)
        inner = (
            attrs.evolve(outer, duration=None, watch=None)
            .overridden_by(choices[0].attributes)
            .overridden_by(group.attributes)
        )
        has_own = group.resources is not None
        return attrs.evolve(
            entry,
            kind=Kind.POOL,
            resources=choices[0].name,
            shape=choices[0].shape if has_own else None,
            others=tuple((it.name, it.shape) for it in choices[1:]),
            attributes=inner,
            why=(
                "a group in a group has a part of its allocation"
                if has_own
                else "it takes all of the group's",
            ),
            inside=self._plan_group_tasks(group, entry.id, inner),
        )


def _with_staged_paths(entries: Iterable[Entry], inherited: tuple[str, ...] = ()) -> Iterator[Entry]:
    """Yield the entries with the paths that processes provide: those that it, or a step before it, stages.

    Args:
        entries: of one list, each after its dependencies.
        inherited: the paths that the group around them provides.
    """
    before: dict[str, tuple[str, ...]] = {}
    for entry in entries:
        own = tuple(it.path for it in entry.steps if it.content is None)
        waited = (path for it in entry.after for path in before[it.id])
        found = tuple(dict.fromkeys((*inherited, *waited)))
        before[entry.id] = (*found, *own) if entry.kind is Kind.FILES else found
        staged = tuple(dict.fromkeys((*found, *own)))
        yield attrs.evolve(entry, staged=staged, inside=tuple(_with_staged_paths(entry.inside, staged)))


def _dependencies(scope: Scope, number: int, prefix: str) -> tuple[After, ...]:
    return tuple(
        After(f"{prefix}{scope.tasks[it.index].name}", it.when, it.each) for it in scope.edges[number]
    )


def _with_watch_barriers(entries: list[Entry]) -> Iterator[Entry]:
    """Yield the entries, where a watched one holds back all that are submitted after it.

    A watched service does so until it has started, since it ends after all others.
    """
    held_by: After | None = None
    for entry in entries:
        dependencies = entry.after
        if held_by is not None and held_by.id not in {it.id for it in dependencies}:
            dependencies = (*dependencies, held_by)
        yield entry if dependencies == entry.after else attrs.evolve(entry, after=dependencies)
        if entry.attributes.watch:
            held_by = After(entry.id, "started" if entry.kind is Kind.SERVICE else "any")


def _with_shown(entries: Iterable[Entry], *, is_shown: bool = False) -> Iterator[Entry]:
    """Yield the entries, with `is_shown` set for all inside of a watched group."""
    for entry in entries:
        inside = _with_shown(entry.inside, is_shown=is_shown or bool(entry.attributes.watch))
        yield attrs.evolve(entry, is_shown=is_shown, inside=tuple(inside))


def _top_kind(task: Task) -> Kind:
    if task.is_service:
        return Kind.SERVICE
    return Kind.JOB if task.replicas == 1 else Kind.ARRAY


def _explain_resources(task: Task, name: str, shape: Shape) -> Iterator[str]:
    if not name:
        yield "it names no resources, and gets one slot"
    elif task.replicas > 1:
        yield f"each of the {task.replicas} replicas is a job of its own with {shape}"
    else:
        yield f"{name!r} is {shape}"


def _explain_local(scope: Scope, number: int) -> tuple[str, ...]:
    if number >= scope.tail:
        return ("it ends the group, and runs however what stands before it has ended",)
    return ("it is local: what stands after it waits for it",)
