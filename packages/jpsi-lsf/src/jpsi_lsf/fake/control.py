"""Commands of the fakes of LSF that change jobs, and the output of `bparams` and `bqueues`.

Tests and `jpsi fake` run jobs on the fake, without a real LSF.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from jpsi.plugin import CommandResult
from jpsi_testing.fake import CommandError, FakeJob, FakeScheduler, Invocation

from .arrays import MAX_JOB_ARRAY_SIZE, find_jobs

_REFUSED = 255
_NUMBER = re.compile(r"\d+(\[\d[\d,:-]*\])?\Z")
#: The output of `bparams`.
PARAMETERS = f"""
System default queue(s):
    DEFAULT_QUEUE = normal

The maximum number of jobs in a job array:
    MAX_JOB_ARRAY_SIZE = {MAX_JOB_ARRAY_SIZE}
"""
#: The output of `bqueues`.
QUEUE_LISTING = """
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


def check_ids(words: Iterable[str]) -> None:
    """Raise a command's error about a malformed id among its arguments."""
    for word in words:
        if not word.startswith("-") and not _NUMBER.match(word):
            raise CommandError(_REFUSED, f"{word}: Illegal job ID.\n")


def change(
    method: Callable[[FakeScheduler, str], bool], verb: str, scheduler: FakeScheduler, invocation: Invocation
) -> CommandResult:
    """Change the jobs that a command names by a method of the scheduler."""
    if not invocation.arguments:
        raise CommandError(_REFUSED, "Job ID or one of '-m', '-u' '-q' and '-J' must be specified.\n")
    check_ids(invocation.arguments)
    jobs = scheduler.listed()
    stdout, stderr = "", ""
    unfinished = [job.native_id for job in jobs if not job.state.final]
    for name, found in find_jobs(unfinished if "0" in invocation.arguments else invocation.arguments, jobs):
        if refusal_text := _find_refusal(found):
            stderr += f"Job <{name}>: {refusal_text}\n"
            continue
        for job in found:
            method(scheduler, job.native_id)
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
