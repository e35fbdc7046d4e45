"""Chooses among the resources that a task names. Pure.

The planner uses it: the first alternative counts that the site has, and the plan keeps the reasons.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import attrs

from .. import document as documents
from ..document import ONE_SLOT, Attributes, Document, Expression, Findings, Position, Requester, Shape, Task
from .allocations import share_allocation, total_duration
from .requirements import Answer, Verdict, all_of, evaluate_expression, evaluate_requirement
from .site import Mapped, Site, explain_refusal


@attrs.frozen(slots=True, kw_only=True)
class Choice:
    """A resource that a job may ask for."""

    name: str = ""
    shape: Shape = ONE_SLOT
    attributes: Attributes = documents.NO_ATTRIBUTES
    constraints: Mapping[str, Any] = attrs.field(factory=dict)
    why: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


class _UnavailableError(Exception):
    """A resource that no job can have; the message is the reason."""


@attrs.define(slots=True)
class Chooser:
    """The chooser of resources, by the facts about a site."""

    document: Document
    site: Site
    findings: Findings
    # the reason, for a resource that no job can have
    _cache: dict[tuple[tuple[str, ...], bool], Choice | str] = attrs.field(factory=dict, init=False)

    def choose(self, requester: Requester, resources: Expression | None) -> Choice:
        """Return the first available resource at the top, where jobs ask for scheduled resources only."""
        options = self.options(requester, resources, documents.schedulable(self.document))
        if len(options) == 1 or resources is None:
            return options[0]
        others = ", ".join(it.name for it in options[1:])
        first = options[0]
        return attrs.evolve(first, why=(*first.why, f"{first.name!r} is preferred to {others}"))

    def options(
        self, requester: Requester, resources: Expression | None, allowed: Container[str] | None = None
    ) -> list[Choice]:
        """Return the available resources, the preferred one first; note why if none is available."""
        self._check_requires(requester)
        if resources is None:
            return [Choice()]
        has_choice = len(resources.alternatives) > 1
        found: list[Choice] = []
        refusals: list[str] = []
        for names in resources.alternatives:
            try:
                choice = self._on_machine(self._evaluate(requester, names, allowed), has_choice=has_choice)
                if allowed is not None and has_choice:
                    self._check_queue_limits(choice, requester)
                found.append(choice)
            except _UnavailableError as e:
                refusals.append(f"{str(Expression((names,)))!r} is left out: {e}")
        if not found:
            message = f"asks for resources that are not available: {'; '.join(refusals)}"
            self.findings.add_error("JS090", resources.at, message, "ask for something else")
            return [Choice()]
        return [attrs.evolve(it, why=(*it.why, *refusals)) if refusals else it for it in found]

    def _on_machine(self, choice: Choice, *, has_choice: bool) -> Choice:
        """Return a choice if it runs on this machine; the only choice is kept all the same."""
        missing = None if self.site.machine is None else self.site.machine.find_missing(choice.shape)
        if missing is None:
            return choice
        if has_choice:
            raise _UnavailableError(missing)
        return attrs.evolve(choice, lost=(*choice.lost, f"{missing}, and it runs here all the same"))

    def _check_queue_limits(self, choice: Choice, requester: Requester) -> None:
        duration = requester.attributes.duration
        if duration is None:
            duration = choice.attributes.duration
        elif isinstance(requester, Task) and share_allocation(requester):
            duration = total_duration(requester.replicas, choice.shape.slots, duration)
        if refusal := explain_refusal(self.site.limits, choice.shape, duration):
            raise _UnavailableError(refusal)

    def _evaluate(
        self, requester: Requester, names: tuple[str, ...], allowed: Container[str] | None
    ) -> Choice:
        """Return one alternative, if it is available."""
        if allowed is not None and any(name not in allowed for name in names):
            raise _UnavailableError("it is not to be scheduled")
        # a group counts its slots by one kind only
        is_job = allowed is not None and isinstance(requester, Task) and not share_allocation(requester)
        key = names, self.site.is_heterogeneous and is_job
        if key not in self._cache:
            try:
                self._cache[key] = self._build_choice(names, may_differ=key[1])
            except _UnavailableError as e:
                self._cache[key] = str(e)
        found = self._cache[key]
        if isinstance(found, str):
            raise _UnavailableError(found)
        return found

    def _build_choice(self, names: tuple[str, ...], *, may_differ: bool) -> Choice:
        """Return several resources together as one, if their slots are alike or may differ."""
        name = str(Expression((names,)))
        resources = [self.document.resources[it] for it in names]
        shape, lost = self._join_shapes(
            [documents.measure(it.vertex) for it in resources], may_differ=may_differ
        )
        requirements = [it for resource in resources for it in resource.vertex.all_requirements()]
        mapped = [(it, option) for it in requirements if (option := self._option(it)) is not None]
        answers = {
            it: evaluate_requirement(it, self.site.subsystems)
            for it in requirements
            if self._option(it) is None
        }
        answer = all_of(answers.values())
        if answer.verdict is Verdict.NO:
            raise _UnavailableError("; ".join(answer.reasons))
        self._report_unknown(answer, resources[0].at, f"resource {name!r}")
        unexpressed = [it for it, answer in answers.items() if answer.verdict is Verdict.UNKNOWN]
        return Choice(
            name=name,
            shape=shape,
            attributes=_join_attributes([it.attributes for it in resources]),
            constraints=_join_options(mapped),
            lost=(*lost, *(f"no option expresses that it requires {it}" for it in unexpressed)),
        )

    def _join_shapes(self, shapes: Sequence[Shape], *, may_differ: bool) -> tuple[Shape, list[str]]:
        """Return the shape of several shapes together as the target has it, and what it does not have."""
        merged = documents.merge_alike(shapes)
        if merged is None and not may_differ:
            pieces = "; ".join(map(str, shapes))
            msg = f"its pieces differ, and a job has one kind of slot (unsupported_feature): {pieces}"
            raise _UnavailableError(msg)
        adapted: list[Shape] = []
        lost: list[str] = []
        for it in shapes if merged is None else [merged]:
            _check_possible(it)
            # one machine stands for all nodes
            is_one = self.site.is_one_machine and it.nodes is not None and it.nodes > 1
            adapted.append(attrs.evolve(it, nodes=None) if is_one else it)
            lost += [f"its {it.nodes} nodes are all this machine"] if is_one else []
        shape = documents.combine_pieces(adapted) if merged is None else adapted[0]
        return shape, [*documents.unsupported_parts(shape), *lost]

    def _option(self, requirement: documents.Requirement) -> Mapped | None:
        """Return the option of the batch system that expresses a requirement; None if none is configured."""
        key = f"{requirement.name}.{requirement.field or requirement.attribute}"
        return self.site.constraints.get(key)

    def _check_requires(self, requester: Requester) -> None:
        requires = requester.requires
        if requires is None:
            return
        answer = evaluate_expression(requires, self.document.requires, self.site.subsystems)
        if answer.verdict is Verdict.NO:
            message = f"requires {str(requires)!r}, which is missing: {'; '.join(answer.reasons)}"
            self.findings.add_error("JS091", requires.at, message, "require what is there, or provide it")
        self._report_unknown(answer, requires.at, f"{str(requires)!r}")

    def _report_unknown(self, answer: Answer, at: Position, what: str) -> None:
        if answer.verdict is Verdict.UNKNOWN:
            is_error = self.site.is_missing_error
            add_problem = self.findings.add_error if is_error else self.findings.add_warning
            message = f"has requirements by {what} that cannot be checked: {'; '.join(answer.reasons)}"
            add_problem("JS081", at, message, "describe the subsystem in a file, or use `--missing ignore`")


def _check_possible(shape: Shape) -> None:
    if shape.nodes_per_slot > 1:
        msg = "each of its slots has several nodes, which no process has (unsupported_feature)"
        raise _UnavailableError(msg)
    if shape.nodes and shape.slots % shape.nodes:
        raise _UnavailableError("its slots cannot be spread over its nodes (unsupported_feature)")


def _join_options(mapped: Iterable[tuple[documents.Requirement, Mapped]]) -> dict[str, str]:
    """Return the options that express requirements, if options can express all of them."""
    found: dict[str, str] = {}
    for it, mapping in mapped:
        value = mapping.value.replace("{match}", it.match or it.value or "")
        known = found.setdefault(mapping.option, value)
        if known != value and mapping.join is None:
            msg = f"both {known} and {value} map to {mapping.option}, and no `join` combines them"
            raise _UnavailableError(msg)
        if known != value:
            found[mapping.option] = f"{known}{mapping.join}{value}"
    return found


def _join_attributes(attributes: Sequence[Attributes]) -> Attributes:
    """Return the attributes of several resources together, with the longest duration; no limit is longest."""
    first, *others = attributes
    for it in others:
        times = [time for time in (first.duration, it.duration) if time is not None]
        longest = max(times, key=lambda time: time or timedelta.max, default=None)
        first = attrs.evolve(first.overridden_by(it), duration=longest)
    return first
