"""`bhist` of the fakes of LSF.

Tests and `jpsi fake` run jobs on the fake, without a real LSF.
"""

from __future__ import annotations

from collections.abc import Iterator

from jpsi_testing.fake import CommandError, FakeJob, FakeScheduler, FakeState, Invocation

from .arrays import find_jobs
from .control import check_ids
from .flavour import Flavour
from .listing import end_event, fold_line, heading, join_paragraphs
from .states import format_time, has_run, lead, termination

_UNKNOWN = 255


def bhist(flavour: Flavour, scheduler: FakeScheduler, invocation: Invocation) -> str:
    """Print the history of jobs, as `-n 0 -l` does."""
    check_ids(invocation.arguments)
    ids = [word for word in invocation.arguments[2:] if not word.startswith("-")]
    jobs = [job for _, found in find_jobs(ids, scheduler.accounted()) for job in found]
    if not jobs:
        raise CommandError(_UNKNOWN, stdout="No matching job found\n")
    return join_paragraphs(_paragraph(flavour, job) for job in jobs)


def _paragraph(flavour: Flavour, job: FakeJob) -> str:
    minutes = 0.0 if job.time_limit is None else job.time_limit / 60
    limit = f"\n RUNLIMIT                \n {minutes:.1f} min                 \n" if minutes else ""
    events = "".join(
        fold_line(f"{format_time(timestamp)}: {event};") for timestamp, event in _events(flavour, job)
    )
    row = "".join(f"{seconds:<9}" for seconds in (0, 0, _run_time(job), 0, 0, 0, _run_time(job)))
    submitted = (
        f"{format_time(job.submitted)}: Submitted from host <login01>, to Queue <{job.queue}>, CWD </>;"
    )
    return (
        f"\n{heading(job)}{fold_line(submitted)}{limit}{events}"
        f"\nSummary of time in seconds spent in various states by  {format_time(job.ended)}\n"
        f"  PEND     PSUSP    RUN      USUSP    SSUSP    UNKWN    TOTAL\n  {row}   \n"
    )


def _events(flavour: Flavour, job: FakeJob) -> Iterator[tuple[float, str]]:
    for _ in range(job.restarts):
        yield job.submitted, f"Dispatched to <{lead(job)}>"
        yield job.submitted, "Signal <REQUEUE_PEND> requested by user or administrator <admin>"
        yield job.submitted, "Exited with exit code 130. The CPU time used is 0.0 seconds"
        yield job.submitted, "Pending: Job has been requeued"
    if has_run(job):
        yield job.started or 0, f"Dispatched to <{lead(job)}>"
        yield job.started or 0, "Starting (Pid 20476)"
        yield job.started or 0, f"Running with execution home </home/{job.owner}>, Execution Pid <20476>"
    if job.state.final:
        yield from ((job.ended or 0, text) for text in _end_events(flavour, job))


def _end_events(flavour: Flavour, job: FakeJob) -> Iterator[str]:
    if job.state is FakeState.CANCELLED:
        yield f"Signal <KILL> requested by user or administrator <{job.owner}>"
    yield end_event(job)
    if flavour.is_lsf_10 and termination(job):
        yield f"Completed <exit>; {termination(job)}"


def _run_time(job: FakeJob) -> int:
    """Return the seconds that a job ran; after a timeout at least its limit, whatever the clock says."""
    if job.started is None or job.ended is None:
        return 0
    ran = int(job.ended - job.started)
    return max(ran, int(job.time_limit or 0)) if job.state is FakeState.TIMEOUT else ran
