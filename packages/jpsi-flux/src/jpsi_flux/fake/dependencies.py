"""What `--dependency` means over a fake batch system."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jpsi.plugin import DependencyKind
from jpsi_testing.fake import FakeScheduler, FakeState

from ..native_ids import canonical_id

#: Why a job is pending that waits for another, and one that has waited in vain.
WAITS, NEVER = "Dependency", "DependencyNeverSatisfied"

_KINDS = {f"after{kind.value}": kind for kind in DependencyKind}


def dependency_refusal(scheduler: FakeScheduler, wanted: Sequence[str]) -> str | None:
    """What is said of a dependency that cannot be."""
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
    """Says why a job may not start yet; one that never may fails."""
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
