"""Arrays in the fake of Slurm: each element is a job, and pending elements share a row of squeue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from jpsi.plugin.kit import read_indices, write_indices
from jpsi_testing.fake import FakeJob, FakeScheduler, FakeState, limit

from ..native_ids import expand_ids

#: slurm.conf(5): MaxArraySize
MAX_ARRAY_SIZE = 1001

#: The reason of a pending element whose array has reached its limit of running elements.
_LIMITED = "JobArrayTaskLimit"
_ARRAY, _INDEX, _NUMBER = "array", "index", "number"
#: The attribute of a heterogeneous job with the numbers of its components.
COMPONENT_NUMBERS = "numbers"


class Line(NamedTuple):
    """The job, array or component that one line of a listing describes."""

    job: FakeJob
    #: Its name in the line.
    displayed_id: str
    #: The index of the component, for a heterogeneous job.
    component: int = 0

    @property
    def number(self) -> str:
        """The number of the job, element or component."""
        numbers = self.job.attributes.get(COMPONENT_NUMBERS)
        return str(numbers[self.component]) if numbers else job_number(self.job)


def array_refusal(options: Mapping[str, str]) -> str | None:
    """Return the reason why sbatch refuses an array; None if it does not."""
    indices = _indices(options)
    is_too_large = indices and max(indices) >= MAX_ARRAY_SIZE
    return "Invalid job array specification" if is_too_large else None


def native_ids(number: str, options: Mapping[str, str]) -> list[tuple[str, dict[str, int | str]]]:
    """Return the ids of the submitted job or array elements, each with its attributes as an element."""
    indices = _indices(options)
    if not indices:
        return [(number, {})]
    return [(f"{number}_{index}", {_ARRAY: number, _INDEX: index}) for index in indices]


def limit_running(jobs: Sequence[FakeJob], options: Mapping[str, str]) -> None:
    """Limit the running elements of an array, if the options say so."""
    _, _, at_a_time = options.get("array", "").partition("%")
    if at_a_time:
        limit(jobs, int(at_a_time), _LIMITED)


def _indices(options: Mapping[str, str]) -> list[int]:
    text = options.get("array", "").partition("%")[0]
    return [index for part in read_indices(text) for index in part] if text else []


def assign_number(scheduler: FakeScheduler, job: FakeJob) -> None:
    """Give an element its own number, as Slurm does when an event affects that element alone."""
    if _ARRAY in job.attributes:
        job.attributes.setdefault(_NUMBER, str(scheduler.next_number()))


def array_variables(job: FakeJob) -> dict[str, str]:
    """Return the variables with a job's number, and with the array and index of an element."""
    number = job_number(job)
    own = {"SLURM_JOBID": number, "SLURM_JOB_ID": number}
    if _ARRAY not in job.attributes:
        return own
    return own | {
        "SLURM_ARRAY_JOB_ID": job.attributes[_ARRAY],
        "SLURM_ARRAY_TASK_ID": str(job.attributes[_INDEX]),
    }


def job_number(job: FakeJob) -> str:
    """Return the number of a job, which for an element differs from the shown id."""
    attributes = job.attributes
    return str(attributes.get(_NUMBER) or attributes.get(_ARRAY) or job.native_id)


def find_jobs(words: Iterable[str], jobs: Iterable[FakeJob]) -> dict[str, list[FakeJob]]:
    """Return the jobs that each word names; a number may be that of an array."""
    found: dict[str, list[FakeJob]] = {}
    by_name: dict[str, list[FakeJob]] = {}
    for job in jobs:
        for name in {job.native_id, job_number(job), str(job.attributes.get(_ARRAY, job.native_id))}:
            by_name.setdefault(name, []).append(job)
    for word in words:
        found[word] = [job for name in expand_ids(word) for job in by_name.get(name, ())]
    return found


def squeue_lines(jobs: Sequence[FakeJob]) -> Iterator[Line]:
    """Yield the lines of squeue.

    Pending elements without a number of their own share a line. Cancelled ones among them have no line; once
    no other element is pending, the array gets a line of its own.
    """
    waiting: dict[str, list[FakeJob]] = {}
    cancelled: dict[str, FakeJob] = {}
    for job in jobs:
        array = job.attributes.get(_ARRAY)
        if COMPONENT_NUMBERS in job.attributes:
            for component in range(len(job.attributes[COMPONENT_NUMBERS])):
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
