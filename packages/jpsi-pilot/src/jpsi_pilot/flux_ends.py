"""What the end of a job of a Flux instance says of the task that it was: pure."""

from __future__ import annotations

from jpsi import JobState, JobStatus, Reason

from .values import End


def end_of(status: JobStatus) -> End | None:
    """How a task ended, by the final status of its job; None if Flux has lost a node of it."""
    if status.reason is Reason.NODE_FAIL:
        return None
    if status.state is JobState.CANCELED:
        return End(code=status.exit_code, why="cancel")
    if status.reason is Reason.TIMEOUT:
        return End(code=status.exit_code, why="timeout")
    if status.exit_code is not None:
        return End(code=status.exit_code)
    if status.reason is Reason.LAUNCH:
        return End(code=None, why="unable", message=f"Flux did not start the job: {status.message or status}")
    return End(code=None, why="lost")
