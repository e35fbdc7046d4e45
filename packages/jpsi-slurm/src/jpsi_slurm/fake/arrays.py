"""Arrays over a fake batch system: each element is a job, and those that wait are told of together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from jpsi.plugin.kit import read_indices, write_indices
from jpsi_testing.fake import FakeJob, FakeScheduler, FakeState, limit

from ..native_ids import named

#: slurm.conf(5): MaxArraySize
MAX_ARRAY_SIZE = 1001

#: Why an element waits that may not run beside so many others.
_LIMITED = "JobArrayTaskLimit"
_ARRAY, _INDEX, _NUMBER = "array", "index", "number"
#: The attribute of a heterogeneous job that has the numbers of its components.
NUMBERS = "numbers"


class Line(NamedTuple):
    """What one line of a listing is about."""

    job: FakeJob
    #: How it is named there.
    shown: str
    #: Which component of a heterogeneous job it is about.
    component: int = 0

    @property
    def number(self) -> str:
        """The number of what it is about."""
        numbers = self.job.attributes.get(NUMBERS)
        return str(numbers[self.component]) if numbers else number_of(self.job)


def array_refusal(options: Mapping[str, str]) -> str | None:
    """Why an array cannot be had."""
    indices = _indices(options)
    too_large = indices and max(indices) >= MAX_ARRAY_SIZE
    return "Invalid job array specification" if too_large else None


def native_ids(number: str, options: Mapping[str, str]) -> list[tuple[str, dict[str, int | str]]]:
    """The ids of what is submitted: a job, or the elements of an array with what marks them as such."""
    indices = _indices(options)
    if not indices:
        return [(number, {})]
    return [(f"{number}_{index}", {_ARRAY: number, _INDEX: index}) for index in indices]


def keep_limit(jobs: Sequence[FakeJob], options: Mapping[str, str]) -> None:
    """Let as many elements run at a time as the options say, if they do."""
    _, _, at_a_time = options.get("array", "").partition("%")
    if at_a_time:
        limit(jobs, int(at_a_time), _LIMITED)


def _indices(options: Mapping[str, str]) -> list[int]:
    text = options.get("array", "").partition("%")[0]
    return [index for part in read_indices(text) for index in part] if text else []


def apart(scheduler: FakeScheduler, job: FakeJob) -> None:
    """Give an element a number of its own, as Slurm does when something happens to it alone."""
    if _ARRAY in job.attributes:
        job.attributes.setdefault(_NUMBER, str(scheduler.next_number()))


def variables(job: FakeJob) -> dict[str, str]:
    """The variables by which a job knows its number, and an element its array."""
    number = number_of(job)
    own = {"SLURM_JOBID": number, "SLURM_JOB_ID": number}
    if _ARRAY not in job.attributes:
        return own
    return own | {
        "SLURM_ARRAY_JOB_ID": job.attributes[_ARRAY],
        "SLURM_ARRAY_TASK_ID": str(job.attributes[_INDEX]),
    }


def number_of(job: FakeJob) -> str:
    """The number that a job has, besides how it is shown."""
    attributes = job.attributes
    return str(attributes.get(_NUMBER) or attributes.get(_ARRAY) or job.native_id)


def meant(words: Iterable[str], jobs: Iterable[FakeJob]) -> dict[str, list[FakeJob]]:
    """The jobs that each of the words names: a number may be that of an array."""
    found: dict[str, list[FakeJob]] = {}
    by_name: dict[str, list[FakeJob]] = {}
    for job in jobs:
        for name in {job.native_id, number_of(job), str(job.attributes.get(_ARRAY, job.native_id))}:
            by_name.setdefault(name, []).append(job)
    for word in words:
        found[word] = [job for name in named(word) for job in by_name.get(name, ())]
    return found


def lines(jobs: Sequence[FakeJob]) -> Iterator[Line]:
    """What squeue has a line for.

    Elements that wait, and were never told apart, share one. Of those among them that were cancelled nothing
    is told, but for a line about the array once no other waits.
    """
    waiting: dict[str, list[FakeJob]] = {}
    cancelled: dict[str, FakeJob] = {}
    for job in jobs:
        array = job.attributes.get(_ARRAY)
        if NUMBERS in job.attributes:
            for component in range(len(job.attributes[NUMBERS])):
                yield Line(job, f"{job.native_id}+{component}", component)
        elif array is None or _NUMBER in job.attributes:
            yield Line(job, job.native_id)
        elif job.state is FakeState.CANCELLED:
            cancelled.setdefault(array, job)
        else:
            waiting.setdefault(array, []).append(job)
    for array, elements in waiting.items():
        indices = write_indices(job.attributes[_INDEX] for job in elements)
        is_one = len(elements) == 1
        yield Line(elements[0], f"{array}_{indices}" if is_one else f"{array}_[{indices}]")
    for array in cancelled.keys() - waiting.keys():
        yield Line(cancelled[array], array)
