"""Asking qstat for the user's jobs, for their states or their tags, and reading its answers.

`qstat` lists the user's jobs, whatever ids are asked for. `qstat -j` takes ids, but tells no states, and may
list all jobs of the cluster with everything in their environments where it is given a pattern.
"""

from __future__ import annotations

import html
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence

from jpsi.plugin import Command, CommandResult, JobState, Observation, hookimpl, moment, tagged

from .commands import gridengine
from .ids import element_ids, number_of
from .states import meaning

# Whatever state a job is in: a user's sge_qstat(5) may say otherwise. `$user` is qstat's own word.
_WHATEVER = ("-xml", "-s", "a", "-u", "$user")

_JOB = re.compile(r"<job_list\b[^>]*>(.*?)</job_list>", re.DOTALL)
_FIELD = re.compile(r"<(\w+)(?: [^>]*)?>([^<]*)</\1>")
_END = "</job_info>"
_HAS_ENDED = "z"
# Of an array: `2`, `3-9:1` and both with commas between them
_TASKS = re.compile(r"([1-9][0-9]*)(?:-([1-9][0-9]*))?(?::([1-9][0-9]*))?")


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
    arrays = {number_of(native_id) for native_id in meant}
    found: dict[str, Observation] = {}
    for number, job in _jobs(result):
        if _HAS_ENDED in job["state"]:
            continue
        seen = _observation(job)
        tasks = _tasks(job.get("tasks", ""))
        if not tasks or number in meant:
            found[number] = seen if seen.state is JobState.ACTIVE else found.get(number, seen)
        if tasks and (native_ids is None or number in arrays):
            found.update(dict.fromkeys(element_ids(number, [*itertools.chain(*tasks)]), seen))
    return found


def _tasks(text: str) -> list[range]:
    found = _TASKS.findall(text)
    return [range(int(first), int(last or first) + 1, int(step or 1)) for first, last, step in found]


find = query


@hookimpl
def parse_find(result: CommandResult, tags: Sequence[str]) -> Mapping[str, str]:
    """The native ids of the jobs whose names end with the tags."""
    return tagged(((job.get("JB_name", ""), number) for number, job in _jobs(result)), tags)


def _jobs(result: CommandResult) -> Iterator[tuple[str, Mapping[str, str]]]:
    """The jobs by their numbers, which all tasks of an array have in common.

    It is not read as XML: 8.1.9 writes `a%lt;b` for `a<b`, and no name may cost other jobs their states.
    """
    output = result.checked().stdout
    if _END not in output:
        raise result.no_answer
    for text in _JOB.findall(output):
        job = {name: html.unescape(value) for name, value in _FIELD.findall(text)}
        number = job.get("JB_job_number", "")
        if number.isdecimal() and "state" in job:
            yield number, job


def _observation(job: Mapping[str, str]) -> Observation:
    word = job["state"]
    details = {"gridengine.state": word}
    found = meaning(word)
    if found is None:
        return Observation(state=None, word=word, details=details)
    queue, _, node = job.get("queue_name", "").partition("@")
    if queue:
        details["gridengine.queue"] = queue
    is_active = found.state is JobState.ACTIVE
    return Observation(
        state=found.state,
        word=word,
        reason=found.reason,
        message=found.message,
        ran=True if is_active else None,
        time=moment(job.get("JAT_start_time" if is_active else "JB_submission_time", "")),
        nodes=(node,) if node else (),
        details=details,
    )
