"""Chooses the recorded execution that satisfies a request, and names the reasons against the others.

`assignment` uses it for previews and commits. An execution of the same computation may still be unusable: it
failed, is too old, has other resources, or its output is not there or not readable for the user.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import attrs

from ..model import Execution, ExecutionState, Purity, RequestSpec, unmet_constraints, unmet_filters
from .canonical_key import Difference, differences, recalled

#: A function that returns why the output of an execution is unusable for the user, or None.
Evidence = Callable[[Execution], str | None]


@attrs.frozen(slots=True)
class NearMiss:
    """An execution that does not satisfy a request spec, and the reasons."""

    execution: Execution
    #: The differences between the two computations.
    differences: tuple[Difference, ...]
    #: The reasons against it even if the computations were equal.
    objections: tuple[str, ...] = ()

    @property
    def distance(self) -> tuple[int, int]:
        """The numbers of differences and of objections; the less, the closer."""
        return len(self.differences), len(self.objections)


@attrs.frozen(slots=True)
class Matcher:
    """Compares executions with a request spec, at the time `now`."""

    spec: RequestSpec
    now: datetime
    evidence: Evidence

    def choose(self, candidates: Iterable[Execution]) -> Execution | None:
        """Return the best execution that satisfies the request spec, of executions of the same computation.

        Ended executions come before running ones, and running ones before queued ones. Of the ended ones it
        takes the oldest, so that all users get the same.
        """
        ranked = sorted(candidates, key=self._rank)
        return next((it for it in ranked if not any(True for _ in self.objections(it))), None)

    def _rank(self, execution: Execution) -> tuple[Any, ...]:
        created = execution.created_at
        match execution.state:
            case ExecutionState.COMPLETE | ExecutionState.CANCELLED:
                has_failed = not execution.has_succeeded(self.spec.success_exit_codes)
                return 0, has_failed, execution.finished_at or created, execution.id
            case ExecutionState.RUNNING:
                return 1, -execution.progress, execution.started_at or created, execution.id
            case ExecutionState.CLAIMED:
                return 2, -execution.priority, created, execution.id
            case ExecutionState.QUEUED:
                return 3, -execution.priority, created, execution.id

    def objections(self, execution: Execution) -> Iterator[str]:
        """Yield why an execution of the same computation does not satisfy the request spec."""
        if execution.invalidated_by is not None:
            yield f"{execution.invalidated_by} has invalidated it"
        if recalled(execution.preimage)["purity"] == Purity.OFF.value:
            yield "its purity is off, so that nothing is known of what it depends on"
        yield from self._by_its_end(execution) if execution.state.ended else self._before_its_end(execution)
        ended, max_age = execution.finished_at, self.spec.max_age
        # The age is compared as a number: the largest times and durations of Python are far smaller.
        if max_age is not None and ended is not None and (self.now - ended).total_seconds() > max_age:
            yield f"it ended more than {timedelta(seconds=max(max_age, 0))} ago"
        yield from unmet_constraints(self.spec.runtime_constraints, execution.granted)
        yield from unmet_filters(self.spec.filters, execution)
        if execution.state is ExecutionState.COMPLETE and (why := self.evidence(execution)) is not None:
            yield why

    def _by_its_end(self, execution: Execution) -> Iterator[str]:
        if execution.state is ExecutionState.CANCELLED:
            end = "failed" if execution.failed_without_result else "was cancelled"
            yield f"it {end} ({execution.reason or 'no reason is known'})"
        elif not self.spec.accepts_failed:
            if execution.exit_code not in self.spec.success_exit_codes:
                yield f"it failed with exit code {execution.exit_code}"
            yield from _reported_error(execution)

    def _before_its_end(self, execution: Execution) -> Iterator[str]:
        yield from _reported_error(execution)
        if execution.reason is not None:
            yield f"it is about to be cancelled ({execution.reason})"
        for target, wanted in self.spec.capacities.items():
            if execution.capacities.get(target, wanted) < wanted:
                yield f"the capacity of its {target} is {execution.capacities[target]}, and not {wanted}"

    def near_misses(self, wanted: str, others: Iterable[Execution], most: int) -> Sequence[NearMiss]:
        """Return the closest executions as near misses: the closest first, and the newest first of equals."""
        found = [
            NearMiss(it, tuple(differences(wanted, it.preimage)), tuple(self.objections(it))) for it in others
        ]
        newest_first = sorted(found, key=lambda it: it.execution.id, reverse=True)
        return sorted(newest_first, key=lambda it: it.distance)[:most]


def _reported_error(execution: Execution) -> Iterator[str]:
    if execution.status.get("error"):
        yield f"it reports an error: {execution.status['error']}"
