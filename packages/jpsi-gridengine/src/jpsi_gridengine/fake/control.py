"""`qdel`, `qhold` and `qrls` of the fake of Grid Engine.

Tests and `jpsi fake` run jobs on the fake, without a real Grid Engine.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping

from jpsi.plugin import CommandResult
from jpsi_testing.fake import (
    CommandError,
    CommandFunction,
    FakeJob,
    FakeScheduler,
    FakeState,
    Invocation,
    join_lines,
)

from .arrays import NamedJobs, find_jobs, job_name_of, task_ranges

#: A change of the jobs that an argument names; yields the messages.
_Change = Callable[[FakeScheduler, NamedJobs], Iterator[str]]


def _delete(scheduler: FakeScheduler, argument: NamedJobs) -> Iterator[str]:
    deleted = []
    for job in argument.jobs:
        was_running, was_ending = job.state is FakeState.RUNNING, job.ending is not None
        scheduler.cancel(job.native_id)
        if was_ending:
            yield f"job {job.number} is already in deletion"
        elif was_running:
            yield f"{job.owner} has registered the {_describe_job(job)} for deletion"
        else:
            deleted.append(job)
    if len(deleted) > 1 and argument.tasks:
        number = deleted[0].number
        yield f"{deleted[0].owner} has deleted job-array tasks {task_ranges(deleted)} of job {number}"
    elif deleted:
        description = _describe_job(deleted[0]) if argument.tasks else f"job {deleted[0].number}"
        yield f"{deleted[0].owner} has deleted {description}"


def _hold(scheduler: FakeScheduler, argument: NamedJobs) -> Iterator[str]:
    for job in argument.jobs:
        was_held = job.state is FakeState.HELD
        scheduler.hold(job.native_id)
        if not was_held:
            yield f"modified hold of {_describe_job(job)}"


def _release(scheduler: FakeScheduler, argument: NamedJobs) -> Iterator[str]:
    for job in argument.jobs:
        if scheduler.release(job.native_id):
            yield f"modified hold of {_describe_job(job)}"


def _describe_job(job: FakeJob) -> str:
    return f"job {job.native_id}" if not job.array else f"job-array task {job.native_id}"


def _change_jobs(
    verb: str, change: _Change, refused: int, scheduler: FakeScheduler, invocation: Invocation
) -> CommandResult:
    if not invocation.arguments:
        raise CommandError(1, stdout="ERROR! no option argument\n")
    known = [job for job in scheduler.listed() if not job.state.final]
    numbers = {job.number for job in known} | {job_name_of(job) for job in known if job.is_own}
    user, code = FakeJob("").owner, 0
    messages: list[str] = []
    for word in find_jobs(invocation.arguments, known):
        # an earlier argument may have ended some of the jobs
        remaining = word._replace(jobs=[job for job in word.jobs if not job.state.final])
        if all(job.is_own for job in remaining.jobs) and remaining.jobs:
            messages += change(scheduler, remaining)
            continue
        code = refused
        if remaining.jobs:
            messages.append(
                f'{user} - you do not have the necessary privileges to {verb} the job "{word.number}"'
            )
        else:
            messages.append(_unknown_jobs(word, user, is_known=word.number in numbers))
    return CommandResult(returncode=code, stdout=join_lines(messages))


def _unknown_jobs(word: NamedJobs, user: str, *, is_known: bool) -> str:
    if is_known and word.tasks:
        return _unknown_tasks(word, f" user(s) {user}" if word.is_by_name else "")
    if word.is_by_name:
        return f"The job {word.number} of user(s) {user} does not exist"
    return f'denied: job "{word.number}" does not exist'


def _unknown_tasks(word: NamedJobs, whose: str) -> str:
    if "-" in word.tasks:
        under = f" under{whose}" if whose else ""
        return f'job "{word.number}" task id range "{word.tasks}:1" comprises no tasks{under}'
    return f'job "{word.number}" task "{word.tasks}" does not exist{f" for{whose}" if whose else ""}'


#: The commands by name.
COMMANDS: Mapping[str, CommandFunction] = {
    "qdel": functools.partial(_change_jobs, "delete", _delete, 1),
    "qhold": functools.partial(_change_jobs, "modify", _hold, 3),
    "qrls": functools.partial(_change_jobs, "modify", _release, 3),
}
