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
from .nodes import slots_of_nodes, spanning
from .plan import After, Entry, Kind, Plan
from .replicas import one_slot, share_allocation, time_of_all
from .subsystems import Subsystems


@attrs.frozen(slots=True, kw_only=True)
class Site:
    """The facts about a target that a plan depends on."""

    #: The name of an executor, or of a configured target.
    target: str = "local"
    subsystems: Subsystems = attrs.field(factory=dict)
    #: True if a requirement of an unknown subsystem keeps a document from running.
    is_missing_wrong: bool = False
    #: True if there is one machine only, which then stands for all nodes that jobs ask for.
    is_one_machine: bool = False
    #: The hardware of that machine; None if it is not known, or the target is no single local machine.
    machine: Machine | None = None
    #: True if a job may have slots of several kinds; queried only if the document needs that.
    is_heterogeneous: bool = False
    #: True if the target is a remote host, which a URL leads to.
    is_elsewhere: bool = False
    #: The walltime of jobs without a duration on targets that need one, such as pilots; None on other
    #: targets.
    usual_duration: timedelta | None = None
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
    return Plan(source=document.source, target=site.target, entries=planner.top())


class _Planner:
    def __init__(self, document: Document, site: Site, findings: Findings) -> None:
        self._document = document
        self._site = site
        self._findings = findings
        self._graph: Graph = resolve(document, findings)
        # positions of entries in groups
        self._places: dict[str, Position] = {}
        self._chooser = Chooser(
            document=document,
            subsystems=site.subsystems,
            is_missing_wrong=site.is_missing_wrong,
            is_one_machine=site.is_one_machine,
            is_heterogeneous=site.is_heterogeneous,
            constraints=site.constraints,
            limits=site.limits,
            machine=site.machine,
            findings=findings,
        )

    def top(self) -> tuple[Entry, ...]:
        """Return the entries that are submitted."""
        scope = self._graph.scopes[""]
        entries = [self._top_entry(scope, number) for number in scope.order]
        found = tuple(_shown(_watched(entries)))
        return found if self._site.is_one_machine else tuple(_staged(found))

    def _files(self, steps: Iterable[Step]) -> tuple[str, ...]:
        """Return what happens to the files of steps."""
        then = "is looked for by each process on its node, and copied there if it is missing"
        if self._site.is_elsewhere:
            then = f"is put on {self._site.target!r}, and looked for by each process on its node"
        staged = "has to be on this machine" if self._site.is_one_machine else then
        return tuple(f"{it.path} {staged if it.content is None else 'is written'}" for it in steps)

    def _top_entry(self, scope: Scope, number: int) -> Entry:
        task = scope.tasks[number]
        after = _after(scope, number, "")
        if task.group is not None:
            return self._allocation(task, self._document.groups[task.group], after)
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
        self._check_there(task)
        choice = self._chooser.choose(task, task.resources)
        if share_allocation(task) and not self._site.is_elsewhere:
            return self._replicated(task, choice, after)
        shape = choice.shape
        if share_allocation(task):
            machine = f"{self._site.target!r} is another machine"
            says = f"has replicas, which are jobs of their own, with one slot each: {machine}"
            do = "run the workflow there, for them to have one allocation"
            self._findings.loose("JS093", task.at, says, do)
            shape = one_slot(shape)
        attributes, why_time = self._timed(task.at, self._attributes(choice.attributes, task.attributes))
        return attrs.evolve(
            self._top(task, choice, after, attributes),
            kind=_top_kind(task),
            command=task.command,
            replicas=task.replicas,
            shape=shape,
            ready=task.ready,
            why=(*_why_asked(task, choice.name, shape), *choice.why, *why_time),
        )

    def _top(self, task: Task, choice: Choice, after: tuple[After, ...], attributes: Attributes) -> Entry:
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

    def _replicated(self, task: Task, choice: Choice, after: tuple[After, ...]) -> Entry:
        """Return the allocation in which all replicas of a task run, each with one slot of it."""
        own, slots = task.attributes.duration, choice.shape.slots
        given = self._attributes(choice.attributes, task.attributes)
        whole = given.duration if own is None else time_of_all(task.replicas, slots, own)
        # variables are for the replicas: the process that runs them needs those of the batch system
        outer = attrs.evolve(given, duration=whole, environment={})
        attributes, why_time = self._timed(task.at, outer)
        inner = Entry(
            id=f"{task.name}/{task.name}",
            task=task.name,
            kind=Kind.TASK,
            command=task.command,
            replicas=task.replicas,
            resources=choice.name,
            shape=one_slot(choice.shape),
            attributes=attrs.evolve(given, duration=own),
            why=("each replica has one slot of the allocation",),
        )
        at_once = min(slots, task.replicas)
        return attrs.evolve(
            self._top(task, choice, after, attributes),
            why=(
                f"its {task.replicas} replicas run in one allocation, {at_once} at a time",
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
                found = found.under(it)
        return found

    def _timed(self, at: Position, given: Attributes) -> tuple[Attributes, tuple[str, ...]]:
        """Return the attributes of a job, with a walltime where the target needs one, and why it has that."""
        usual = self._site.usual_duration
        if usual is None or given.duration:
            return given, ()
        if given.duration is not None:
            says = f"has `duration: 0`, no limit, and jobs on {self._site.target!r} need one"
            self._findings.wrong("JS094", at, says, "write a `duration` such as 1h, or leave it out")
            return given, ()
        why = f"it says no duration, and has {usual}, as jobs there need a time limit"
        return attrs.evolve(given, duration=usual), (why,)

    def _check_there(self, task: Task) -> None:
        """Note a probe that this machine cannot run for a service on a remote host."""
        ready = task.ready
        if self._site.is_elsewhere and ready is not None and ready.file is None:
            says = f"tries from here what is there: {self._site.target!r} is another machine"
            self._findings.wrong(
                "JS093", ready.at, says, "have the service make a file, and write `file: path`"
            )

    def _allocation(self, task: Task, group: Group, after: tuple[After, ...]) -> Entry:
        if self._site.is_elsewhere:
            says = (
                f"is a group, and {self._site.target!r} is another machine,"
                " which does not see what is to run in it"
            )
            self._findings.wrong(
                "JS093", group.at, says, "run the workflow there, or write tasks without a group"
            )
        choice = self._chooser.choose(group, group.resources)
        given = self._attributes(choice.attributes, group.attributes, task.attributes)
        attributes, why_time = self._timed(group.at, given)
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
            inside=self._inside(group, task.name, attributes),
        )
        self._check_room(found)
        return found

    def _check_room(self, allocation: Entry) -> None:
        """Note entries that can never run inside of an allocation, as they ask for more than it has."""
        if allocation.shape is None or allocation.shape.pieces:
            return
        nodes = slots_of_nodes(allocation.shape, ())
        capacity = Capacity(allocation, nodes, can_span=any(spanning(allocation)))
        for entry in flatten(allocation):
            if entry.shape is not None and not entry.is_local and not capacity.can_ever_have(entry):
                says = f"asks for {entry.shape}, and its group has {allocation.shape}"
                do = "ask for less, or give the group more"
                self._findings.wrong("JS070", self._places[entry.id], says, do)

    def _inside(self, group: Group, path: str, attributes: Attributes) -> tuple[Entry, ...]:
        scope = self._graph.scopes[group.name]
        entries = [self._inner(scope, number, path, attributes) for number in scope.order]
        return tuple(_watched(entries))

    def _inner(self, scope: Scope, number: int, path: str, outer: Attributes) -> Entry:
        task = scope.tasks[number]
        self._places[f"{path}/{task.name}"] = task.at
        entry = Entry(
            id=f"{path}/{task.name}",
            kind=Kind.TASK,
            command=task.command,
            steps=task.steps,
            files=self._files(task.steps),
            replicas=task.replicas,
            after=_after(scope, number, f"{path}/"),
            when=task.when or (When.ALWAYS if number >= scope.tail else When.ON_SUCCESS),
            ready=task.ready,
        )
        if task.group is not None:
            return self._pool(entry, task, outer)
        attributes = attrs.evolve(outer, duration=None, watch=None)
        if not task.command:
            alone = ("it has steps alone, which need no part of the allocation",)
            return attrs.evolve(entry, kind=Kind.FILES, is_local=True, why=alone)
        if task.is_local:
            kind = Kind.SERVICE if task.is_service else Kind.LOCAL
            why = _why_local(scope, number)
            given = attributes.under(task.attributes)
            return attrs.evolve(entry, kind=kind, is_local=True, attributes=given, why=why)
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
            attributes=attributes.under(first.attributes).under(task.attributes),
            why=why,
            lost=first.lost,
        )

    def _pool(self, entry: Entry, task: Task, outer: Attributes) -> Entry:
        group = self._document.groups[task.group or ""]
        choices = self._chooser.options(group, group.resources)
        inner = (
            attrs.evolve(outer, duration=None, watch=None)
            .under(choices[0].attributes)
            .under(group.attributes)
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
            inside=self._inside(group, entry.id, inner),
        )


