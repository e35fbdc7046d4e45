"""`qdel`, `qhold` and `qrls` of the fake of Grid Engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from jpsi.plugin import CommandResult
from jpsi_testing.fake import FakeJob, FakeScheduler, FakeState, Invocation

from .arrays import Named, called, named, number_of, ranges, task_of

#: A change of the jobs that an argument names; yields the messages.
_Change = Callable[[FakeScheduler, Named], Iterator[str]]


def qdel(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    """End jobs."""
    return _changed(scheduler, invocation, "delete", _delete, refused=1)


def qhold(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    """Keep jobs from starting."""
    return _changed(scheduler, invocation, "modify", _hold, refused=3)


def qrls(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    """Let jobs start."""
    return _changed(scheduler, invocation, "modify", _release, refused=3)


def _delete(scheduler: FakeScheduler, named: Named) -> Iterator[str]:
    deleted = []
    for job in named.jobs:
        was_running, was_ending = job.state is FakeState.RUNNING, job.ending is not None
        scheduler.cancel(job.native_id)
        if was_ending:
            yield f"job {number_of(job)} is already in deletion"
        elif was_running:
            yield f"{job.owner} has registered the {_called(job)} for deletion"
        else:
            deleted.append(job)
    if len(deleted) > 1 and named.tasks:
        number = number_of(deleted[0])
        yield f"{deleted[0].owner} has deleted job-array tasks {ranges(deleted)} of job {number}"
    elif deleted:
        told = _called(deleted[0]) if named.tasks else f"job {number_of(deleted[0])}"
        yield f"{deleted[0].owner} has deleted {told}"


def _hold(scheduler: FakeScheduler, named: Named) -> Iterator[str]:
    for job in named.jobs:
        was_held = job.state is FakeState.HELD
        scheduler.hold(job.native_id)
        if not was_held:
            yield f"modified hold of {_called(job)}"


def _release(scheduler: FakeScheduler, named: Named) -> Iterator[str]:
    for job in named.jobs:
        if scheduler.release(job.native_id):
            yield f"modified hold of {_called(job)}"


def _called(job: FakeJob) -> str:
    return f"job {job.native_id}" if task_of(job) is None else f"job-array task {job.native_id}"


def _changed(
    scheduler: FakeScheduler, invocation: Invocation, verb: str, change: _Change, *, refused: int
) -> CommandResult:
    if not invocation.arguments:
        return CommandResult(returncode=1, stdout="ERROR! no option argument\n")
    known = [job for job in scheduler.listed() if not job.state.final]
    numbers = {number_of(job) for job in known} | {called(job) for job in known if job.is_own}
    me, code = FakeJob("").owner, 0
    said: list[str] = []
    for word in named(invocation.arguments, known):
        # an earlier argument may have ended some of the jobs
        left = word._replace(jobs=[job for job in word.jobs if not job.state.final])
        if all(job.is_own for job in left.jobs) and left.jobs:
            said += change(scheduler, left)
            continue
        code = refused
        if left.jobs:
            said.append(f'{me} - you do not have the necessary privileges to {verb} the job "{word.number}"')
        elif word.number in numbers and word.tasks:
            said.append(_no_such_tasks(word, f" user(s) {me}" if word.is_by_name else ""))
        elif word.is_by_name:
            said.append(f"The job {word.number} of user(s) {me} does not exist")
        else:
            said.append(f'denied: job "{word.number}" does not exist')
    return CommandResult(returncode=code, stdout="".join(f"{line}\n" for line in said))


def _no_such_tasks(word: Named, whose: str) -> str:
    if "-" in word.tasks:
        under = f" under{whose}" if whose else ""
        return f'job "{word.number}" task id range "{word.tasks}:1" comprises no tasks{under}'
    return f'job "{word.number}" task "{word.tasks}" does not exist{f" for{whose}" if whose else ""}'
