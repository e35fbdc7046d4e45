"""Translates the status of a job of jpsi to Parsl's status of a block."""

from __future__ import annotations

from pathlib import Path

from parsl.jobs.states import JobState, JobStatus

import jpsi

_STATES = {
    jpsi.JobState.NEW: JobState.PENDING,
    jpsi.JobState.QUEUED: JobState.PENDING,
    jpsi.JobState.ACTIVE: JobState.RUNNING,
    jpsi.JobState.COMPLETED: JobState.COMPLETED,
    jpsi.JobState.CANCELED: JobState.CANCELLED,
    jpsi.JobState.FAILED: JobState.FAILED,
}
# Such an end of a pilot is expected: Parsl starts another, where it would give up after a few that FAILED.
# Parsl's own provider for Slurm takes the same three for TIMEOUT.
_EXPECTED_ENDS = {jpsi.Reason.TIMEOUT, jpsi.Reason.DEADLINE, jpsi.Reason.PREEMPTED}


def block_status(job: jpsi.Job) -> JobStatus:
    """Return Parsl's status of the job of a block, as jpsi knows it now; this queries nothing."""
    status, spec = job.status, job.spec or jpsi.JobSpec()
    is_expected = status.state is jpsi.JobState.FAILED and status.reason in _EXPECTED_ENDS
    return JobStatus(
        JobState.TIMEOUT if is_expected else _STATES[status.state],
        message=_message(job, status),
        exit_code=status.exit_code,
        stdout_path=_text(spec.stdout_path),
        stderr_path=_text(spec.stderr_path),
    )


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)


def _message(job: jpsi.Job, status: jpsi.JobStatus) -> str | None:
    """Return jpsi's message; about a block that did not end well, with the reason and where to read more."""
    if not status.final or status.state is jpsi.JobState.COMPLETED:
        return status.message
    reason = f"{status.reason.value}: " if status.reason else ""
    return f"{reason}{status.message or status.state.value}. More: jpsi explain {job.id}"
