"""Asking qstat for the user's jobs, for their states or their tags, and reading its answers.

`qstat` lists the user's jobs, whatever ids are asked for. `qstat -j` takes ids, but tells no states, and may
list all jobs of the cluster with everything in their environments where it is given a pattern.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence

from jpsi.plugin import Command, CommandResult, JobState, Observation, SubmitException

from .commands import gridengine
from .names import tag_of
from .states import meaning
from .times import time

# A task of an array in a line of its own, and whatever state a job is in: a user's sge_qstat(5) may say
# otherwise. `$user` is qstat's own word.
_WHATEVER = ("-xml", "-g", "d", "-s", "a", "-u", "$user")

_JOB = re.compile(r"<job_list\b[^>]*>(.*?)</job_list>", re.DOTALL)
_FIELD = re.compile(r"<(\w+)(?: [^>]*)?>([^<]*)</\1>")
_END = "</job_info>"
_HAS_ENDED = "z"


def query() -> Command:
    """The command that lists the user's jobs."""
    return gridengine("qstat", *_WHATEVER)


def statuses(result: CommandResult, native_ids: Sequence[str] | None) -> dict[str, Observation]:
    """What qstat said about each job."""
    asked = None if native_ids is None else frozenset(native_ids)
    return {
        native_id: _observation(job)
        for native_id, job in _jobs(result)
        if (asked is None or native_id in asked) and _HAS_ENDED not in job["state"]
    }


def tagged(result: CommandResult, tags: Sequence[str]) -> dict[str, str]:
    """The native ids of the jobs whose name ends with one of the tags."""
    sought = frozenset(tags)
    found = ((tag_of(job.get("JB_name", ""), sought), native_id) for native_id, job in _jobs(result))
    return {tag: native_id for tag, native_id in found if tag is not None}


def _jobs(result: CommandResult) -> Iterator[tuple[str, Mapping[str, str]]]:
    """The jobs by their ids.

    It is not read as XML: 8.1.9 writes `a%lt;b` for `a<b`, and no name may cost other jobs their states.
    """
    output = result.checked().stdout
    if _END not in output:
        msg = f"the answer of qstat is not whole: {output[-200:]!r}"
        raise SubmitException(msg, transient=True)
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
        time=time(job.get("JAT_start_time" if is_active else "JB_submission_time", "")),
        nodes=(node,) if node else (),
        details=details,
    )
