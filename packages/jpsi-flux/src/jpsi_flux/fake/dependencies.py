"""The option `--dependency` of the fake of Flux."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jpsi.plugin import DependencyKind
from jpsi_testing.fake import FakeScheduler, FakeState

from ..native_ids import canonical_id

#: The reasons of jobs whose dependency is not satisfied yet, or never will be.
WAITS, NEVER = "Dependency", "DependencyNeverSatisfied"

_KINDS = {f"after{kind.value}": kind for kind in DependencyKind}


def dependency_refusal(scheduler: FakeScheduler, dependencies: Sequence[str]) -> str | None:
    """Return Flux's error about an invalid dependency; None if all are valid."""
    jobs_by_id = {job.native_id for job in scheduler.listed()}
    for scheme, _, value in (text.partition(":") for text in dependencies):
        if scheme not in _KINDS:
            return f'dependency scheme "{scheme}" not supported'
        try:
            native_id = canonical_id(value)
        except ValueError:
            return f'dependency: {scheme}: "{value}" is not a valid jobid'
        if native_id not in jobs_by_id:
            return f"dependency: {scheme}: id {value}: job not found"
    return None


def dependency_check(
    scheduler: FakeScheduler, native_id: str, dependencies: Sequence[str]
) -> Callable[[], str | None] | None:
    """Return a function that says why a job may not start yet, or None if the job has no dependencies.

    The function makes a job that can never start fail.
    """
    others = [
        (scheme, canonical_id(value)) for scheme, _, value in (text.partition(":") for text in dependencies)
    ]
    if not others:
        return None

    def blocking_reason() -> str | None:
        jobs_by_id = {job.native_id: job for job in scheduler.listed()}
        results = [
            jobs_by_id[other].state.meets(_KINDS[scheme]) for scheme, other in others if other in jobs_by_id
        ]
        if False in results:
            scheduler.end_as(native_id, FakeState.FAILED)
            return NEVER
        return WAITS if None in results else None

    return blocking_reason
