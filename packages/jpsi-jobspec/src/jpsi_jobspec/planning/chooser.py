"""Chooses among the resources that a task names. Pure."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

import attrs

from ..document import (
    NO_ATTRIBUTES,
    ONE_SLOT,
    Attributes,
    Document,
    Expression,
    Findings,
    Group,
    Position,
    Requirement,
    Resource,
    Shape,
    Task,
    Vertex,
    losses,
    measure,
    schedulable,
    side_by_side,
    together,
    vertices,
)
from .constraints import Mapped
from .limits import Limit, refusal
from .machine import Machine
from .replicas import share_allocation, time_of_all
from .requirements import Answer, Verdict, every, meets, satisfies
from .subsystems import Subsystems


@attrs.frozen(slots=True, kw_only=True)
class Choice:
    """A resource that a job may ask for."""

    name: str = ""
    shape: Shape = ONE_SLOT
    attributes: Attributes = NO_ATTRIBUTES
    constraints: Mapping[str, Any] = attrs.field(factory=dict)
    why: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


@attrs.define(slots=True, kw_only=True)
class Chooser:
    """The chooser of resources, by what is known of a site."""

    document: Document
    subsystems: Subsystems
    is_missing_wrong: bool
    is_one_machine: bool
    is_heterogeneous: bool
    constraints: Mapping[str, Mapped]
    limits: tuple[Limit, ...]
    machine: Machine | None
    findings: Findings
    _known: dict[tuple[tuple[str, ...], bool], Choice | str] = attrs.field(factory=dict, init=False)

    def choose(self, asking: Task | Group, resources: Expression | None) -> Choice:
        """Return the first available resource at the top, where jobs ask for scheduled resources only."""
        options = self.options(asking, resources, schedulable(self.document))
        if len(options) == 1 or resources is None:
            return options[0]
        others = ", ".join(it.name for it in options[1:])
        first = options[0]
        return attrs.evolve(first, why=(*first.why, f"{first.name!r} is preferred to {others}"))

    def options(
        self, asking: Task | Group, resources: Expression | None, allowed: Container[str] | None = None
    ) -> list[Choice]:
        """Return the available resources, the preferred one first; note why if none is available."""
        self._check_requires(asking)
        if resources is None:
            return [Choice()]
        # A group counts its slots by one kind only.
        is_job = isinstance(asking, Task) and not share_allocation(asking)
        may_differ = self.is_heterogeneous and allowed is not None and is_job
        weighed = [
            (str(Expression((it,))), self._weigh(it, allowed, may_differ=may_differ))
            for it in resources.alternatives
        ]
        has_choice = len(weighed) > 1
        weighed = [(name, self._on_machine(it, has_choice=has_choice)) for name, it in weighed]
        if allowed is not None and len(weighed) > 1:
            weighed = [(name, self._within(it, asking)) for name, it in weighed]
        found = [it for _, it in weighed if isinstance(it, Choice)]
        refused = tuple(f"{name!r} is left out: {it}" for name, it in weighed if isinstance(it, str))
        if not found:
            says = f"asks for what cannot be had: {'; '.join(refused)}"
            self.findings.wrong("JS090", resources.at, says, "ask for something else")
            return [Choice()]
        return [attrs.evolve(it, why=(*it.why, *refused)) if refused else it for it in found]

    def _on_machine(self, choice: Choice | str, *, has_choice: bool) -> Choice | str:
        """Return a choice if it runs on this machine, or why not; the only choice is kept all the same."""
        if isinstance(choice, str) or self.machine is None:
            return choice
        lack = self.machine.lack(choice.shape)
        if lack is None or has_choice:
            return lack or choice
        return attrs.evolve(choice, lost=(*choice.lost, f"{lack}, and it runs here all the same"))

    def _within(self, choice: Choice | str, asking: Task | Group) -> Choice | str:
        """Return a choice, or why no queue takes it."""
        if isinstance(choice, str):
            return choice
        own = asking.attributes.duration
        if own is not None and isinstance(asking, Task) and share_allocation(asking):
            own = time_of_all(asking.replicas, choice.shape.slots, own)
        duration = choice.attributes.duration if own is None else own
        return refusal(self.limits, choice.shape, duration) or choice

    def _weigh(
        self, names: tuple[str, ...], allowed: Container[str] | None, *, may_differ: bool
    ) -> Choice | str:
        """Return one alternative, or why it is not available."""
        if allowed is not None and any(name not in allowed for name in names):
            return "it is not to be scheduled"
        key = names, may_differ
        if key not in self._known:
            self._known[key] = self._choice(names, may_differ=may_differ)
        return self._known[key]

    def _choice(self, names: tuple[str, ...], *, may_differ: bool) -> Choice | str:
        """Return several resources together as one, if their slots are alike or may differ, or why not."""
        resources = [self.document.resources[name] for name in names]
        shapes = [measure(it.vertex) for it in resources]
        alike = together(shapes)
        if alike is None and not may_differ:
            pieces = "; ".join(map(str, shapes))
            return f"its pieces differ, and a job has one kind of slot (unsupported_feature): {pieces}"
        placed: list[Shape] = []
        lost: list[str] = []
        for it in shapes if alike is None else [alike]:
            if wrong := _impossible(it):
                return wrong
            placed.append(self._placed(it, lost))
        shape = side_by_side(placed) if alike is None else placed[0]
        lost = [*losses(shape), *lost]
        requirements = [it for resource in resources for it in _requirements(resource.vertex)]
        unmapped = [it for it in requirements if self._option(it) is None]
        answers = {it: meets(it, self.subsystems) for it in unmapped}
        answer = every(answers.values())
        if answer.verdict is Verdict.NO:
            return "; ".join(answer.reasons)
        self._check_known(answer, resources[0].at, f"resource {str(Expression((names,)))!r}")
        mapped = self._mapped(requirements)
        if isinstance(mapped, str):
            return mapped
        untold = [it for it, answer in answers.items() if answer.verdict is Verdict.UNKNOWN]
        return Choice(
            name=str(Expression((names,))),
            shape=shape,
            attributes=_joined(resources),
            constraints=mapped,
            lost=(*lost, *(f"nobody is told that it requires {it}" for it in untold)),
        )

    def _placed(self, shape: Shape, lost: list[str]) -> Shape:
        """Return a shape as the target has it: one machine stands for all nodes."""
        if not self.is_one_machine or shape.nodes is None or shape.nodes <= 1:
            return shape
        lost.append(f"its {shape.nodes} nodes are all this machine")
        return attrs.evolve(shape, nodes=None)

    def _mapped(self, requirements: Iterable[Requirement]) -> dict[str, str] | str:
        """Return the options that express requirements, or why options cannot express them."""
        found: dict[str, str] = {}
        for it in requirements:
            to = self._option(it)
            if to is None:
                continue
            value = to.value.replace("{match}", it.match or it.value or "")
            known = found.setdefault(to.option, value)
            if known == value:
                continue
            if to.join is None:
                return f"both {known} and {value} come to {to.option}, and no `join` says how"
            found[to.option] = f"{known}{to.join}{value}"
        return found

    def _option(self, requirement: Requirement) -> Mapped | None:
        """Return the option of the batch system that expresses a requirement; None if none is configured."""
        return self.constraints.get(f"{requirement.name}.{requirement.field or requirement.attribute}")

    def _check_requires(self, asking: Task | Group) -> None:
        if asking.requires is None:
            return
        answer = satisfies(asking.requires, self.document.requires, self.subsystems)
        if answer.verdict is Verdict.NO:
            says = f"requires {str(asking.requires)!r}, which is not there: {'; '.join(answer.reasons)}"
            self.findings.wrong("JS091", asking.requires.at, says, "require what is there, or provide it")
        self._check_known(answer, asking.requires.at, f"{str(asking.requires)!r}")

    def _check_known(self, answer: Answer, at: Position, what: str) -> None:
        if answer.verdict is not Verdict.UNKNOWN:
            return
        says = f"requires by {what} what nobody can tell: {'; '.join(answer.reasons)}"
        do = "describe the subsystem in a file, or use `--missing ignore`"
        if self.is_missing_wrong:
            self.findings.wrong("JS081", at, says, do)
        else:
            self.findings.loose("JS081", at, says, do)


def _impossible(shape: Shape) -> str | None:
    if shape.nodes_per_slot > 1:
        return "each of its slots has several nodes, which no process has (unsupported_feature)"
    if shape.nodes and shape.slots % shape.nodes:
        return "its slots cannot be spread over its nodes (unsupported_feature)"
    return None


def _joined(resources: Sequence[Resource]) -> Attributes:
    """Return the attributes of several resources together, with the longest duration; no limit is longest."""
    first, *others = (it.attributes for it in resources)
    for it in others:
        times = [time for time in (first.duration, it.duration) if time is not None]
        longest = max(times, key=lambda time: time or timedelta.max, default=None)
        first = attrs.evolve(first.under(it), duration=longest)
    return first


def weigh_requirements(document: Document, subsystems: Subsystems) -> Iterator[tuple[str, Answer]]:
    """Yield the requirements of each task, group and resource, by its name, and the verdict on them."""
    tasks = list(document.tasks)
    for group in document.groups.values():
        tasks += group.tasks
        if group.requires is not None:
            yield f"group {group.name}", satisfies(group.requires, document.requires, subsystems)
    for task in tasks:
        if task.requires is not None:
            yield f"task {task.name}", satisfies(task.requires, document.requires, subsystems)
    for name, resource in document.resources.items():
        if requirements := _requirements(resource.vertex):
            yield f"resource {name}", every(meets(it, subsystems) for it in requirements)


def _requirements(root: Vertex) -> list[Requirement]:
    return [requirement for vertex in vertices(root) for requirement in vertex.requires]
