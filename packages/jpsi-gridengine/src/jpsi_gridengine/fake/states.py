"""What a job of a fake batch system is in the words of Grid Engine."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from jpsi_testing.fake import FakeJob, FakeState, Invocation

_AFTER_JOB = "100 : assumedly after job"
_LIMIT = "37  : qmaster enforced h_rt, h_cpu, or h_vmem limit"
_KILLED = 137
_FAILED = {
    FakeState.CANCELLED: (_AFTER_JOB, _KILLED),
    FakeState.TIMEOUT: (_LIMIT, _KILLED),
    FakeState.OUT_OF_MEMORY: (_AFTER_JOB, _KILLED),
    FakeState.NODE_FAIL: ("21  : in recognizing job", 0),
}
# Grid Engine prints local time; whoever does not ask for another is shown that of a distant place.
_ELSEWHERE = timezone(timedelta(hours=5))


def node(index: int) -> str:
    """The name of a node; the first is 0, where the scripts of jobs run."""
    return f"node{index + 1:02d}"


def letters(job: FakeJob) -> str:
    """The state of a job that has not ended."""
    if job.state is FakeState.RUNNING:
        return ("d" if job.ending is not None else "") + ("Rr" if job.restarts else "r")
    is_held = job.state is FakeState.HELD or job.why == "dependency"
    if job.restarts:
        return "hRwq" if is_held else "Rq"
    return "hqw" if is_held else "qw"


def queued(job: FakeJob) -> float:
    """What is told for the time of a job's submission: when it was put back, if it was."""
    return max(job.submitted, job.begin) if job.restarts else job.submitted


def failed_and_status(job: FakeJob) -> tuple[str, int]:
    """How the accounting tells the end of a job."""
    if job.state is FakeState.FAILED and job.why.startswith("launch failed"):
        return "28  : changing into working directory", 0
    if job.state in _FAILED:
        return _FAILED[job.state]
    return ("0", job.exit_code or 0) if job.signal is None else (_AFTER_JOB, 128 + job.signal)


def moment(seconds: float | None, invocation: Invocation, form: str) -> str:
    """A time as a command prints it that was called like this."""
    if seconds is None:
        return "-/-"
    zone = UTC if invocation.environment.get("TZ") == "UTC0" else _ELSEWHERE
    return datetime.fromtimestamp(int(seconds), zone).strftime(form)
