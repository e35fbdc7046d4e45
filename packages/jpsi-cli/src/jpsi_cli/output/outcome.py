"""Explains the end of a job in a sentence, for `jpsi run`, `attach` and `wait`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import jpsi

# The phases of an end in which a file of the three streams could not be opened.
_OPENING = {"stdin", "stdout", "stderr"}


def explain_end(job: jpsi.Job, status: jpsi.JobStatus) -> str:
    """Return the message of the status, and the file that may tell more; first the index of an element."""
    from jpsi_engine.job_store import array_index  # noqa: PLC0415  most jobs of `jpsi run` need no explanation

    index = None if job.spec is None else array_index(job.spec.environment)
    element = "" if index is None else f"index {index}: "
    return element + _message(status) + _point_to_file(job, status)


def describe_end(status: jpsi.JobStatus) -> str:
    """Return how a job ended, in a few words: its state and its message or exit code."""
    return f"{status.state}: {_message(status)}"


def _message(status: jpsi.JobStatus) -> str:
    return status.message or (f"exit code {status.exit_code}" if status.exit_code else "no reason is known")


def later_failures(status: jpsi.JobStatus) -> list[str]:
    """Return failures after the job's end, which its exit code does not show."""
    failed = (what for what in _STEPS_AFTER_END if status.metadata.get(what) == "failed")
    return [_describe_failure(f"{what} failed", status.message or "") for what in failed]


_STEPS_AFTER_END = ("post_launch", "stage_out", "cleanup")


def _describe_failure(failure: str, message: str) -> str:
    _, found, rest = message.partition(failure)
    return failure + rest if found else failure


def _point_to_file(job: jpsi.Job, status: jpsi.JobStatus) -> str:
    streams = job.streams
    if streams is None or status.state is not jpsi.JobState.FAILED:
        return ""
    if status.reason is jpsi.Reason.LOST:
        return f"; the output that it wrote until then: {streams.stdout}, {streams.stderr}"
    # The user has seen output that was shown; what is in a file that was not opened is of others.
    has_file = job.spec is not None and job.spec.stderr_path is not None and not failed_to_open(status)
    return f"; see {streams.stderr}" if has_file and _has_content(job.output("stderr")) else ""


def failed_to_open(status: jpsi.JobStatus) -> bool:
    """Return True if a job has failed as a file of its streams could not be opened."""
    return status.metadata.get("phase") in _OPENING


def _has_content(output: jpsi.Output | None) -> bool:
    try:
        part = None if output is None else output.read(0, 0)
    except jpsi.JpsiError:
        return False
    return part is not None and part.size > 0


def status_json(status: jpsi.JobStatus) -> dict[str, Any]:
    """Return a status as JSON; keys may be added, never removed."""
    return {
        "state": status.state.value,
        "time": status.time.isoformat(),
        "exit_code": status.exit_code,
        "message": status.message,
        "reason": None if status.reason is None else status.reason.value,
        "evidence": None if status.evidence is None else status.evidence.value,
        "metadata": dict(status.metadata),
    }


def format_runtime(active: jpsi.JobStatus | None, final: jpsi.JobStatus) -> str:
    """Return how long the job ran, for people; empty if it is not known to have run."""
    if active is None:
        return ""
    seconds = (final.time - active.time).total_seconds()
    if seconds < 60:  # noqa: PLR2004  a minute
        return f"{seconds:.1f} s"
    return str(timedelta(seconds=round(seconds)))
