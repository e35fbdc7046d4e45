"""Arrays in the fakes of LSF: each element is a job, and all elements share a number."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from jpsi.plugin.kit import read_indices
from jpsi_testing.fake import FakeJob, limit

from ..native_ids import expand_ids

#: lsb.params of LSF 10.1: the default of MAX_JOB_ARRAY_SIZE.
MAX_JOB_ARRAY_SIZE = 1000

_SPECIFICATION = re.compile(r"([^\[]*)\[(\d[\d,:-]*)\](?:%(\d+))?\Z")
# lsbatch/lib/lsb.reason.c of volclava
_LIMITED = "The job array has reached its running element limit"
_NUMBER, _INDEX = "array", "index"


def indices_of(name: str) -> list[int]:
    """Return the indices in the name of an array; none for a single job or a malformed list."""
    match = _SPECIFICATION.match(name)
    try:
        indices = [index for part in read_indices(match[2]) for index in part] if match else []
    except ValueError:
        return []
    return indices if all(indices) else []


def is_too_large(indices: Iterable[int]) -> bool:
    """Return True if an index is too large for an array."""
    return max(indices, default=0) > MAX_JOB_ARRAY_SIZE


def limit_running(jobs: Sequence[FakeJob], name: str) -> None:
    """Limit the running elements of an array, if its name says so."""
    match = _SPECIFICATION.match(name)
    if match and match[3]:
        limit(jobs, int(match[3]), _LIMITED)


def element_attributes(number: str, index: int) -> Mapping[str, str | int]:
    """Return the attributes that make a fake job an array element."""
    return {_NUMBER: number, _INDEX: index}


def element_name(name: str, index: int) -> str:
    """Return LSF's name for an element of an array that was submitted with this name."""
    return f"{name.partition('[')[0]}[{index}]"


def job_number(job: FakeJob) -> str:
    """Return the number of a job, or of its array."""
    return str(job.attributes.get(_NUMBER, job.native_id))


def element_index(job: FakeJob) -> int:
    """Return the index of an element; 0 for a single job."""
    index: int = job.attributes.get(_INDEX, 0)
    return index


def find_jobs(words: Iterable[str], jobs: Iterable[FakeJob]) -> Iterator[tuple[str, list[FakeJob]]]:
    """Yield each id in the words with the jobs that it means: one, or all elements of an array."""
    by_name: dict[str, list[FakeJob]] = {}
    for job in jobs:
        for name in {job.native_id, job_number(job)}:
            by_name.setdefault(name, []).append(job)
    for word in words:
        for name in expand_ids(word):
            yield name, by_name.get(name, [])
