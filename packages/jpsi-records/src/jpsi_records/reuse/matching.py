"""The match of recorded executions with a request spec, and the reasons against the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import attrs

from ..model import Execution, ExecutionState, Purity, RequestSpec, unmet_constraints, unmet_filters
from .canonical_key import Difference, differences, recalled

#: A function that returns why the outputs of an execution are unusable for the user, or None.
Evidence = Callable[[Execution], str | None]


@attrs.frozen(slots=True)
class NearMiss:
    """An execution that does not satisfy a request spec, and the reasons."""

    execution: Execution
    #: The differences between the two computations.
    differences: tuple[Difference, ...]
    #: The reasons against it even if the computations were equal.
    objections: tuple[str, ...] = ()


def choose(
    candidates: Iterable[Execution], spec: RequestSpec, now: datetime, evidence: Evidence
) -> Execution | None:
    """Return the best of several executions of the same computation that satisfies a request spec.

    Ended executions come before running ones, and those before queued ones; of the ended ones the oldest is
    taken, so that all users get the same.
    """
    for execution in sorted(candidates, key=lambda it: _rank(it, spec)):
        if not any(True for _ in objections(execution, spec, now, evidence)):
            return execution
    return None


def _rank(execution: Execution, spec: RequestSpec) -> tuple[Any, ...]:
    created = execution.created_at
    match execution.state:
        case ExecutionState.COMPLETE | ExecutionState.CANCELLED:
            has_failed = not execution.has_succeeded(spec.success_exit_codes)
            return 0, has_failed, execution.finished_at or created, execution.id
        case ExecutionState.RUNNING:
            return 1, -execution.progress, execution.started_at or created, execution.id
        case ExecutionState.CLAIMED:
            return 2, -execution.priority, created, execution.id
        case ExecutionState.QUEUED:
            return 3, -execution.priority, created, execution.id


def objections(execution: Execution, spec: RequestSpec, now: datetime, evidence: Evidence) -> Iterator[str]:
    """Yield why an execution of the same computation does not satisfy a request spec."""
    if execution.invalidated_by is not None:
        yield f"{execution.invalidated_by} has invalidated it"
    if recalled(execution.preimage)["purity"] == Purity.OFF.value:
        yield "its purity is off, so that nothing is known of what it depends on"
    yield from _by_its_end(execution, spec) if execution.state.ended else _before_its_end(execution, spec)
    if _is_too_old(execution, spec, now):
        yield f"it ended more than {timedelta(seconds=spec.max_age or 0)} ago"
    yield from unmet_constraints(spec.runtime_constraints, execution.given)
    yield from unmet_filters(spec.filters, execution)
    if execution.state is ExecutionState.COMPLETE:
        wrong = evidence(execution)
        if wrong is not None:
            yield wrong


def _by_its_end(execution: Execution, spec: RequestSpec) -> Iterator[str]:
    if execution.state is ExecutionState.CANCELLED:
        yield f"it was cancelled ({execution.reason or 'no reason is known'})"
    elif not spec.accepts_failed:
        if execution.exit_code not in spec.success_exit_codes:
            yield f"it failed with exit code {execution.exit_code}"
        if execution.status.get("error"):
            yield f"it reports an error: {execution.status['error']}"


def _before_its_end(execution: Execution, spec: RequestSpec) -> Iterator[str]:
    if execution.status.get("error"):
        yield f"it reports an error: {execution.status['error']}"
    if execution.reason is not None:
        yield f"it is about to be cancelled ({execution.reason})"
    for target, wanted in spec.capacities.items():
        if execution.capacities.get(target, wanted) < wanted:
            yield f"the capacity of its {target} is {execution.capacities[target]}, and not {wanted}"


def _is_too_old(execution: Execution, spec: RequestSpec, now: datetime) -> bool:
    if spec.max_age is None or execution.finished_at is None:
        return False
    return execution.finished_at + timedelta(seconds=spec.max_age) < now


def near_misses(
    wanted: str, others: Iterable[Execution], spec: RequestSpec, now: datetime, evidence: Evidence
) -> Sequence[NearMiss]:
    """Return the executions as near misses, those with the fewest differences first."""
    found = [
        NearMiss(it, tuple(differences(wanted, it.preimage)), tuple(objections(it, spec, now, evidence)))
        for it in others
    ]
    return sorted(found, key=lambda it: (len(it.differences), len(it.objections), it.execution.id))
