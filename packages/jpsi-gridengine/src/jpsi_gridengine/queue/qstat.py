"""Asking qstat for the user's jobs, for their states or their tags, and reading its answers.

`qstat` lists the user's jobs, whatever ids are asked for. `qstat -j` takes ids, but tells no states, and may
list all jobs of the cluster with everything in their environments where it is given a pattern. So the queue
denies no job by its id: one that is not in a whole listing is not there, or is another user's.

A listing is whole if it is one XML document to its end, of lines that are all understood. `-r` has each name
told twice. What such a listing cannot tell is that a whole job is missing in it, or a line of a job that not
every job has; and when a job was submitted that runs.
"""

from __future__ import annotations

import html
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from jpsi.plugin import Command, CommandResult, JobState, Observation, SubmitException, hookimpl
from jpsi.plugin.kit import carried_tag, moment, tagged

from ..commands import gridengine
from ..job_names import NAME
from ..native_ids import element_ids, number_of
from ..states import meaning

# Whatever state a job is in: a user's sge_qstat(5) may say otherwise. `$user` is qstat's own word.
_WHATEVER = ("-xml", "-r", "-s", "a", "-u", "$user")

_BEGINNING = re.compile(r"<\?xml [^<>]*\?>\n<job_info(?: [^<>]*)?>\n")
_ROOT, _ROW = "job_info", "job_list"
# Each line between is one of these.
_OPENED = re.compile(r"<([A-Za-z][\w-]*)(?: [^<>]*)?>")
_CLOSED = re.compile(r"</([A-Za-z][\w-]*)>")
_FIELD = re.compile(r"<([A-Za-z][\w-]*)(?: [^<>]*)?>(.*)</\1>")
_NUMBER, _NAME, _STATE, _TASKS = "JB_job_number", "JB_name", "state", "tasks"
_FULL_NAME, _SUBMITTED, _STARTED = "full_job_name", "JB_submission_time", "JAT_start_time"
_NEEDED = frozenset({_NUMBER, _NAME, _STATE})
_ONCE = _NEEDED | {_TASKS, _FULL_NAME, _SUBMITTED, _STARTED}
_HAS_ENDED, _WAS_PUT_BACK = "z", "R"
# Of an array: `2`, `3-9:1` and both with commas between them
_RANGE = re.compile(r"([1-9][0-9]*)(?:-([1-9][0-9]*))?(?::([1-9][0-9]*))?")
_RANGES = re.compile(rf"{_RANGE.pattern}(?:,{_RANGE.pattern})*")


@hookimpl
def query() -> Command:
    """The command that lists the user's jobs."""
    return gridengine("qstat", *_WHATEVER)


@hookimpl
def parse_status(result: CommandResult, native_ids: Sequence[str] | None) -> Mapping[str, Observation]:
    """What qstat said about jobs and tasks of arrays.

    An array that is meant itself runs if one of its tasks does. Otherwise nothing is said of it, since that
    would be said of tasks that were deleted, too. Nor is anything of tasks of arrays that nobody means, but
    where all jobs of the user are meant.
    """
    meant = frozenset(native_ids or ())
    arrays = {number_of(native_id) for native_id in meant if "." in native_id}
    found: dict[str, Observation] = {}
    for job in _jobs(result):
        if _HAS_ENDED in job[_STATE]:
            continue
        number = job[_NUMBER]
        seen = _observation(job)
        tasks = _tasks(job)
        if not tasks and number in arrays:
            msg = f"qstat told no tasks of {number}, which is an array"
            raise SubmitException(msg, transient=True)
        if not tasks or number in meant:
            found[number] = seen if seen.state is JobState.ACTIVE else found.get(number, seen)
        if tasks and (native_ids is None or number in arrays):
            found.update(dict.fromkeys(element_ids(number, [*itertools.chain(*tasks)]), seen))
    return found


find = query


@hookimpl
def parse_find(result: CommandResult, tags: Sequence[str]) -> Mapping[str, str]:
    """The native ids of the jobs whose names end with the tags."""
    return tagged(((job[_NAME], job[_NUMBER]) for job in _jobs(result)), tags)


def _jobs(result: CommandResult) -> list[Mapping[str, str]]:
    """The jobs and tasks of a listing.

    Raises:
        SubmitException: the listing is not whole.
    """
    output = result.checked().stdout
    beginning = _BEGINNING.search(output)
    if beginning is None:
        raise result.no_answer
    try:
        jobs = [_checked(row) for row in _rows(output[beginning.end() :].split("\n"))]
    except ValueError as e:
        msg = f"qstat did not answer to its end, or not clearly: {e}"
        raise SubmitException(msg, transient=True) from e
    if len({job[_NUMBER] for job in jobs}) != len({(job[_NUMBER], job[_NAME]) for job in jobs}):
        msg = "qstat told two names of one job"
        raise SubmitException(msg, transient=True)
    return jobs


def _rows(lines: Iterable[str]) -> Iterator[Mapping[str, str]]:
    """The fields of each job.

    It is not read as XML: 8.1.9 writes `a%lt;b` for `a<b`, and no name may cost other jobs their states.
    """
    opened = [_ROOT]
    row: dict[str, str] = {}
    for line in filter(None, map(str.strip, lines)):
        field, opens, closes = (form.fullmatch(line) for form in (_FIELD, _OPENED, _CLOSED))
        if field and opened:
            if opened[-1] == _ROW:
                _add(row, field[1], html.unescape(field[2]))
        elif opens and opened:
            opened.append(opens[1])
            row = {}
        elif closes and opened[-1:] == [closes[1]]:
            if opened.pop() == _ROW:
                yield row
        else:
            raise ValueError(line)
    if opened:
        msg = f"</{opened[-1]}> is missing"
        raise ValueError(msg)


def _add(row: dict[str, str], name: str, value: str) -> None:
    if name in row and name in _ONCE:
        msg = f"{name} twice"
        raise ValueError(msg)
    row[name] = value


def _checked(row: Mapping[str, str]) -> Mapping[str, str]:
    """The fields of a job, if they can be those of one."""
    name = row.get(_NAME)
    is_known = row.keys() >= _NEEDED and re.fullmatch(r"[1-9][0-9]*", row[_NUMBER]) is not None
    if not is_known or row.get(_FULL_NAME, name) != name or not _RANGES.fullmatch(row.get(_TASKS, "1")):
        raise ValueError(row)
    return row


def _tasks(job: Mapping[str, str]) -> list[range]:
    found = _RANGE.findall(job.get(_TASKS, ""))
    return [range(int(first), int(last or first) + 1, int(step or 1)) for first, last, step in found]


def _observation(job: Mapping[str, str]) -> Observation:
    word, name = job[_STATE], job[_NAME]
    tag = carried_tag(name)
    queued = moment(job.get(_SUBMITTED, ""))
    # Of what was put back it is that time, for all tasks of an array.
    submitted = None if _TASKS in job or _WAS_PUT_BACK in word else queued
    details = {"gridengine.state": word, **({NAME: name} if tag else {})}
    found = meaning(word)
    if found is None:
        return Observation(state=None, word=word, tag=tag, submitted=submitted, details=details)
    queue, _, node = job.get("queue_name", "").partition("@")
    if queue:
        details["gridengine.queue"] = queue
    is_active = found.state is JobState.ACTIVE
    return Observation(
        state=found.state,
        word=word,
        tag=tag,
        submitted=submitted,
        reason=found.reason,
        message=found.message,
        ran=True if is_active else None,
        time=moment(job.get(_STARTED, "")) if is_active else queued,
        nodes=(node,) if node else (),
        details=details,
    )
