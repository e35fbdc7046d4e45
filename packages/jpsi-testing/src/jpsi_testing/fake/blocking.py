"""Makes jobs of a fake batch system wait: for other jobs (dependencies), or for a limit of their array.

The submit commands of backends' fakes use it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence

from jpsi.plugin import DependencyKind
from jpsi_testing.fake.job import FakeJob, FakeState

#: Returns why a job may not start now; None if it may.
Blocked = Callable[[], str | None]


def wait_for_jobs(
    dependencies: Sequence[tuple[DependencyKind, str]],
    known: Callable[[], Iterable[FakeJob]],
    waits: str,
    never: str,
    give_up: Callable[[], object] | None = None,
) -> Blocked | None:
    """Return a function that says why a job may not start yet, or None if it depends on no other.

    Args:
        dependencies: the native ids of the other jobs, each with its kind.
        known: returns the jobs that the batch system knows; others satisfy every dependency.
        waits: the reason while other jobs have not ended.
        never: the reason once the job can never start.
        give_up: called when the job can never start, for example to cancel it.
    """

    def reason() -> str | None:
        states = {job.native_id: job.state for job in known()}
        results = [states[other].meets(kind) for kind, other in dependencies if other in states]
        if False in results:
            if give_up is not None:
                give_up()
            return never
        return waits if None in results else None

    return reason if dependencies else None


def limit(jobs: Sequence[FakeJob], at_a_time: int, why: str) -> None:
    """Let at most `at_a_time` of these jobs run at a time, such as the elements of an array; 0 is no limit.

    The others wait with the reason `why`, unless their own `blocked` already returns a reason.
    """

    def reason(own_reason: Blocked | None) -> str | None:
        found = None if own_reason is None else own_reason()
        is_full = sum(job.state is FakeState.RUNNING for job in jobs) >= at_a_time
        return why if found is None and is_full else found

    for job in jobs if at_a_time else ():
        job.blocked = functools.partial(reason, job.blocked)
