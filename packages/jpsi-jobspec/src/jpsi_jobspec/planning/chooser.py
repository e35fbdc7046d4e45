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
    combine_pieces,
    measure,
    merge_alike,
    schedulable,
    unsupported_parts,
    vertices,
)
from .constraints import Mapped
from .limits import Limit, explain_refusal
from .machine import Machine
from .replicas import share_allocation, total_duration
from .requirements import Answer, Verdict, all_of, evaluate_expression, evaluate_requirement
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
    is_missing_error: bool
    is_one_machine: bool
    is_heterogeneous: bool
    constraints: Mapping[str, Mapped]
    limits: tuple[Limit, ...]
    machine: Machine | None
    findings: Findings
    _cache: dict[tuple[tuple[str, ...], bool], Choice | str] = attrs.field(factory=dict, init=False)

    def choose(self, requester: Task | Group, resources: Expression | None) -> Choice:
        """Return the first available resource at the top, where jobs ask for scheduled resources only."""
        options = self.options(requester, resources, schedulable(self.document))
        if len(options) == 1 or resources is None:
            return options[0]
        others = ", ".join(it.name for it in options[1:])
        first = options[0]
        return attrs.evolve(first, why=(*first.why, f"{first.name!r} is preferred to {others}"))

    def options(
        self, requester: Task | Group, resources: Expression | None, allowed: Container[str] | None = None
    ) -> list[Choice]:
        """Return the available resources, the preferred one first; note why if none is available."""
        self._check_requires(requester)
        if resources is None:
            return [Choice()]
        # A group counts its slots by one kind only.
        is_job = isinstance(requester, Task) and not share_allocation(requester)
        may_differ = self.is_heterogeneous and allowed is not None and is_job
        evaluated = [
            (str(Expression((it,))), self._evaluate(it, allowed, may_differ=may_differ))
            for it in resources.alternatives
        ]
        has_choice = len(evaluated) > 1
        evaluated = [(name, self._on_machine(it, has_choice=has_choice)) for name, it in evaluated]
        if allowed is not None and len(evaluated) > 1:
            evaluated = [(name, self._within_queue_limits(it, requester)) for name, it in evaluated]
        found = [it for _, it in evaluated if isinstance(it, Choice)]
        refusals = tuple(f"{name!r} is left out: {it}" for name, it in evaluated if isinstance(it, str))
        if not found:
            message = f"asks for resources that are not available: {'; '.join(refusals)}"
            self.findings.add_error("JS090", resources.at, message, "ask for something else")
            return [Choice()]
        return [attrs.evolve(it, why=(*it.why, *refusals)) if refusals else it for it in found]

    def _on_machine(self, choice: Choice | str, *, has_choice: bool) -> Choice | str:
        """Return a choice if it runs on this machine, or why not; the only choice is kept all the same."""
        if isinstance(choice, str) or self.machine is None:
            return choice
        missing = self.machine.find_missing(choice.shape)
        if missing is None or has_choice:
            return missing or choice
        return attrs.evolve(choice, lost=(*choice.lost, f"{missing}, and it runs here all the same"))

    def _within_queue_limits(self, choice: Choice | str, requester: Task | Group) -> Choice | str:
        """Return a choice, or why no queue takes it."""
        if isinstance(choice, str):
            return choice
        duration_of_task = requester.attributes.duration
        if duration_of_task is not None and isinstance(requester, Task) and share_allocation(requester):
            duration_of_task = total_duration(requester.replicas, choice.shape.slots, duration_of_task)
        duration = choice.attributes.duration if duration_of_task is None else duration_of_task
        return explain_refusal(self.limits, choice.shape, duration) or choice

    def _evaluate(
        self, names: tuple[str, ...], allowed: Container[str] | None, *, may_differ: bool
    ) -> Choice | str:
        """Return one alternative, or why it is not available."""
        if allowed is not None and any(name not in allowed for name in names):
            return "it is not to be scheduled"
        key = names, may_differ
        if key not in self._cache:
            self._cache[key] = self._build_choice(names, may_differ=may_differ)
        return self._cache[key]

    def _build_choice(self, names: tuple[str, ...], *, may_differ: bool) -> Choice | str:
        """Return several resources together as one, if their slots are alike or may differ, or why not."""
        resources = [self.document.resources[name] for name in names]
        shapes = [measure(it.vertex) for it in resources]
        merged = merge_alike(shapes)
        if merged is None and not may_differ:
            pieces = "; ".join(map(str, shapes))
            return f"its pieces differ, and a job has one kind of slot (unsupported_feature): {pieces}"
        adapted: list[Shape] = []
        lost: list[str] = []
        for it in shapes if merged is None else [merged]:
            if wrong := _explain_impossible(it):
                return wrong
            adapted.append(self._adapt_to_machine(it, lost))
        shape = combine_pieces(adapted) if merged is None else adapted[0]
        lost = [*unsupported_parts(shape), *lost]
        requirements = [it for resource in resources for it in _requirements(resource.vertex)]
        unmapped = [it for it in requirements if self._option(it) is None]
        answers = {it: evaluate_requirement(it, self.subsystems) for it in unmapped}
        answer = all_of(answers.values())
        if answer.verdict is Verdict.NO:
            return "; ".join(answer.reasons)
        self._report_unknown(answer, resources[0].at, f"resource {str(Expression((names,)))!r}")
        options = self._map_requirements(requirements)
        if isinstance(options, str):
            return options
        unexpressed = [it for it, answer in answers.items() if answer.verdict is Verdict.UNKNOWN]
        return Choice(
            name=str(Expression((names,))),
            shape=shape,
            attributes=_join_attributes(resources),
            constraints=options,
            lost=(*lost, *(f"no option expresses that it requires {it}" for it in unexpressed)),
        )

    def _adapt_to_machine(self, shape: Shape, lost: list[str]) -> Shape:
        """Return a shape as the target has it: one machine stands for all nodes."""
        if not self.is_one_machine or shape.nodes is None or shape.nodes <= 1:
            return shape
        lost.append(f"its {shape.nodes} nodes are all this machine")
        return attrs.evolve(shape, nodes=None)

    def _map_requirements(self, requirements: Iterable[Requirement]) -> dict[str, str] | str:
        """Return the options that express requirements, or why options cannot express them."""
        found: dict[str, str] = {}
        for it in requirements:
            mapping = self._option(it)
            if mapping is None:
                continue
            value = mapping.value.replace("{match}", it.match or it.value or "")
            known = found.setdefault(mapping.option, value)
            if known == value:
                continue
            if mapping.join is None:
                return f"both {known} and {value} map to {mapping.option}, and no `join` combines them"
            found[mapping.option] = f"{known}{mapping.join}{value}"
        return found

    def _option(self, requirement: Requirement) -> Mapped | None:
        """Return the option of the batch system that expresses a requirement; None if none is configured."""
        return self.constraints.get(f"{requirement.name}.{requirement.field or requirement.attribute}")

    def _check_requires(self, requester: Task | Group) -> None:
        if requester.requires is None:
            return
        answer = evaluate_expression(requester.requires, self.document.requires, self.subsystems)
        if answer.verdict is Verdict.NO:
            message = f"requires {str(requester.requires)!r}, which is missing: {'; '.join(answer.reasons)}"
            self.findings.add_error(
                "JS091", requester.requires.at, message, "require what is there, or provide it"
            )
        self._report_unknown(answer, requester.requires.at, f"{str(requester.requires)!r}")

    def _report_unknown(self, answer: Answer, at: Position, what: str) -> None:
        if answer.verdict is not Verdict.UNKNOWN:
            return
        message = f"has requirements by {what} that cannot be checked: {'; '.join(answer.reasons)}"
        hint = "describe the subsystem in a file, or use `--missing ignore`"
        if self.is_missing_error:
            self.findings.add_error("JS081", at, message, hint)
        else:
            self.findings.add_warning("JS081", at, message, hint)


