"""`bkill`, `bstop`, `bresume`, `bparams` and `bqueues` of the fakes of LSF."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from jpsi.plugin import CommandResult
from jpsi_testing.fake import FakeJob, FakeScheduler, Invocation

from .arrays import MAX_JOB_ARRAY_SIZE, find_jobs

_REFUSED = 255
_NUMBER = re.compile(r"\d+(\[\d[\d,:-]*\])?\Z")
_PARAMETERS = f"""
System default queue(s):
    DEFAULT_QUEUE = normal

The maximum number of jobs in a job array:
    MAX_JOB_ARRAY_SIZE = {MAX_JOB_ARRAY_SIZE}
"""
_QUEUE_LISTING = """
QUEUE: normal
  -- For everybody.  This is the default queue.

PARAMETERS/STATISTICS
PRIO NICE STATUS          MAX JL/U JL/P JL/H NJOBS  PEND   RUN SSUSP USUSP  RSV
 30    0  Open:Active       -    -    -    -     0     0     0     0     0    0

DEFAULT LIMITS:
 RUNLIMIT
 60.0 min

MAXIMUM LIMITS:
 RUNLIMIT
 1440.0 min

USERS:  all
HOSTS:  all
REQUEUE_EXIT_VALUES:  88 EXCLUDE(89)
"""


def bkill(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    """End jobs."""
    return _change(scheduler, invocation, scheduler.cancel, "terminated")


def bstop(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    """Hold jobs."""
    return _change(scheduler, invocation, scheduler.hold, "stopped")


def bresume(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    """Release jobs."""
    return _change(scheduler, invocation, scheduler.release, "resumed")


def bparams(_scheduler: FakeScheduler, _invocation: Invocation) -> CommandResult:
    """Show the parameters."""
    return CommandResult(returncode=0, stdout=_PARAMETERS)


def bqueues(_scheduler: FakeScheduler, _invocation: Invocation) -> CommandResult:
    """Show the queues."""
    return CommandResult(returncode=0, stdout=_QUEUE_LISTING)


def malformed_id_error(invocation: Invocation) -> CommandResult | None:
    """Return a command's error about a malformed id; None if all ids are valid."""
    for word in invocation.arguments:
        if not word.startswith("-") and not _NUMBER.match(word):
            return CommandResult(returncode=_REFUSED, stderr=f"{word}: Illegal job ID.\n")
    return None


def _change(
    scheduler: FakeScheduler, invocation: Invocation, change: Callable[[str], bool], verb: str
) -> CommandResult:
    if not invocation.arguments:
        message = "Job ID or one of '-m', '-u' '-q' and '-J' must be specified.\n"
        return CommandResult(returncode=_REFUSED, stderr=message)
    if refusal := malformed_id_error(invocation):
        return refusal
    jobs = scheduler.listed()
    stdout, stderr = "", ""
    unfinished = [job.native_id for job in jobs if not job.state.final]
    for name, found in find_jobs(unfinished if "0" in invocation.arguments else invocation.arguments, jobs):
        if refusal_text := _find_refusal(found):
            stderr += f"Job <{name}>: {refusal_text}\n"
            continue
        for job in found:
            change(job.native_id)
        if len(found) > 1:
            # LSF prints this for an array, and carries out the request nonetheless
            stderr += f"Job <{name}>: Operation is in progress\n"
        else:
            stdout += f"Job <{name}> is being {verb}\n"
    return CommandResult(returncode=_REFUSED if stderr else 0, stdout=stdout, stderr=stderr)


def _find_refusal(jobs: Sequence[FakeJob]) -> str | None:
    if not jobs:
        return "No matching job found"
    if not all(job.is_own for job in jobs):
        return "User permission denied"
    return "Job has already finished" if all(job.state.final for job in jobs) else None
