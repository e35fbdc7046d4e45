"""Decides which of a job's dependencies the batch system must still know: pure functions.

A batch system forgets jobs, and may count a dependency on an unknown job as satisfied. So jpsi passes on only
dependencies on jobs that have not ended, and decides itself whether the others are satisfied.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from jpsi.plugin import Dependency, JobState
from jpsi.plugin.engine import unmet


@attrs.frozen(slots=True)
class SortedDependencies:
    """The dependencies of a job, sorted by what is known of them."""

    #: The dependencies on jobs that have not ended.
    open: tuple[Dependency, ...]
    #: Why the job can never start, one sentence each.
    never: tuple[str, ...]
    #: The native ids of jobs that may or may not have ended.
    unclear: tuple[str, ...]


def sort_dependencies(
    wanted: Iterable[Dependency], known: Mapping[str, JobState | None]
) -> SortedDependencies:
    """Sort dependencies by the states of their jobs.

    Args:
        wanted: the dependencies, each with a native id.
        known: the states of jobs by native id; None for a job that exists in an unknown state. Jobs that
            neither jpsi nor the batch system knows are left out.
    """
    still_open: list[Dependency] = []
    never: list[str] = []
    unclear: list[str] = []
    for dependency in wanted:
        native_id = dependency.native_id or ""
        state = known.get(native_id)
        if native_id not in known:
            never.append(
                f"attributes.after names the job {native_id}, which is not known, or not known any more"
            )
        elif state is None:
            unclear.append(native_id)
        elif (is_met := dependency.kind.is_met(state)) is None:
            still_open.append(dependency)
        elif not is_met:
            never.append(unmet(dependency, native_id, state))
    return SortedDependencies(tuple(still_open), tuple(never), tuple(unclear))