def _explain_impossible(shape: Shape) -> str | None:
    if shape.nodes_per_slot > 1:
        return "each of its slots has several nodes, which no process has (unsupported_feature)"
    if shape.nodes and shape.slots % shape.nodes:
        return "its slots cannot be spread over its nodes (unsupported_feature)"
    return None


def _join_attributes(resources: Sequence[Resource]) -> Attributes:
    """Return the attributes of several resources together, with the longest duration; no limit is longest."""
    first, *others = (it.attributes for it in resources)
    for it in others:
        times = [time for time in (first.duration, it.duration) if time is not None]
        longest = max(times, key=lambda time: time or timedelta.max, default=None)
        first = attrs.evolve(first.overridden_by(it), duration=longest)
    return first


def evaluate_requirements(document: Document, subsystems: Subsystems) -> Iterator[tuple[str, Answer]]:
    """Yield the requirements of each task, group and resource, by its name, and the verdict on them."""
    tasks = list(document.tasks)
    for group in document.groups.values():
        tasks += group.tasks
        if group.requires is not None:
            yield f"group {group.name}", evaluate_expression(group.requires, document.requires, subsystems)
    for task in tasks:
        if task.requires is not None:
            yield f"task {task.name}", evaluate_expression(task.requires, document.requires, subsystems)
    for name, resource in document.resources.items():
        if requirements := _requirements(resource.vertex):
            yield f"resource {name}", all_of(evaluate_requirement(it, subsystems) for it in requirements)


def _requirements(root: Vertex) -> list[Requirement]:
    return [requirement for vertex in vertices(root) for requirement in vertex.requires]
