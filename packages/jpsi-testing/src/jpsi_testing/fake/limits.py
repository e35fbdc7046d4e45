"""Limits on the number of jobs of a fake batch system that run at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jpsi_testing.fake.job import FakeJob, FakeState


def limit(jobs: Sequence[FakeJob], at_a_time: int, why: str) -> None:
    """Let only so many of these jobs run at a time, such as the elements of an array.

    The others wait with the reason `why`, unless their own `blocked` already returns a reason.
    """

    def limit_reason() -> str | None:
        return why if sum(job.state is FakeState.RUNNING for job in jobs) >= at_a_time else None

    for job in jobs:
        job.blocked = limit_reason if job.blocked is None else _first_reason(job.blocked, limit_reason)


def _first_reason(
    before: Callable[[], str | None], after: Callable[[], str | None]
) -> Callable[[], str | None]:
    def why() -> str | None:
        found = before()
        return after() if found is None else found

    return why
