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

from ..commands import gridengine_command
from ..job_names import jpsi_job_name
from ..native_ids import compress_ids, job_number

# A message about a task counts for its array: the tasks have one owner, and exist or do not.
_JOB_NUMBER = re.compile(r"\bjob(?:-array task)? \"?([0-9]+)(?:\.[0-9]+)?\"?(?![0-9.])")
# Messages on standard output about a changed job
_CHANGED = ("has registered the job", "has deleted job", "modified hold of job")
# Messages about a job that has already ended
_ALREADY_ENDED = ("is already in deletion", "does not exist", "comprises no tasks")
# qdel's messages about a name: the user has no such job, or the job has no such tasks.
_UNKNOWN_NAME = re.compile(
    r"^(?:The job (?P<job>\S+) of|job \"(?P<array>[^\"]+)\" task .*) user\(s\) \S+(?: does not exist)?$"
)


@hookimpl
def cancel(native_ids: Sequence[str], seen: Mapping[str, Observation]) -> Command:
    """Return the qdel command, which kills running jobs; it uses the jobs' names if they are known."""
    names = {native_id: jpsi_job_name(seen.get(native_id)) for native_id in native_ids}
    names_by_number = {job_number(native_id): name for native_id, name in names.items() if name is not None}
    return gridengine_command(
        "qdel",
        *(word for text in compress_ids(native_ids) for word in _qdel_arguments(text, names_by_number)),
    )


def _qdel_arguments(argument: str, names: Mapping[str, str]) -> list[str]:
    """Return the arguments of qdel for a job or for tasks of an array, such as `17.1-3`, by name if known."""
    number, _, tasks = argument.partition(".")
    if number not in names:
        return [argument]
    return [names[number], *(("-t", tasks) if tasks else ())]


@hookimpl
def hold(native_ids: Sequence[str]) -> Command:
    """Return the command that keeps pending jobs from starting; a running job is held once it is requeued."""
    return gridengine_command("qhold", *compress_ids(native_ids))


@hookimpl
def release(native_ids: Sequence[str]) -> Command:
    """Return the command that lets held jobs start."""
    return gridengine_command("qrls", *compress_ids(native_ids))


@hookimpl
def parse_cancel(result: CommandResult, native_ids: Sequence[str]) -> Mapping[str, str]:
    """Return the reason for each job that qdel did not cancel.

    qdel's message about an unknown name does not contain the job's number. But qdel answers every argument:
    if there are at least as many unknown names as jobs without a message, those jobs have ended.
    """
    reasons = _refusals(result, native_ids, (*_CHANGED, *_ALREADY_ENDED))
    lines = [line.strip() for line in result.stdout.splitlines()]
    unknown_names = {match["job"] or match["array"] for line in lines if (match := _UNKNOWN_NAME.match(line))}
    mentioned = {job for line in lines for job in _JOB_NUMBER.findall(line)}
    unanswered = {job_number(native_id) for native_id in reasons} - mentioned
    if result.timed_out or len(unanswered) > len(unknown_names):
        return reasons
    return {
        native_id: reason for native_id, reason in reasons.items() if job_number(native_id) not in unanswered
    }


@hookimpl
def parse_hold(result: CommandResult, native_ids: Sequence[str]) -> Mapping[str, str]:
    """Return the reason for each job that was not held or released."""
    return _refusals(result, native_ids, _CHANGED)


parse_release = parse_hold


def _refusals(
    result: CommandResult, native_ids: Sequence[str], accepted: Collection[str]
) -> Mapping[str, str]:
    """Return the reason for each job that was not changed; a message in `accepted` means success."""
    lines = [line.strip() for line in result.stdout.splitlines()]
    answers = [(job, line) for line in lines for job in _JOB_NUMBER.findall(line)]
    done = {job for job, line in answers if any(text in line for text in accepted)}
    messages = {job: line for job, line in answers if not any(text in line for text in accepted)}
    numbers = {native_id: job_number(native_id) for native_id in native_ids}
    reasons = refusals(result, list(numbers.values()), messages, changed=done)
    return {native_id: reasons[job] for native_id, job in numbers.items() if job in reasons}
