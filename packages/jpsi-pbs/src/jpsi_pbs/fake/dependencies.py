"""The option `-W depend=` of the fakes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from jpsi.plugin import DependencyKind
from jpsi_testing.fake import FakeScheduler

from .native_ids import full_id

#: The reason of a job that is held by a dependency; below, that of one deleted for an unsatisfied dependency.
WAITS, NEVER = "depends", "in vain for "

_KINDS = {f"after{kind.value}": kind for kind in DependencyKind}


def parse_dependencies(text: str) -> list[tuple[str, str]] | None:
    """Return the kinds and ids in a `depend=`; None if it is malformed."""
    found = list(_parts(text))
    return [(kind, it) for kind, it in found if it is not None] if all(it for _, it in found) else None


def _parts(text: str) -> Iterator[tuple[str, str | None]]:
    for part in text.split(",") if text else ():
        kind, *native_ids = part.split(":")
        for native_id in native_ids or [""]:
            yield kind, full_id(native_id) if kind in _KINDS else None


def dependency_check(
    scheduler: FakeScheduler, native_id: str, dependencies: list[tuple[str, str]]
) -> Callable[[], str | None] | None:
    """Return a function that says why a job may not start yet, or None if the job has no dependencies.

    The function deletes a job that can never start, also if it depends on an unknown job.
    """
    if not dependencies:
        return None

    def blocking_reason() -> str | None:
        known = {job.native_id: job.state for job in (*scheduler.listed(), *scheduler.accounted())}
        for kind, other in dependencies:
            state = known.get(other)
            if state is None or state.meets(_KINDS[kind]) is False:
                scheduler.cancel(native_id)
                return NEVER + other
        return None if all(known[other].final for _, other in dependencies) else WAITS

    return blocking_reason
