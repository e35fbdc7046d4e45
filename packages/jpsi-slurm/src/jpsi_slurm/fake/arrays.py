"""Arrays in the fake of Slurm: each element is a job, and pending elements share a row of squeue.

Tests and `jpsi fake` run jobs on the fake, without a real Slurm.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from jpsi.plugin.kit import write_indices
from jpsi_testing.fake import CommandError, FakeJob, FakeScheduler, FakeState

from ..native_ids import expand_ids
from .states import COMPONENT_NUMBERS, NUMBER, Line, job_number

#: slurm.conf(5): MaxArraySize
MAX_ARRAY_SIZE = 1001


def assign_number(scheduler: FakeScheduler, job: FakeJob) -> None:
    """Give an element its own number, as Slurm does when an event affects that element alone."""
    if job.array:
        job.attributes.setdefault(NUMBER, str(scheduler.next_number()))


def find_jobs(words: Iterable[str], jobs: Iterable[FakeJob]) -> dict[str, list[FakeJob]]:
    """Return the jobs that each word names; a number may be that of an array."""
    words = list(words)
    by_name: dict[str, list[FakeJob]] = {}
    # most submissions name no job, and there may be many jobs
    for job in jobs if words else ():
        for name in {job.native_id, job_number(job), job.number}:
            by_name.setdefault(name, []).append(job)
    return {word: [job for name in expand_ids(word) for job in by_name.get(name, ())] for word in words}


def check_ids(words: Iterable[str], message: str) -> None:
    """Raise a command's error about the first word that is no id, which is `{}` in the message.

    Raises:
        CommandError: there is one.
    """
    for word in words:
        if not any(expand_ids(word)):
            raise CommandError(1, message.format(word))


def queue_lines(jobs: Sequence[FakeJob]) -> Iterator[Line]:
    """Yield the lines of squeue.

    Pending elements without a number of their own share a line. Cancelled ones among them have no line; once
    no other element is pending, the array gets a line of its own.
    """
    waiting: dict[str, list[FakeJob]] = {}
    cancelled: dict[str, FakeJob] = {}
    for job in jobs:
        if COMPONENT_NUMBERS in job.attributes:
            for component in range(len(job.attributes[COMPONENT_NUMBERS])):
                yield Line(job, f"{job.native_id}+{component}", component)
        elif not job.array or NUMBER in job.attributes:
            yield Line(job, job.native_id)
        elif job.state is FakeState.CANCELLED:
            cancelled.setdefault(job.array, job)
        else:
            waiting.setdefault(job.array, []).append(job)
    for array, elements in waiting.items():
        indices = write_indices(job.index for job in elements)
        limit = "".join(elements[0].attributes.get("options", {}).get("array", "").partition("%")[1:])
        yield Line(elements[0], f"{array}_{indices}" if len(elements) == 1 else f"{array}_[{indices}{limit}]")
    for array in cancelled.keys() - waiting.keys():
        yield Line(cancelled[array], array)
