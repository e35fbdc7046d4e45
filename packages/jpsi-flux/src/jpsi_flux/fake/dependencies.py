"""The option `--dependency` of the fake of Flux."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jpsi.plugin import DependencyKind
from jpsi_testing.fake import FakeScheduler, FakeState

from ..native_ids import canonical_id

#: The reasons of jobs whose dependency is not satisfied yet, or never will be.
WAITS, NEVER = "Dependency", "DependencyNeverSatisfied"

_KINDS = {f"after{kind.value}": kind for kind in DependencyKind}


def dependency_refusal(scheduler: FakeScheduler, wanted: Sequence[str]) -> str | None:
    """Return Flux's error about an invalid dependency; None if all are valid."""
    known = {job.native_id for job in scheduler.listed()}
    for scheme, _, value in (text.partition(":") for text in wanted):
        if scheme not in _KINDS:
            return f'dependency scheme "{scheme}" not supported'
        try:
            native_id = canonical_id(value)
        except ValueError:
            return f'dependency: {scheme}: "{value}" is not a valid jobid'
        if native_id not in known:
            return f"dependency: {scheme}: id {value}: job not found"
    return None


def blocked(
    scheduler: FakeScheduler, native_id: str, wanted: Sequence[str]
) -> Callable[[], str | None] | None:
    """Return a function that says why a job may not start yet, or None if the job has no dependencies.

    The function makes a job that can never start fail.
    """
    others = [(scheme, canonical_id(value)) for scheme, _, value in (text.partition(":") for text in wanted)]
    if not others:
        return None

    def why() -> str | None:
        known = {job.native_id: job for job in scheduler.listed()}
        met = [known[other].state.meets(_KINDS[scheme]) for scheme, other in others if other in known]
        if False in met:
            scheduler.end_as(native_id, FakeState.FAILED)
            return NEVER
        return WAITS if None in met else None

    return why
