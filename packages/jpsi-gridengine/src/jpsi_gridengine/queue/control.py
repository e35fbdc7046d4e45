"""Cancelling, holding and releasing jobs, and what Grid Engine says to it.

qdel takes the names of jobs, too, and then ends jobs of the user alone that are called so. At the end of such
a name is the job's tag, so that no other job can be meant, whatever has become of the job's id. Its `-u`
would tell by the owner alone. That of qhold and qrls narrows nothing: `qhold -u me 17` of 8.1.9 holds all my
jobs. They are given ids.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from jpsi.plugin import Command, CommandResult, Observation, hookimpl
from jpsi.plugin.kit import refusals

from ..commands import gridengine
from ..job_names import observed_job_name
from ..native_ids import compress_ids, number_of

# What is said of tasks is said of their array: they have one owner, and are there or not.
_ABOUT_A_JOB = re.compile(r"\bjob(?:-array task)? \"?([0-9]+)(?:\.[0-9]+)?\"?(?![0-9.])")
# What is said on standard output of a job that has been changed, and of one that needs no end any more
_CHANGED = ("has registered the job", "has deleted job", "modified hold of job")
_OVER = ("is already in deletion", "does not exist", "comprises no tasks")
# What qdel says where it was given a name: the user has no such job, or it has no such tasks.
_NO_SUCH_NAME = re.compile(
    r"^(?:The job (?P<job>\S+) of|job \"(?P<array>[^\"]+)\" task .*) user\(s\) \S+(?: does not exist)?$"
)


@hookimpl
def cancel(native_ids: Sequence[str], seen: Mapping[str, Observation]) -> Command:
    """The command that ends jobs, by KILL for those that run: by their names where these are known."""
    names = {native_id: observed_job_name(seen.get(native_id)) for native_id in native_ids}
    by_number = {number_of(native_id): name for native_id, name in names.items() if name is not None}
    return gridengine("qdel", *(word for it in compress_ids(native_ids) for word in _words(it, by_number)))


def _words(named: str, names: Mapping[str, str]) -> list[str]:
    """What names a job or tasks of an array on the command line of qdel, such as `17.1-3` does."""
    number, _, tasks = named.partition(".")
    if number not in names:
        return [named]
    return [names[number], *(("-t", tasks) if tasks else ())]


@hookimpl
def hold(native_ids: Sequence[str]) -> Command:
    """The command that keeps pending jobs from starting; one that runs is held if it is put back."""
    return gridengine("qhold", *compress_ids(native_ids))


@hookimpl
def release(native_ids: Sequence[str]) -> Command:
    """The command that lets held jobs start."""
    return gridengine("qrls", *compress_ids(native_ids))


@hookimpl
def parse_cancel(result: CommandResult, native_ids: Sequence[str]) -> Mapping[str, str]:
    """Why which jobs were not cancelled.

    An answer about a name does not tell the job's number. Each word is answered, so that as many jobs as
    names that are not there are those of which nothing else is said.
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
    """Why which jobs were not held or released."""
    return _refusals(result, native_ids, _CHANGED)


parse_release = parse_hold


def _refusals(result: CommandResult, native_ids: Sequence[str], good: Collection[str]) -> Mapping[str, str]:
    """Why which jobs were not changed, by what is good to hear of one."""
    lines = [line.strip() for line in result.stdout.splitlines()]
    about = [(job, line) for line in lines for job in _ABOUT_A_JOB.findall(line)]
    done = {job for job, line in about if any(text in line for text in good)}
    said = {job: line for job, line in about if not any(text in line for text in good)}
    numbers = {native_id: number_of(native_id) for native_id in native_ids}
    refused = refusals(result, list(numbers.values()), said, done=done)
    return {native_id: refused[job] for native_id, job in numbers.items() if job in refused}
