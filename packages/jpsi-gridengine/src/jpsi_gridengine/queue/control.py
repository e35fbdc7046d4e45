"""Cancels, holds and releases jobs, and parses Grid Engine's refusals.

qdel also takes names, and then ends only the user's jobs of that name. jpsi's names end with the job's tag,
so that qdel cannot hit another job, even if Grid Engine has reused the id. qdel's `-u` would only check the
owner. `-u` of qhold and qrls does not combine with ids: `qhold -u me 17` of 8.1.9 holds all jobs of the user.
jpsi therefore passes ids to these two.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from jpsi.plugin import Command, CommandResult, Observation, hookimpl
from jpsi.plugin.kit import refusals

from ..commands import gridengine
from ..job_names import observed_job_name
from ..native_ids import compress_ids, number_of

# A message about a task counts for its array: the tasks have one owner, and exist or do not.
_ABOUT_A_JOB = re.compile(r"\bjob(?:-array task)? \"?([0-9]+)(?:\.[0-9]+)?\"?(?![0-9.])")
# Messages on standard output about a changed job; below, about a job that has already ended
_CHANGED = ("has registered the job", "has deleted job", "modified hold of job")
_OVER = ("is already in deletion", "does not exist", "comprises no tasks")
# qdel's messages about a name: the user has no such job, or the job has no such tasks.
_NO_SUCH_NAME = re.compile(
    r"^(?:The job (?P<job>\S+) of|job \"(?P<array>[^\"]+)\" task .*) user\(s\) \S+(?: does not exist)?$"
)


@hookimpl
def cancel(native_ids: Sequence[str], seen: Mapping[str, Observation]) -> Command:
    """Return the qdel command, which kills running jobs; it uses the jobs' names if they are known."""
    names = {native_id: observed_job_name(seen.get(native_id)) for native_id in native_ids}
    by_number = {number_of(native_id): name for native_id, name in names.items() if name is not None}
    return gridengine("qdel", *(word for it in compress_ids(native_ids) for word in _words(it, by_number)))


def _words(named: str, names: Mapping[str, str]) -> list[str]:
    """Return the arguments of qdel for a job or for tasks of an array, such as `17.1-3`, by name if known."""
    number, _, tasks = named.partition(".")
    if number not in names:
        return [named]
    return [names[number], *(("-t", tasks) if tasks else ())]


@hookimpl
def hold(native_ids: Sequence[str]) -> Command:
    """Return the command that keeps pending jobs from starting; a running job is held once it is requeued."""
    return gridengine("qhold", *compress_ids(native_ids))


@hookimpl
def release(native_ids: Sequence[str]) -> Command:
    """Return the command that lets held jobs start."""
    return gridengine("qrls", *compress_ids(native_ids))


@hookimpl
def parse_cancel(result: CommandResult, native_ids: Sequence[str]) -> Mapping[str, str]:
    """Return the reason for each job that qdel did not cancel.

    qdel's message about an unknown name does not contain the job's number. But qdel answers every argument:
    if there are at least as many unknown names as jobs without a message, those jobs have ended.
    """
    refused = _refusals(result, native_ids, (*_CHANGED, *_OVER))
    lines = [line.strip() for line in result.stdout.splitlines()]
    gone = {it["job"] or it["array"] for line in lines if (it := _NO_SUCH_NAME.match(line))}
    mentioned = {job for line in lines for job in _ABOUT_A_JOB.findall(line)}
    untold = {number_of(native_id) for native_id in refused} - mentioned
    if result.timed_out or len(untold) > len(gone):
        return refused
    return {native_id: why for native_id, why in refused.items() if number_of(native_id) not in untold}


@hookimpl
def parse_hold(result: CommandResult, native_ids: Sequence[str]) -> Mapping[str, str]:
    """Return the reason for each job that was not held or released."""
    return _refusals(result, native_ids, _CHANGED)


parse_release = parse_hold


def _refusals(result: CommandResult, native_ids: Sequence[str], good: Collection[str]) -> Mapping[str, str]:
    """Return the reason for each job that was not changed; a message in `good` means success."""
    lines = [line.strip() for line in result.stdout.splitlines()]
    about = [(job, line) for line in lines for job in _ABOUT_A_JOB.findall(line)]
    done = {job for job, line in about if any(text in line for text in good)}
    said = {job: line for job, line in about if not any(text in line for text in good)}
    numbers = {native_id: number_of(native_id) for native_id in native_ids}
    refused = refusals(result, list(numbers.values()), said, changed=done)
    return {native_id: refused[job] for native_id, job in numbers.items() if job in refused}
