"""The numbers of the runs of a job: OAR resubmits a job as a new one, with the array id of the first.

`submit` and `listing` use it.
"""

from __future__ import annotations

from collections.abc import Callable

from jpsi_testing.fake import FakeJob, FakeScheduler

_NUMBERS = "numbers"


def number_runs(scheduler: FakeScheduler, job: FakeJob, first: int | None = None) -> list[int]:
    """Return the numbers that OAR gave to a job, one for each time that it was submitted."""
    numbers: list[int] = job.attributes.setdefault(_NUMBERS, [] if first is None else [first])
    while len(numbers) <= job.restarts:
        numbers.append(scheduler.next_number())
    return numbers[: job.restarts + 1]


def make_run_numbers(scheduler: FakeScheduler) -> Callable[[FakeJob], None]:
    """Return the function that tells a job the number of its run."""

    def start(job: FakeJob) -> None:
        job.environment["OAR_JOB_ID"] = str(number_runs(scheduler, job)[-1])

    return start
