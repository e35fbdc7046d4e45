"""Decides if a site meets the requirements of a document: yes, no or unknown, with the reasons. Pure.

The chooser and `jpsi workflow satisfy` use it.
"""

from __future__ import annotations

import difflib
import enum
from collections.abc import Iterable, Iterator, Mapping

import attrs

from ..document import Document, Expression, Requirement, Task, get_matcher
from .subsystems import SubsystemNode, Subsystems


class Verdict(enum.StrEnum):
    """The verdict on a requirement."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@attrs.frozen(slots=True)
class Answer:
    """A verdict and its reasons, a sentence each."""

    verdict: Verdict
    reasons: tuple[str, ...] = ()


def all_of(answers: Iterable[Answer]) -> Answer:
    """Return the verdict of several answers that must all be yes."""
    return _combine(answers, (Verdict.NO, Verdict.UNKNOWN), Verdict.YES)


def any_of(answers: Iterable[Answer]) -> Answer:
    """Return the verdict of several answers of which one must be yes."""
    return _combine(answers, (Verdict.YES, Verdict.UNKNOWN), Verdict.NO)


def _combine(answers: Iterable[Answer], deciding: Iterable[Verdict], other: Verdict) -> Answer:
    evaluated = list(answers)
    verdict = next((it for it in deciding if any(answer.verdict is it for answer in evaluated)), other)
    return Answer(verdict, tuple(reason for answer in evaluated for reason in answer.reasons))


def evaluate_expression(
    expression: Expression, blocks: Mapping[str, Iterable[Requirement]], subsystems: Subsystems
) -> Answer:
    """Return the verdict on an expression: it takes all blocks of one alternative, and all of each block."""
    return any_of(
        all_of(all_of(evaluate_requirement(it, subsystems) for it in blocks[name]) for name in names)
        for names in expression.alternatives
    )


def evaluate_requirement(requirement: Requirement, subsystems: Subsystems) -> Answer:
    """Return the verdict on a requirement: yes if one node of the subsystem meets it."""
    if requirement.name not in subsystems:
        known = ", ".join(sorted(subsystems)) or "none"
        reason = f"nothing is known of {requirement.name!r}; known subsystems: {known}"
        return Answer(Verdict.UNKNOWN, (f"{requirement}: {reason}",))
    nodes = subsystems[requirement.name]
    found = next((it for it in nodes if _is_met(requirement, it)), None)
    if found is not None:
        return Answer(Verdict.YES, (f"{requirement}: {found.name} has it",))
    return Answer(Verdict.NO, (f"{requirement}: {_describe_nearest(requirement, nodes)}",))


def evaluate_requirements(document: Document, subsystems: Subsystems) -> Iterator[tuple[str, Answer]]:
    """Yield the requirements of each task, group and resource, by its name, and the verdict on them."""
    for it in (*document.groups.values(), *document.all_tasks()):
        if it.requires is not None:
            kind = "task" if isinstance(it, Task) else "group"
            yield f"{kind} {it.name}", evaluate_expression(it.requires, document.requires, subsystems)
    for name, resource in document.resources.items():
        if requirements := resource.vertex.all_requirements():
            yield f"resource {name}", all_of(evaluate_requirement(it, subsystems) for it in requirements)


def _is_met(requirement: Requirement, node: SubsystemNode) -> bool:
    """Return True if the node meets both parts."""
    return _has_field(requirement, node) and _has(
        requirement, requirement.attribute, requirement.value, node.attributes
    )


def _has_field(requirement: Requirement, node: SubsystemNode) -> bool:
    return _has(requirement, requirement.field, requirement.match, node.fields)


def _has(requirement: Requirement, key: str | None, wanted: str | None, values: Mapping[str, str]) -> bool:
    """Return True if the value of a key matches; without a key, nothing is required."""
    matches = get_matcher(requirement.matcher)
    return key is None or (key in values and matches(values[key], wanted or ""))


def _describe_nearest(requirement: Requirement, nodes: Iterable[SubsystemNode]) -> str:
    """Return the values that exist instead of the wanted one."""
    has_field = [it for it in nodes if _has_field(requirement, it)]
    if requirement.attribute is not None and has_field:
        key, wanted = requirement.attribute, requirement.value or ""
        values = {it.attributes[key] for it in has_field if key in it.attributes}
    else:
        key, wanted = requirement.field or "", requirement.match or ""
        values = {it.fields[key] for it in nodes if key in it.fields}
    if not values:
        return f"no node has {key!r}"
    closest = difflib.get_close_matches(wanted, sorted(values), n=_MAX_SUGGESTIONS, cutoff=0.0)
    return f"no node has that; values of {key!r} are: {', '.join(closest)}"


_MAX_SUGGESTIONS = 5
