"""Arrays over a fake batch system: each task is a job, and those that wait alike are told of together."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from jpsi.plugin.kit import read_indices, write_indices
from jpsi_testing.fake import FakeJob, limit

from .states import letters

#: sge_conf(5): max_aj_tasks
MAX_AJ_TASKS = 75000

_TASKS = re.compile(r"(?P<first>[0-9]+)(?:-(?P<last>[0-9]+)(?::(?P<step>[1-9][0-9]*))?)?\Z")
_WORD = re.compile(r"(?P<number>[0-9]+)(?:\.(?P<tasks>[0-9]+(?:-[0-9]+(?::[0-9]+)?)?))?\Z")
_ARRAY, _TASK = "array", "task"
# So many that follow each other, or less, are listed one by one.
_PAIR = 2


class Row(NamedTuple):
    """What one line of a listing is about."""

    job: FakeJob
    #: Which tasks of an array; empty for a job by itself.
    tasks: str


class Named(NamedTuple):
    """What one word on a command line names."""

    #: The number, or the name, of the job.
    number: str
    #: The tasks as they were given; empty for a job, or for all of an array.
    tasks: str
    jobs: list[FakeJob]

    @property
    def is_by_name(self) -> bool:
        """Whether it is a name, which means own jobs alone."""
        return not self.number.isdecimal()


def tasks_of(options: Mapping[str, str]) -> range | None:
    """The tasks of what is submitted; None for a job by itself."""
    match = _TASKS.match(options.get("t", ""))
    if match is None:
        return None
    first, last = sorted((int(match["first"]), int(match["last"] or match["first"])))
    return range(first, last + 1, int(match["step"] or 1))


def array_refusal(options: Mapping[str, str]) -> str | None:
    """Why an array cannot be had."""
    tasks = tasks_of(options)
    if tasks is not None and tasks.start == 0:
        return "job rejected: 0 is an invalid task id"
    if tasks is not None and len(tasks) > MAX_AJ_TASKS:
        return f"job rejected: you tried to submit a job with more than {MAX_AJ_TASKS} tasks"
    return None


def keep_limit(jobs: Sequence[FakeJob], options: Mapping[str, str]) -> None:
    """Let as many tasks of an array run at a time as the options say, if they do; 0 is all."""
    at_a_time = int(options.get("tc", "0"))
    if at_a_time:
        limit(jobs, at_a_time, "limit")


def number_of(job: FakeJob) -> str:
    """The number of a job, which the tasks of an array have in common."""
    return str(job.attributes.get(_ARRAY, job.native_id))


def called(job: FakeJob) -> str:
    """The name that a job has in Grid Engine; a stranger's carries no tag."""
    return job.tag or job.name


def task_of(job: FakeJob) -> int | None:
    """Which task of an array a job is."""
    task: int | None = job.attributes.get(_TASK)
    return task


def as_task(job: FakeJob, tasks: range, task: int) -> None:
    """Make a job a task of an array, whose number it has."""
    number = job.native_id
    job.native_id = f"{number}.{task}"
    job.attributes.update({_ARRAY: number, _TASK: task})
    job.environment.update(
        SGE_TASK_ID=str(task),
        SGE_TASK_FIRST=str(tasks[0]),
        SGE_TASK_LAST=str(tasks[-1]),
        SGE_TASK_STEPSIZE=str(tasks.step),
    )


def rows(jobs: Iterable[FakeJob]) -> Iterator[Row]:
    """What qstat has a line for: tasks that wait, and are in one state, share it."""
    waiting: dict[tuple[str, str], list[FakeJob]] = {}
    for job in jobs:
        task = task_of(job)
        if task is None or letters(job)[-1] == "r":
            yield Row(job, "" if task is None else str(task))
        else:
            waiting.setdefault((number_of(job), letters(job)), []).append(job)
    for alike in waiting.values():
        yield Row(alike[0], ranges(alike))


def ranges(tasks: Iterable[FakeJob]) -> str:
    """Tasks as Grid Engine writes them: `1-3:1,7,8`."""
    runs = read_indices(write_indices(task_of(job) or 0 for job in tasks))
    return ",".join(f"{run[0]}-{run[-1]}:1" if len(run) > _PAIR else ",".join(map(str, run)) for run in runs)


def named(words: Iterable[str], jobs: Iterable[FakeJob]) -> Iterator[Named]:
    """What words of a command line name; what is unknown is a number or a name without jobs.

    A name means the user's own jobs that are called so, and `-t` behind it which of their tasks.
    """
    rest = list(words)
    by_number: dict[str, list[FakeJob]] = {}
    by_name: dict[str, list[FakeJob]] = {}
    for job in jobs:
        by_number.setdefault(number_of(job), []).append(job)
        if job.is_own:
            by_name.setdefault(called(job), []).append(job)
    while rest:
        word = rest.pop(0)
        match = _WORD.match(word)
        number, tasks = (word, "") if match is None else (match["number"], match["tasks"] or "")
        if rest[:1] == ["-t"]:
            tasks = rest[1]
            del rest[:2]
        asked = {index for run in read_indices(tasks or "0") for index in run}
        found = by_name.get(word, []) if match is None else by_number.get(number, [])
        yield Named(number, tasks, [job for job in found if not tasks or task_of(job) in asked])
