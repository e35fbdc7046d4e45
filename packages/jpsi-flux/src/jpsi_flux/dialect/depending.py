"""What `--dependency` means over a fake batch system."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from jpsi.fakes import FakeScheduler, FakeState

from ..ids import canonical_id

#: Why a job is pending that waits for another, and one that has waited in vain.
WAITS, NEVER = "Dependency", "DependencyNeverSatisfied"

_IS_MET: Mapping[str, Callable[[FakeState], bool]] = {
    "afterok": lambda state: state is FakeState.COMPLETED,
    "afterany": lambda state: state.final,
    "afternotok": lambda state: state is not FakeState.COMPLETED,
}


def dependency_refusal(scheduler: FakeScheduler, wanted: Sequence[str]) -> str | None:
    """What is said of a dependency that cannot be."""
    known = {job.native_id for job in scheduler.listed()}
    for scheme, _, value in (text.partition(":") for text in wanted):
        if scheme not in _IS_MET:
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
        states = [(scheme, known[other].state) for scheme, other in others if other in known]
        if any(state.final and not _IS_MET[scheme](state) for scheme, state in states):
            scheduler.end_as(native_id, FakeState.FAILED)
            return NEVER
        return WAITS if any(not state.final for _, state in states) else None

    return why
