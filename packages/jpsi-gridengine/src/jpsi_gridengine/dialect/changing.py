"""`qdel`, `qhold` and `qrls` over a fake batch system."""

from __future__ import annotations

from collections.abc import Callable

from jpsi.fakes import FakeJob, FakeScheduler, FakeState, Invocation
from jpsi.plugin import CommandResult

#: What is done to a job, and what is said then.
_Change = Callable[[FakeScheduler, FakeJob], str]


def qdel(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    """End jobs."""
    return _changed(scheduler, invocation, "delete", _delete, refused=1)


def qhold(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    """Keep jobs from starting."""
    return _changed(scheduler, invocation, "modify", _hold, refused=3)


def qrls(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    """Let jobs start."""
    return _changed(scheduler, invocation, "modify", _release, refused=3)


def _delete(scheduler: FakeScheduler, job: FakeJob) -> str:
    was_running, was_ending = job.state is FakeState.RUNNING, job.ending is not None
    scheduler.cancel(job.native_id)
    if was_ending:
        return f"job {job.native_id} is already in deletion"
    if was_running:
        return f"{job.owner} has registered the job {job.native_id} for deletion"
    return f"{job.owner} has deleted job {job.native_id}"


def _hold(scheduler: FakeScheduler, job: FakeJob) -> str:
    scheduler.hold(job.native_id)
    return f"modified hold of job {job.native_id}"


def _release(scheduler: FakeScheduler, job: FakeJob) -> str:
    scheduler.release(job.native_id)
    return f"modified hold of job {job.native_id}"


def _changed(
    scheduler: FakeScheduler, invocation: Invocation, verb: str, change: _Change, *, refused: int
) -> CommandResult:
    if not invocation.arguments:
        return CommandResult(returncode=1, stdout="ERROR! no option argument\n")
    known = {job.native_id: job for job in scheduler.listed() if not job.state.final}
    me, said, code = FakeJob("").owner, [], 0
    for native_id in invocation.arguments:
        job = known.get(native_id)
        if job is not None and job.is_own:
            said.append(change(scheduler, job))
            continue
        code = refused
        if job is not None:
            said.append(f'{me} - you do not have the necessary privileges to {verb} the job "{native_id}"')
        elif native_id.isdecimal():
            said.append(f'denied: job "{native_id}" does not exist')
        else:
            said.append(f"The job {native_id} of user(s) {me} does not exist")
    return CommandResult(returncode=code, stdout="".join(f"{line}\n" for line in said))
