"""Maps jobs of the fake batch system to Grid Engine's words for states and failures.

Tests and `jpsi fake` run jobs on the fake, without a real Grid Engine.
"""

from __future__ import annotations

from jpsi_testing.fake import FakeJob, FakeState, Invocation

_AFTER_JOB = "100 : assumedly after job"
_LIMIT = "37  : qmaster enforced h_rt, h_cpu, or h_vmem limit"
_KILLED = 137
# The fields `failed` and `exit_status` of the account of a job that did not end by itself.
_ACCOUNT_FIELDS = {
    FakeState.CANCELLED: (_AFTER_JOB, _KILLED),
    FakeState.TIMEOUT: (_LIMIT, _KILLED),
    FakeState.OUT_OF_MEMORY: (_AFTER_JOB, _KILLED),
    FakeState.NODE_FAIL: ("21  : in recognizing job", 0),
}


def state_letters(job: FakeJob) -> str:
    """Return the state of a job that has not ended."""
    if job.state is FakeState.RUNNING:
        return ("d" if job.ending is not None else "") + ("Rr" if job.restarts else "r")
    # Grid Engine shows a job that waits for others as held, as if a user held it.
    is_held = job.state is FakeState.HELD or job.why == "dependency"
    if job.restarts:
        return "hRwq" if is_held else "Rq"
    return "hqw" if is_held else "qw"


def submission_time(job: FakeJob) -> float:
    """Return the time that qstat prints as the submission, which is the requeue for a requeued job."""
    return max(job.submitted, job.begin) if job.restarts else job.submitted


def failed_and_status(job: FakeJob) -> tuple[str, int]:
    """Return the fields `failed` and `exit_status` of an ended job's account."""
    if job.state is FakeState.FAILED and job.failed_to_start:
        return "28  : changing into working directory", 0
    if job.state in _ACCOUNT_FIELDS:
        return _ACCOUNT_FIELDS[job.state]
    return ("0", job.exit_code or 0) if job.signal is None else (_AFTER_JOB, job.shell_code)


def format_time(seconds: float | None, invocation: Invocation, time_format: str) -> str:
    """Return a time as a command of this invocation prints it."""
    return "-/-" if seconds is None else invocation.local_time(seconds).strftime(time_format)
