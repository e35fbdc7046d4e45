"""`qdel`, `qhold` and `qrls` of the fake of Grid Engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from jpsi.plugin import CommandResult
from jpsi_testing.fake import FakeJob, FakeScheduler, FakeState, Invocation

from .arrays import NamedJobs, find_jobs, job_name_of, job_number, task_index, task_ranges

#: A change of the jobs that an argument names; yields the messages.
_Change = Callable[[FakeScheduler, NamedJobs], Iterator[str]]


def qdel(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    """End jobs."""
    return _change_jobs(scheduler, invocation, "delete", _delete, refused=1)


def qhold(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    """Keep jobs from starting."""
    return _change_jobs(scheduler, invocation, "modify", _hold, refused=3)


def qrls(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    """Let jobs start."""
    return _change_jobs(scheduler, invocation, "modify", _release, refused=3)


def _delete(scheduler: FakeScheduler, argument: NamedJobs) -> Iterator[str]:
    deleted = []
    for job in argument.jobs:
        was_running, was_ending = job.state is FakeState.RUNNING, job.ending is not None
        scheduler.cancel(job.native_id)
        if was_ending:
            yield f"job {job_number(job)} is already in deletion"
        elif was_running:
            yield f"{job.owner} has registered the {_describe_job(job)} for deletion"
        else:
            deleted.append(job)
    if len(deleted) > 1 and argument.tasks:
        number = job_number(deleted[0])
        yield f"{deleted[0].owner} has deleted job-array tasks {task_ranges(deleted)} of job {number}"
    elif deleted:
        description = _describe_job(deleted[0]) if argument.tasks else f"job {job_number(deleted[0])}"
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
    return f"job {job.native_id}" if task_index(job) is None else f"job-array task {job.native_id}"


def _change_jobs(
    scheduler: FakeScheduler, invocation: Invocation, verb: str, change: _Change, *, refused: int
) -> CommandResult:
    if not invocation.arguments:
        return CommandResult(returncode=1, stdout="ERROR! no option argument\n")
    known = [job for job in scheduler.listed() if not job.state.final]
    numbers = {job_number(job) for job in known} | {job_name_of(job) for job in known if job.is_own}
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
        elif word.number in numbers and word.tasks:
            messages.append(_unknown_tasks(word, f" user(s) {user}" if word.is_by_name else ""))
        elif word.is_by_name:
            messages.append(f"The job {word.number} of user(s) {user} does not exist")
        else:
            messages.append(f'denied: job "{word.number}" does not exist')
    return CommandResult(returncode=code, stdout="".join(f"{line}\n" for line in messages))


def _unknown_tasks(word: NamedJobs, whose: str) -> str:
    if "-" in word.tasks:
        under = f" under{whose}" if whose else ""
        return f'job "{word.number}" task id range "{word.tasks}:1" comprises no tasks{under}'
    return f'job "{word.number}" task "{word.tasks}" does not exist{f" for{whose}" if whose else ""}'
