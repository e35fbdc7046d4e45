"""Asking qstat for the user's jobs, for their states or their tags, and reading its answers.

`qstat` lists the user's jobs, whatever ids are asked for. `qstat -j` takes ids, but tells no states, and may
list all jobs of the cluster with everything in their environments where it is given a pattern.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence

from jpsi.plugin import Command, CommandResult, JobState, Observation, hookimpl, moment, tagged

from .commands import gridengine
from .states import meaning

# A task of an array in a line of its own, and whatever state a job is in: a user's sge_qstat(5) may say
# otherwise. `$user` is qstat's own word.
_WHATEVER = ("-xml", "-g", "d", "-s", "a", "-u", "$user")

_JOB = re.compile(r"<job_list\b[^>]*>(.*?)</job_list>", re.DOTALL)
_FIELD = re.compile(r"<(\w+)(?: [^>]*)?>([^<]*)</\1>")
_END = "</job_info>"
_HAS_ENDED = "z"


@hookimpl
def query() -> Command:
    """The command that lists the user's jobs."""
    return gridengine("qstat", *_WHATEVER)


@hookimpl
def parse_status(result: CommandResult) -> Mapping[str, Observation]:
    """What qstat said about each job."""
    return {name: _observation(job) for name, job in _jobs(result) if _HAS_ENDED not in job["state"]}


find = query


@hookimpl
def parse_find(result: CommandResult, tags: Sequence[str]) -> Mapping[str, str]:
    """The native ids of the jobs whose names end with the tags."""
    return tagged(((job.get("JB_name", ""), native_id) for native_id, job in _jobs(result)), tags)


def _jobs(result: CommandResult) -> Iterator[tuple[str, Mapping[str, str]]]:
    """The jobs by their ids.

    It is not read as XML: 8.1.9 writes `a%lt;b` for `a<b`, and no name may cost other jobs their states.
    """
    output = result.checked().stdout
    if _END not in output:
        raise result.no_answer
    for text in _JOB.findall(output):
        job = {name: html.unescape(value) for name, value in _FIELD.findall(text)}
        number, task = job.get("JB_job_number", ""), job.get("tasks")
        if number.isdecimal() and "state" in job:
            yield (number if task is None else f"{number}.{task}"), job


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
