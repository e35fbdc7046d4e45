"""Arrays in the fake of Grid Engine: each task is a job, and pending tasks in one state share a row.

Tests and `jpsi fake` run jobs on the fake, without a real Grid Engine.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from jpsi.plugin.kit import read_indices, write_indices
from jpsi_testing.fake import FakeJob

from .states import state_letters

#: sge_conf(5): max_aj_tasks
MAX_AJ_TASKS = 75000

_TASKS = re.compile(r"(?P<first>[0-9]+)(?:-(?P<last>[0-9]+)(?::(?P<step>[1-9][0-9]*))?)?\Z")
_WORD = re.compile(r"(?P<number>[0-9]+)(?:\.(?P<tasks>[0-9]+(?:-[0-9]+(?::[0-9]+)?)?))?\Z")
# Grid Engine lists runs of up to this many tasks one by one.
_PAIR = 2


class Row(NamedTuple):
    """A row of a listing: a job, or tasks of an array."""

    job: FakeJob
    #: The tasks of an array; "" for a single job.
    tasks: str


class NamedJobs(NamedTuple):
    """The jobs that one argument of a command names."""

    #: The number, or the name, of the job.
    number: str
    #: The tasks as in the argument; "" for a job, or for all tasks of an array.
    tasks: str
    jobs: list[FakeJob]

    @property
    def is_by_name(self) -> bool:
        """True if the argument is a name, which means the user's own jobs only."""
        return not self.number.isdecimal()


def array_tasks(options: Mapping[str, str]) -> range | None:
    """Return the tasks of a submitted array; None for a single job."""
    match = _TASKS.match(options.get("t", ""))
    if match is None:
        return None
    first, last = sorted((int(match["first"]), int(match["last"] or match["first"])))
    return range(first, last + 1, int(match["step"] or 1))


def job_name_of(job: FakeJob) -> str:
    """Return a job's name in Grid Engine; jobs that jpsi did not submit have no tag in it."""
    return job.tag or job.name


def qstat_rows(jobs: Iterable[FakeJob]) -> Iterator[Row]:
    """Yield the rows of qstat; pending tasks of an array in one state share a row."""
    pending: dict[tuple[str, str], list[FakeJob]] = {}
    for job in jobs:
        if not job.array or state_letters(job)[-1] == "r":
            yield Row(job, str(job.index) if job.array else "")
        else:
            pending.setdefault((job.array, state_letters(job)), []).append(job)
    for tasks in pending.values():
        yield Row(tasks[0], task_ranges(tasks))


def task_ranges(tasks: Iterable[FakeJob]) -> str:
    """Return tasks in Grid Engine's notation: `1-3:1,7,8`."""
    runs = read_indices(write_indices(job.index for job in tasks))
    return ",".join(f"{run[0]}-{run[-1]}:1" if len(run) > _PAIR else ",".join(map(str, run)) for run in runs)


def find_jobs(words: Iterable[str], jobs: Iterable[FakeJob]) -> Iterator[NamedJobs]:
    """Yield the jobs that each argument names; unknown numbers and names yield no jobs.

    A name means the user's own jobs of that name; `-t` after it selects tasks.
    """
    remaining = list(words)
    by_number: dict[str, list[FakeJob]] = {}
    by_name: dict[str, list[FakeJob]] = {}
    for job in jobs:
        by_number.setdefault(job.number, []).append(job)
        if job.is_own:
            by_name.setdefault(job_name_of(job), []).append(job)
    while remaining:
        word = remaining.pop(0)
        match = _WORD.match(word)
        number, tasks = (word, "") if match is None else (match["number"], match["tasks"] or "")
        if remaining[:1] == ["-t"]:
            tasks = remaining[1]
            del remaining[:2]
        indices = {index for run in read_indices(tasks or "0") for index in run}
        found = by_name.get(word, []) if match is None else by_number.get(number, [])
        yield NamedJobs(number, tasks, [job for job in found if not tasks or job.index in indices])