def _staged(entries: Iterable[Entry], inherited: tuple[str, ...] = ()) -> Iterator[Entry]:
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
        yield attrs.evolve(entry, staged=staged, inside=tuple(_staged(entry.inside, staged)))


def _after(scope: Scope, number: int, prefix: str) -> tuple[After, ...]:
    return tuple(
        After(f"{prefix}{scope.tasks[it.index].name}", it.when, it.each) for it in scope.edges[number]
    )


def _watched(entries: list[Entry]) -> Iterator[Entry]:
    """Yield the entries, where a watched one holds back all that are submitted after it.

    A watched service does so until it has started, since it ends after all others.
    """
    held_by: After | None = None
    for entry in entries:
        waits = entry.after
        if held_by is not None and held_by.id not in {it.id for it in waits}:
            waits = (*waits, held_by)
        yield entry if waits == entry.after else attrs.evolve(entry, after=waits)
        if entry.attributes.watch:
            held_by = After(entry.id, "started" if entry.kind is Kind.SERVICE else "any")


def _shown(entries: Iterable[Entry], *, is_shown: bool = False) -> Iterator[Entry]:
    """Yield the entries, with `is_shown` set for all inside of a watched group."""
    for entry in entries:
        inside = _shown(entry.inside, is_shown=is_shown or bool(entry.attributes.watch))
        yield attrs.evolve(entry, is_shown=is_shown, inside=tuple(inside))


def _top_kind(task: Task) -> Kind:
    if task.is_service:
        return Kind.SERVICE
    return Kind.JOB if task.replicas == 1 else Kind.ARRAY


def _why_asked(task: Task, name: str, shape: Shape) -> Iterator[str]:
    if not name:
        yield "it names no resources, and gets one slot"
    elif task.replicas > 1:
        yield f"each of the {task.replicas} replicas is a job of its own with {shape}"
    else:
        yield f"{name!r} is {shape}"


def _why_local(scope: Scope, number: int) -> tuple[str, ...]:
    if number >= scope.tail:
        return ("it ends the group, and runs however what stands before it has ended",)
    return ("it is local: what stands after it waits for it",)
