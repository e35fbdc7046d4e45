"""Arrays in the fakes of LSF: each element is a job, and all elements share a number.

Tests and `jpsi fake` run jobs on the fake, without a real LSF.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from jpsi.plugin.kit import read_indices
from jpsi_testing.fake import FakeJob

from ..native_ids import expand_ids

#: lsb.params of LSF 10.1: the default of MAX_JOB_ARRAY_SIZE.
MAX_JOB_ARRAY_SIZE = 1000

_SPECIFICATION = re.compile(r"(?P<name>[^\[]*)\[(?P<indices>\d[\d,:-]*)\](?:%(?P<limit>\d+))?\Z")


class ArrayName(NamedTuple):
    """The name of a submitted job, which may be that of an array."""

    #: The indices; none for a single job or a malformed list.
    indices: list[int]
    #: The limit of running elements; 0 is no limit.
    at_a_time: int = 0

    @property
    def is_too_large(self) -> bool:
        """True if an index is too large for an array."""
        return max(self.indices, default=0) > MAX_JOB_ARRAY_SIZE


def parse_name(text: str) -> ArrayName:
    """Parse a name such as `a[1-3]%2`."""
    match = _SPECIFICATION.match(text)
    try:
        indices = [index for part in read_indices(match["indices"]) for index in part] if match else []
    except ValueError:
        indices = []
    return ArrayName(indices if all(indices) else [], int((match and match["limit"]) or 0))


def find_jobs(words: Iterable[str], jobs: Iterable[FakeJob]) -> Iterator[tuple[str, list[FakeJob]]]:
    """Yield each id in the words with the jobs that it means: one, or all elements of an array."""
    by_name: dict[str, list[FakeJob]] = {}
    for job in jobs:
        for name in {job.native_id, job.number}:
            by_name.setdefault(name, []).append(job)
    for word in words:
        for name in expand_ids(word):
            yield name, by_name.get(name, [])
