"""Queries qstat for the states and tags of the user's jobs, and parses its output.

`qstat` always lists all jobs of the user. `qstat -j` takes ids, but prints no states, and with a pattern it
may list all jobs of the cluster with their whole environments. Therefore no query can deny a job by its id: a
job that is missing in a complete listing does not exist, or belongs to another user.

A listing is complete if it is one XML document up to its end and the parser knows every line. `-r` prints
each name twice. The checks miss a whole job, or an optional line of a job, that qstat left out. The listing
does not have the time of submission of running jobs.
"""

from __future__ import annotations

import html
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs

from jpsi.plugin import Command, CommandResult, JobState, Observation, SubmitException, hookimpl
from jpsi.plugin.kit import extract_tag, ids_by_tag, parse_time, read_indices

from ..commands import gridengine_command
from ..job_names import NAME_DETAIL
from ..native_ids import element_ids, job_number
from ..states import state_meaning

# List jobs in any state, even if the user's sge_qstat(5) says otherwise. qstat itself replaces `$user`.
_ALL_JOBS = ("-xml", "-r", "-s", "a", "-u", "$user")

_DOCUMENT_START = re.compile(r"<\?xml [^<>]*\?>\n<job_info(?: [^<>]*)?>\n")
_ROOT, _ROW = "job_info", "job_list"
# Each line of the document has one of these forms.
_OPENED = re.compile(r"<([A-Za-z][\w-]*)(?: [^<>]*)?>")
_CLOSED = re.compile(r"</([A-Za-z][\w-]*)>")
_FIELD = re.compile(r"<([A-Za-z][\w-]*)(?: [^<>]*)?>(.*)</\1>")
_NUMBER, _NAME, _STATE, _TASKS = "JB_job_number", "JB_name", "state", "tasks"
_FULL_NAME, _SUBMITTED, _STARTED = "full_job_name", "JB_submission_time", "JAT_start_time"
_REQUIRED = frozenset({_NUMBER, _NAME, _STATE})
_SINGLE_FIELDS = _REQUIRED | {_TASKS, _FULL_NAME, _SUBMITTED, _STARTED}
_HAS_ENDED, _WAS_REQUEUED = "z", "R"


@hookimpl
def query() -> Command:
    """Return the command that lists the user's jobs."""
    return gridengine_command("qstat", *_ALL_JOBS)


@hookimpl
def parse_status(result: CommandResult, native_ids: Sequence[str] | None) -> Mapping[str, Observation]:
    """Return an Observation of each job and array task in qstat's output.

    A queried array is active if one of its tasks is. An array that was not queried itself gets no
    Observation, as that would also count for its deleted tasks. Tasks get one only if tasks of their array
    were queried, or all jobs of the user.
    """
    queried = frozenset(native_ids or ())
    arrays = {job_number(native_id) for native_id in queried if "." in native_id}
    observations: dict[str, Observation] = {}
    for job in _parse_jobs(result):
        if _HAS_ENDED in job[_STATE]:
            continue
        number = job[_NUMBER]
        observation = _observe_job(job)
        tasks = read_indices(job[_TASKS]) if _TASKS in job else []
        if not tasks and number in arrays:
            raise SubmitException(f"qstat printed no tasks of the array {number}", transient=True)
        if not tasks or number in queried:
            observations[number] = (
                observation if observation.state is JobState.ACTIVE else observations.get(number, observation)
            )
        if tasks and (native_ids is None or number in arrays):
            observations.update(dict.fromkeys(element_ids(number, [*itertools.chain(*tasks)]), observation))
    return observations


find = query


@hookimpl
def parse_find(result: CommandResult, tags: Sequence[str]) -> Mapping[str, str]:
    """Return the native ids of the jobs whose names end with the tags."""
    return ids_by_tag(((job[_NAME], job[_NUMBER]) for job in _parse_jobs(result)), tags)


def _parse_jobs(result: CommandResult) -> list[Mapping[str, str]]:
    """Return the fields of the jobs and tasks in a listing.

    Raises:
        SubmitException: the listing is incomplete.
    """
    output = result.checked().stdout
    start = _DOCUMENT_START.search(output)
    if start is None:
        raise result.no_answer
    try:
        jobs = [_validate_row(row) for row in _parse_rows(output[start.end() :].split("\n"))]
    except ValueError as e:
        raise SubmitException(f"the output of qstat is incomplete or malformed: {e}", transient=True) from e
    if len({job[_NUMBER] for job in jobs}) != len({(job[_NUMBER], job[_NAME]) for job in jobs}):
        raise SubmitException("qstat printed one job under two names", transient=True)
    return jobs


def _parse_rows(lines: Iterable[str]) -> Iterator[Mapping[str, str]]:
    """Yield the fields of each job.

    This is no XML parser: 8.1.9 writes `a%lt;b` for `a<b`, and a malformed name must not affect other jobs.
    """
    open_elements = [_ROOT]
    row: dict[str, str] = {}
    for line in filter(None, map(str.strip, lines)):
        field, opens, closes = (form.fullmatch(line) for form in (_FIELD, _OPENED, _CLOSED))
        if field and open_elements:
            if open_elements[-1] == _ROW:
                _add_field(row, field[1], html.unescape(field[2]))
        elif opens and open_elements:
            open_elements.append(opens[1])
            row = {}
        elif closes and open_elements[-1:] == [closes[1]]:
            if open_elements.pop() == _ROW:
                yield row
        else:
            raise ValueError(line)
    if open_elements:
        raise ValueError(f"</{open_elements[-1]}> is missing")


def _add_field(row: dict[str, str], name: str, value: str) -> None:
    if name in row and name in _SINGLE_FIELDS:
        raise ValueError(f"{name} twice")
    row[name] = value


def _validate_row(row: Mapping[str, str]) -> Mapping[str, str]:
    """Return the fields of a job; raise ValueError if they are invalid."""
    name = row.get(_NAME)
    is_known = row.keys() >= _REQUIRED and re.fullmatch(r"[1-9][0-9]*", row[_NUMBER]) is not None
    if not is_known or row.get(_FULL_NAME, name) != name:
        raise ValueError(row)
    # the tasks of an array are `2`, `3-9:1`, or several of these separated by commas
    if not all(it and it.start > 0 for it in read_indices(row.get(_TASKS, "1"))):
        raise ValueError(row)
    return row


def _observe_job(job: Mapping[str, str]) -> Observation:
    native_state, name = job[_STATE], job[_NAME]
    tag = extract_tag(name)
    queue_time = parse_time(job.get(_SUBMITTED, ""))
    # For a requeued job qstat prints the time of the requeue, and so for all tasks of an array.
    submitted = None if _TASKS in job or _WAS_REQUEUED in native_state else queue_time
    details = {"gridengine.state": native_state, **({NAME_DETAIL: name} if tag else {})}
    queue, _, node = job.get("queue_name", "").partition("@")
    observation = Observation(
        state=None, native_state=native_state, tag=tag, submitted=submitted, details=details
    )
    meaning = state_meaning(native_state)
    if meaning is None:
        return observation
    is_active = meaning.state is JobState.ACTIVE
    return attrs.evolve(
        observation,
        state=meaning.state,
        reason=meaning.reason,
        message=meaning.message,
        ran=True if is_active else None,
        time=parse_time(job.get(_STARTED, "")) if is_active else queue_time,
        nodes=(node,) if node else (),
        details=details | ({"gridengine.queue": queue} if queue else {}),
    )
