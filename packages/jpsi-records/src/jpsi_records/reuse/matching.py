"""The match of recorded executions with a request spec, and the reasons against the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import attrs

from ..model import Execution, ExecutionState, Purity, Wish, unmet_constraints, unmet_filters
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
    candidates: Iterable[Execution], wish: Wish, now: datetime, evidence: Evidence
) -> Execution | None:
    """Return the best of several executions of the same computation that satisfies a request spec.

    Ended executions come before running ones, and those before queued ones; of the ended ones the oldest is
    taken, so that all users get the same.
    """
    for execution in sorted(candidates, key=lambda it: _rank(it, wish)):
        if not any(True for _ in objections(execution, wish, now, evidence)):
            return execution
    return None


def _rank(execution: Execution, wish: Wish) -> tuple[Any, ...]:
    created = execution.created_at
    match execution.state:
        case ExecutionState.COMPLETE | ExecutionState.CANCELLED:
            has_failed = not execution.has_succeeded(wish.success_exit_codes)
            return 0, has_failed, execution.finished_at or created, execution.id
        case ExecutionState.RUNNING:
            return 1, -execution.progress, execution.started_at or created, execution.id
        case ExecutionState.CLAIMED:
            return 2, -execution.priority, created, execution.id
        case ExecutionState.QUEUED:
            return 3, -execution.priority, created, execution.id


def objections(execution: Execution, wish: Wish, now: datetime, evidence: Evidence) -> Iterator[str]:
    """Yield why an execution of the same computation does not satisfy a request spec."""
    if execution.invalidated_by is not None:
        yield f"{execution.invalidated_by} has invalidated it"
    if recalled(execution.preimage)["purity"] == Purity.OFF.value:
        yield "its purity is off, so that nothing is known of what it depends on"
    yield from _by_its_end(execution, wish) if execution.state.ended else _before_its_end(execution, wish)
    if _is_too_old(execution, wish, now):
        yield f"it ended more than {timedelta(seconds=wish.max_age or 0)} ago"
    yield from unmet_constraints(wish.runtime_constraints, execution.given)
    yield from unmet_filters(wish.filters, execution)
    if execution.state is ExecutionState.COMPLETE:
        wrong = evidence(execution)
        if wrong is not None:
            yield wrong


def _by_its_end(execution: Execution, wish: Wish) -> Iterator[str]:
    if execution.state is ExecutionState.CANCELLED:
        yield f"it was cancelled ({execution.reason or 'no reason is known'})"
    elif not wish.accepts_failed:
        if execution.exit_code not in wish.success_exit_codes:
            yield f"it failed with exit code {execution.exit_code}"
        if execution.status.get("error"):
            yield f"it reports an error: {execution.status['error']}"


def _before_its_end(execution: Execution, wish: Wish) -> Iterator[str]:
    if execution.status.get("error"):
        yield f"it reports an error: {execution.status['error']}"
    if execution.reason is not None:
        yield f"it is about to be cancelled ({execution.reason})"
    for target, wanted in wish.capacities.items():
        if execution.capacities.get(target, wanted) < wanted:
            yield f"the capacity of its {target} is {execution.capacities[target]}, and not {wanted}"


def _is_too_old(execution: Execution, wish: Wish, now: datetime) -> bool:
    if wish.max_age is None or execution.finished_at is None:
        return False
    return execution.finished_at + timedelta(seconds=wish.max_age) < now


def near_misses(
    wanted: str, others: Iterable[Execution], wish: Wish, now: datetime, evidence: Evidence
) -> Sequence[NearMiss]:
    """Return the executions as near misses, those with the fewest differences first."""
    found = [
        NearMiss(it, tuple(differences(wanted, it.preimage)), tuple(objections(it, wish, now, evidence)))
        for it in others
    ]
    return sorted(found, key=lambda it: (len(it.differences), len(it.objections), it.execution.id))
