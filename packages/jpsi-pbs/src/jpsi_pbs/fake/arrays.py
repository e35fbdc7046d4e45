"""Arrays in the fakes of PBS and Torque: each element is a job; listings have entries for arrays too.

Tests and `jpsi fake` run jobs on the fake, without a real PBS or Torque.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator, Sequence

from jpsi.plugin.kit import read_indices
from jpsi_testing.fake import FakeJob, FakeState

_NAME = re.compile(r"(?P<number>[0-9]+)\[(?P<indices>[0-9,:-]*)\](?P<rest>.*)\Z")


def elements_of(job: FakeJob) -> Sequence[FakeJob]:
    """Return the elements of a job that `array_job` made; none for other jobs."""
    elements: Sequence[FakeJob] = job.attributes.get("elements", ())
    return elements


def listed_state(job: FakeJob) -> str | None:
    """Return the state that `with_listed_state` set; None for other jobs."""
    state: str | None = job.attributes.get("state")
    return state


def is_array_entry(job: FakeJob) -> bool:
    """Return True if `array_entry` made this entry."""
    return listed_state(job) is not None and not job.array


def run_count(job: FakeJob) -> int:
    """Return how often a job has started; 0 for a whole array, or an entry that `array_entry` made."""
    return 0 if elements_of(job) or is_array_entry(job) else job.restarts + (job.started is not None)


def used_resources(job: FakeJob) -> dict[str, str] | None:
    """Return what PBS lists of a short job that has run and ended: it measured nothing; None for others."""
    if job.started is None or job.ended is None:
        return None
    minutes, seconds = divmod(int(job.ended - job.started), 60)
    wall_time = f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}"
    return {"cput": "00:00:00", "mem": "0kb", "vmem": "0kb", "walltime": wall_time}


def group_by_array(jobs: Iterable[FakeJob]) -> dict[str, list[FakeJob]]:
    """Return the array elements among jobs, by array."""
    found: dict[str, list[FakeJob]] = {}
    for job in jobs:
        if job.array:
            found.setdefault(job.array, []).append(job)
    return found


def expand_ids(native_id: str) -> Iterator[str]:
    """Yield the ids that an id names: itself, or the elements of a range.

    >>> list(expand_ids("17[1-2].a")), list(expand_ids("17[].a"))
    (['17[1].a', '17[2].a'], ['17[].a'])
    """
    match = _NAME.match(native_id)
    if match is None or not match["indices"]:
        yield native_id
        return
    for indices in read_indices(match["indices"]):
        yield from (f"{match['number']}[{index}]{match['rest']}" for index in indices)


def array_job(array: str, elements: Sequence[FakeJob]) -> FakeJob:
    """Return an entry for a whole array, as if it were a job."""
    job = copy.copy(elements[0])
    job.native_id, job.array, job.index = array, "", 0
    job.attributes = {**job.attributes, "elements": elements}
    job.started = min((it.started for it in elements if it.started is not None), default=None)
    job.ended = None
    job.exit_code, job.signal = int(any(it.exit_code for it in elements)), None
    states = {it.state for it in elements}
    job.state = _array_state(states, has_started=job.started is not None)
    if all(state.final for state in states):
        job.ended = max(it.ended or 0.0 for it in elements)
        job.state = FakeState.FAILED if job.exit_code else FakeState.COMPLETED
    return job


def _array_state(states: set[FakeState], *, has_started: bool) -> FakeState:
    """Return the state of an array whose elements, in these states, have not all ended."""
    if has_started or FakeState.RUNNING in states:
        return FakeState.RUNNING
    return FakeState.HELD if states == {FakeState.HELD} else FakeState.PENDING


def with_listed_state(job: FakeJob, state: str) -> FakeJob:
    """Return a copy of a job that is listed in this state."""
    found = copy.copy(job)
    found.attributes = {**job.attributes, "state": state}
    return found


def array_entry(element: FakeJob, array: FakeJob, state: str) -> FakeJob:
    """Return the entry of an element without own attributes: its array's, except for the state."""
    job = with_listed_state(array, state)
    job.native_id = element.native_id
    del job.attributes["elements"]
    return job
