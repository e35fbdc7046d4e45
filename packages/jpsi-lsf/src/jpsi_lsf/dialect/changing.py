"""`bkill`, `bstop`, `bresume` and `bqueues` over a fake batch system."""

from __future__ import annotations

import re
from collections.abc import Callable

from jpsi.fakes import FakeJob, FakeScheduler, Invocation
from jpsi.plugin import CommandResult

_REFUSED = 255
_NUMBER = re.compile(r"\d+(\[\d+\])?\Z")
_QUEUES = """
QUEUE: normal
  -- For everybody

PARAMETERS/STATISTICS
PRIO NICE STATUS          MAX JL/U JL/P JL/H NJOBS  PEND   RUN SSUSP USUSP  RSV
 30    0  Open:Active       -    -    -    -     0     0     0     0     0    0

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


def bqueues(_scheduler: FakeScheduler, _invocation: Invocation) -> CommandResult:
    """Show the queues."""
    return CommandResult(returncode=0, stdout=_QUEUES)


def unsound(invocation: Invocation) -> CommandResult | None:
    """What a command says that was called with something that is no id."""
    for word in invocation.arguments:
        if not word.startswith("-") and not _NUMBER.match(word):
            return CommandResult(returncode=_REFUSED, stderr=f"{word}: Illegal job ID.\n")
    return None


def _change(
    scheduler: FakeScheduler, invocation: Invocation, change: Callable[[str], bool], done: str
) -> CommandResult:
    if not invocation.arguments:
        said = "Job ID or one of '-m', '-u' '-q' and '-J' must be specified.\n"
        return CommandResult(returncode=_REFUSED, stderr=said)
    if refusal := unsound(invocation):
        return refusal
    jobs = {job.native_id: job for job in scheduler.listed()}
    stdout, stderr = "", ""
    every = [job.native_id for job in jobs.values() if not job.state.final]
    for number in every if "0" in invocation.arguments else invocation.arguments:
        if refused := _refused(jobs.get(number)):
            stderr += f"Job <{number}>: {refused}\n"
        else:
            change(number)
            stdout += f"Job <{number}> is being {done}\n"
    return CommandResult(returncode=_REFUSED if stderr else 0, stdout=stdout, stderr=stderr)


def _refused(job: FakeJob | None) -> str | None:
    if job is None:
        return "No matching job found"
    if not job.is_own:
        return "User permission denied"
    return "Job has already finished" if job.state.final else None
