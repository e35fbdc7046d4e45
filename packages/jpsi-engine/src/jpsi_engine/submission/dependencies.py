"""Which of the jobs that a job waits for the batch system must still be told of: pure.

A batch system forgets jobs, and may take a dependency on a job that it does not know for satisfied. So it is
told only of jobs that have not ended; how the others ended is weighed here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from jpsi.plugin import Dependency, JobState
from jpsi.plugin.engine import unmet


@attrs.frozen(slots=True)
class Weighed:
    """What became of a job's dependencies."""

    #: Those on jobs that have not ended.
    open: tuple[Dependency, ...]
    #: Why the job can never start, one sentence each.
    never: tuple[str, ...]
    #: The native ids of jobs of which it is not known whether they have ended.
    unclear: tuple[str, ...]


def weigh(wanted: Iterable[Dependency], known: Mapping[str, JobState | None]) -> Weighed:
    """Sort dependencies by how far the jobs have come.

    Args:
        wanted: the dependencies, each with a native id.
        known: the states of jobs by native id; None for one that is there somewhere, in no known state.
            A job that nobody knows is left out.
    """
    still: list[Dependency] = []
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
            still.append(dependency)
        elif not is_met:
            never.append(unmet(dependency, native_id, state))
    return Weighed(tuple(still), tuple(never), tuple(unclear))
