"""Plans a document for a target: its jobs, arrays and allocations, with resources and reasons. Pure.

`jpsi workflow plan` shows the result, and `jpsi workflow run` submits it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import attrs

from ..document import (
    NO_ATTRIBUTES,
    Attributes,
    Document,
    Findings,
    Group,
    Position,
    Requester,
    Scope,
    Shape,
    Task,
    When,
    resolve,
)
from .allocations import (
    UNSHARED,
    flatten,
    multinode_entries,
    one_slot,
    share_allocation,
    slots_of_nodes,
    total_duration,
)
from .capacity import Capacity
from .chooser import Choice, Chooser
from .plan import After, Entry, Kind, Plan
from .site import Site


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
    attributes = document.attributes
    if attributes.cwd is None:
        document = attrs.evolve(document, attributes=attrs.evolve(attributes, cwd=site.directory))
    planner = _Planner(document, site, findings)
    return Plan(source=document.source, target=site.target, entries=planner.plan_top())


class _Planner:
    def __init__(self, document: Document, site: Site, findings: Findings) -> None:
        self._document = document
        self._site = site
        self._findings = findings
        self._scopes = resolve(document, findings)
        # positions of entries in groups
        self._positions: dict[str, Position] = {}
        self._chooser = Chooser(document, site, findings)

    def plan_top(self) -> tuple[Entry, ...]:
        """Return the entries that are submitted."""
        scope = self._scopes[""]
        entries = [self._plan_top_task(scope, number) for number in scope.order]
        found = tuple(_with_shown(_with_watch_barriers(entries)))
        return found if self._site.is_one_machine else tuple(_with_staged_paths(found))

    def _entry(self, scope: Scope, number: int, prefix: str = "") -> Entry:
        """Return the entry of a task before its resources are chosen, of the kind for files."""
        task = scope.tasks[number]
        edges = scope.edges[number]
        return Entry(
            id=f"{prefix}{task.name}",
            kind=Kind.FILES,
            command=task.command,
            steps=task.steps,
            files=tuple(
                f"{it.path} {self._explain_step(is_written=it.content is not None)}" for it in task.steps
            ),
            replicas=task.replicas,
            after=tuple(After(f"{prefix}{scope.tasks[it.index].name}", it.when, it.each) for it in edges),
            when=task.when or (When.ALWAYS if number >= scope.tail else When.ON_SUCCESS),
            ready=task.ready if task.command else None,
        )

    def _explain_step(self, *, is_written: bool) -> str:
        if is_written:
            return "is written"
        if self._site.is_one_machine:
            return "has to be on this machine"
        if self._site.is_remote:
            return f"is put on {self._site.target!r}, and looked for by each process on its node"
        return "is looked for by each process on its node, and copied there if it is missing"

    def _plan_top_task(self, scope: Scope, number: int) -> Entry:
        task, entry = scope.tasks[number], self._entry(scope, number)
        if task.group is not None:
            return self._plan_group(entry, task, self._document.groups[task.group])
        if not task.command:
            return attrs.evolve(entry, replicas=1, why=("it has steps alone, which need no job",))
        self._check_remote_probe(task)
        choice = self._chooser.choose(task, task.resources)
        merged = self._attributes(choice.attributes, task.attributes)
        if not share_allocation(task):
            kind = Kind.SERVICE if task.is_service else Kind.JOB
        elif self._site.is_remote:
            kind = Kind.ARRAY
            message = (
                "has replicas, which are jobs of their own, with one slot each:"
                f" {self._site.target!r} is a remote host"
            )
            hint = "run the workflow there, for them to have one allocation"
            self._findings.add_warning("JS093", task.at, message, hint)
            choice = attrs.evolve(choice, shape=one_slot(choice.shape))
        else:
            return self._plan_replicas(entry, task, choice, merged)
        why = tuple(_explain_resources(task, choice.name, choice.shape))
        return self._with_choice(attrs.evolve(entry, kind=kind), choice, merged, why, task.at)

    def _with_choice(
        self, entry: Entry, choice: Choice, merged: Attributes, why: tuple[str, ...], at: Position
    ) -> Entry:
        """Return a top-level entry with its resources, and a walltime where the target needs one."""
        default = self._site.default_duration
        why_time: tuple[str, ...] = ()
        if default is not None and merged.duration is None:
            why_time = (f"it has no duration, and gets {default}, as jobs there need a time limit",)
            merged = attrs.evolve(merged, duration=default)
        elif default is not None and not merged.duration:
            message = f"has `duration: 0`, no limit, and jobs on {self._site.target!r} need one"
            self._findings.add_error("JS094", at, message, "write a `duration` such as 1h, or leave it out")
        return attrs.evolve(
            entry,
            resources=choice.name,
            shape=choice.shape,
            attributes=merged,
            constraints=choice.constraints,
            why=(*why, *choice.why, *why_time),
            lost=choice.lost,
        )

    def _plan_replicas(self, entry: Entry, task: Task, choice: Choice, merged: Attributes) -> Entry:
        """Return the allocation in which all replicas of a task run, each with one slot of it."""
        self._check_shared(merged, task.at)
        own, slots = task.attributes.duration, choice.shape.slots
        inner = Entry(
            id=f"{task.name}/{task.name}",
            task=task.name,
            kind=Kind.TASK,
            command=task.command,
            replicas=task.replicas,
            resources=choice.name,
            shape=one_slot(choice.shape),
            attributes=attrs.evolve(merged.of_processes(), duration=own),
            why=("each replica has one slot of the allocation",),
        )
        concurrent = min(slots, task.replicas)
        share = f"its {task.replicas} replicas run in one allocation, {concurrent} at a time"
        whole, why_duration = merged.duration, ""
        if own is not None:
            whole = total_duration(task.replicas, slots, own)
        if own and concurrent < task.replicas:
            each = f"each for up to {own}, and a minute to end them"
            why_duration = f"{share}, {each}; with more slots, more run at a time"
        allocation = attrs.evolve(
            entry,
            kind=Kind.ALLOCATION,
            command=(),
            replicas=1,
            ready=None,
            inside=(inner,),
            why_duration=why_duration,
        )
        # variables are for the replicas: the process that runs them needs those of the batch system
        outer = attrs.evolve(merged.of_job(), duration=whole, environment={})
        return self._with_choice(allocation, choice, outer, (why_duration or share,), task.at)

    def _check_shared(self, attributes: Attributes, at: Position) -> None:
        """Note attributes that the job of an allocation, whose process starts others, cannot have."""
        for name in sorted(UNSHARED.intersection(attributes.job)):
            message = f"runs in one allocation, whose job cannot have {name!r}"
            self._findings.add_error("JS066", at, message, "write it in tasks without group and replicas")

    def _check_inner(self, requester: Requester, choices: Sequence[Choice]) -> None:
        """Note attributes of jobs where there is a share of an allocation, and no job of a batch system."""
        given = [requester.attributes, *(it.attributes for it in choices)]
        for name in sorted({name for it in given for name in it.of_job().job}):
            message = f"runs in the allocation of its group, and {name!r} is for the job of that"
            self._findings.add_error("JS066", requester.at, message, "write it in the group's attributes")

    def _attributes(self, *nearer: Attributes) -> Attributes:
        """Return the attributes of the document, overridden by nearer ones, the nearest last."""
        found = self._document.attributes
        for it in nearer:
            if it is not NO_ATTRIBUTES:
                found = found.overridden_by(it)
        return found

    def _check_remote_probe(self, task: Task) -> None:
        """Note a probe that this machine cannot run for a service on a remote host."""
        ready = task.ready
        if self._site.is_remote and ready is not None and ready.file is None:
            message = f"probes from this machine a service on the remote host {self._site.target!r}"
            hint = "have the service make a file, and write `file: path`"
            self._findings.add_error("JS093", ready.at, message, hint)

    def _plan_group(self, entry: Entry, task: Task, group: Group) -> Entry:
        if self._site.is_remote:
            host = f"{self._site.target!r} is a remote host, which has no access to the run directory"
            hint = "run the workflow there, or write tasks without a group"
            self._findings.add_error("JS093", group.at, f"is a group, and {host}", hint)
        choice = self._chooser.choose(group, group.resources)
        merged = self._attributes(choice.attributes, group.attributes, task.attributes)
        self._check_shared(merged, group.at)
        why = ("a group is one allocation, and its tasks run inside of it",)
        allocation = attrs.evolve(entry, kind=Kind.ALLOCATION)
        found = self._with_choice(allocation, choice, merged.of_job(), why, group.at)
        inherited = merged.of_processes()
        found = attrs.evolve(found, inside=self._plan_group_tasks(group, task.name, inherited))
        self._check_capacity(found)
        return found

    def _check_capacity(self, allocation: Entry) -> None:
        """Note entries that can never run inside of an allocation, as they ask for more than it has."""
        if allocation.shape is None or allocation.shape.pieces:
            return
        nodes = slots_of_nodes(allocation.shape, ())
        capacity = Capacity(allocation, nodes, can_span=bool(multinode_entries(allocation)))
        for entry in flatten(allocation):
            if entry.shape is not None and not entry.is_local and not capacity.can_ever_fit(entry):
                message = f"asks for {entry.shape}, and its group has {allocation.shape}"
                hint = "ask for less, or give the group more"
                self._findings.add_error("JS070", self._positions[entry.id], message, hint)

    def _plan_group_tasks(self, group: Group, path: str, attributes: Attributes) -> tuple[Entry, ...]:
        scope = self._scopes[group.name]
        inherited = attrs.evolve(attributes, duration=None, watch=None)
        entries = [self._plan_inner_task(scope, number, path, inherited) for number in scope.order]
        return tuple(_with_watch_barriers(entries))

    def _plan_inner_task(self, scope: Scope, number: int, path: str, inherited: Attributes) -> Entry:
        task, entry = scope.tasks[number], self._entry(scope, number, f"{path}/")
        self._positions[entry.id] = task.at
        if task.group is not None:
            return self._plan_nested_group(entry, self._document.groups[task.group], inherited)
        if not task.command:
            why = ("it has steps alone, which need no part of the allocation",)
            return attrs.evolve(entry, is_local=True, why=why)
        if task.is_local:
            self._check_inner(task, ())
            merged = inherited.overridden_by(task.attributes)
            why = ("it is local: the entries after it wait for it",)
            if number >= scope.tail:
                why = ("it ends the group, and runs whatever the outcome of the entries before it",)
            kind = Kind.SERVICE if task.is_service else Kind.LOCAL
            return attrs.evolve(entry, kind=kind, is_local=True, attributes=merged, why=why)
        choices = self._chooser.options(task, task.resources)
        self._check_inner(task, choices[:1])
        merged = inherited.overridden_by(choices[0].attributes).overridden_by(task.attributes)
        kind = Kind.SERVICE if task.is_service else Kind.TASK
        entry = attrs.evolve(entry, kind=kind, attributes=merged, lost=choices[0].lost)
        return _with_share(entry, task, choices, choices[0].why)

    def _plan_nested_group(self, entry: Entry, group: Group, inherited: Attributes) -> Entry:
        choices = self._chooser.options(group, group.resources)
        self._check_inner(group, choices[:1])
        inner = inherited.overridden_by(choices[0].attributes).overridden_by(group.attributes)
        inside = self._plan_group_tasks(group, entry.id, inner)
        entry = attrs.evolve(entry, kind=Kind.POOL, attributes=inner, inside=inside)
        return _with_share(entry, group, choices, ("a group in a group has a part of its allocation",))


def _with_share(entry: Entry, requester: Requester, choices: Sequence[Choice], why: tuple[str, ...]) -> Entry:
    """Return an entry inside of a group with its share, and the alternatives to it."""
    if requester.resources is None:
        taken = "it has no resources of its own, and takes" if entry.kind is not Kind.POOL else "it takes"
        return attrs.evolve(entry, why=(f"{taken} all of the group's",))
    first, *others = choices
    alternatives = tuple((it.name, it.shape) for it in others)
    return attrs.evolve(entry, resources=first.name, shape=first.shape, others=alternatives, why=why)


def _with_staged_paths(entries: Iterable[Entry], inherited: tuple[str, ...] = ()) -> Iterator[Entry]:
    """Yield the entries with the paths that their processes provide, staged by the entry or one before it.

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


def _with_watch_barriers(entries: list[Entry]) -> Iterator[Entry]:
    """Yield the entries; a watched entry holds back all that are submitted after it.

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


def _explain_resources(task: Task, name: str, shape: Shape) -> Iterator[str]:
    if not name:
        yield "it names no resources, and gets one slot"
    elif task.replicas > 1:
        yield f"each of the {task.replicas} replicas is a job of its own with {shape}"
    else:
        yield f"{name!r} is {shape}"
