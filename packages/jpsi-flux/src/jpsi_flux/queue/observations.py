"""Turns a job in the output of `flux jobs --json` into an Observation.

`queue.jobs` uses it for each job that Flux lists.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from jpsi.plugin import JobState, Observation, Reason
from jpsi.plugin.kit import expand_hostlist, extract_intact_tag

from ..native_ids import f58
from ..states import EXCEPTIONS, EXEC_NOTES, STATES

#: One job of the JSON output.
Job = Mapping[str, Any]

_HELD = 0
# Exceptions of other severities are notes.
_FATAL = 0
# The job shell's exit codes for a command that is missing or not executable.
_NOT_STARTED = frozenset({126, 127})


def observe_job(job: Job) -> Observation:
    """Return the Observation of a job; Flux leaves out keys, or leaves them empty, until they apply."""
    native_state, has_run = str(job.get("status", "")), "t_run" in job
    state = JobState.QUEUED if native_state == "CLEANUP" and not has_run else STATES.get(native_state)
    is_queued, has_ended = state is JobState.QUEUED, state is not None and state.final
    reason, message = _explain_end(job, state) if has_ended else (None, None)
    if reason is Reason.DEPENDENCY and not has_run:
        # no user cancelled the job, but it will never run
        state = JobState.CANCELED
    entered = "t_submit" if is_queued else "t_inactive" if has_ended else "t_run"
    return Observation(
        state=state,
        native_state=native_state,
        tag=job_tag(job),
        submitted=_parse_time(job.get("t_submit")),
        reason=reason,
        message=_explain_pending(job) if is_queued else message,
        exit_code=_exit_code(job, reason) if has_ended else None,
        ran=has_run if has_ended else None,
        time=None if state is None else _parse_time(job.get(entered)),
        nodes=expand_hostlist(str(job.get("nodelist") or "")),
        start_estimate=_parse_time(_scheduler_annotations(job).get("t_estimate")) if is_queued else None,
        details=_details(job),
    )


def job_name(job: Job) -> str:
    """Return the name of a job, which Flux leaves out if it is empty."""
    name: str = job.get("name", "")
    return name


def job_tag(job: Job) -> str | None:
    """Return the tag at the end of a job's name, "" if there is none; None for a possibly corrupt tag."""
    return extract_intact_tag(" ".join(job_name(job).split()))


def _explain_pending(job: Job) -> str | None:
    """Return the reason why a job is pending."""
    if job.get("urgency") == _HELD:
        return "the job is held"
    if job.get("status") == "DEPEND" and job.get("dependencies"):
        return f"the job waits for {', '.join(map(str, job['dependencies']))}"
    pending = _scheduler_annotations(job).get("reason_pending")
    return str(pending) if pending else None


def _explain_end(job: Job, state: JobState | None) -> tuple[Reason | None, str | None]:
    kind, note = _exception(job)
    if kind is None:
        return None, _explain_shell_signal(job)
    reason = _exec_reason(job, note) if kind == "exec" else EXCEPTIONS.get(kind)
    if state is JobState.COMPLETED:
        return None, None
    if kind == "cancel":
        return reason, f"the job was cancelled: {note}" if note else "the job was cancelled"
    return reason, f"{note} ({kind})" if note else f"Flux ended the job ({kind})"


def _exec_reason(job: Job, note: str) -> Reason | None:
    reason = next((it for part, it in EXEC_NOTES.items() if part in note), None)
    return Reason.LAUNCH if reason is None and _exit_code(job, None) in _NOT_STARTED else reason


def _exception(job: Job) -> tuple[str | None, str]:
    """Return the type and the note of the exception that ended a job."""
    exception = job.get("exception") or {}
    if not exception.get("occurred") or exception.get("severity", _FATAL) != _FATAL:
        return None, ""
    return str(exception.get("type", "")), str(exception.get("note") or "")


def _explain_shell_signal(job: Job) -> str | None:
    status = job.get("waitstatus")
    if isinstance(status, int) and os.WIFSIGNALED(status):
        return f"signal {os.WTERMSIG(status)} ended Flux's own process that ran the job"
    return None


def _exit_code(job: Job, reason: Reason | None) -> int | None:
    """Return the job's exit code; None if Flux ended the job, as the status then shows how Flux did it.

    The wait status is that of Flux's job shell, which exits with 128 + n if signal n ended a process.
    """
    status = job.get("waitstatus")
    if not isinstance(status, int) or not os.WIFEXITED(status) or reason is not None:
        return None
    return os.WEXITSTATUS(status)


def _parse_time(seconds: object) -> datetime | None:
    if not isinstance(seconds, float) or seconds <= 0:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        # a scheduler's estimate may be any number
        return None


def _scheduler_annotations(job: Job) -> Mapping[str, Any]:
    """Return the scheduler's annotations of a job."""
    annotations = (job.get("annotations") or {}).get("sched")
    return annotations if isinstance(annotations, Mapping) else {}


def _details(job: Job) -> dict[str, Any]:
    kind, _ = _exception(job)
    values = {"id": f58(str(job["id"])), "exception": kind, "queue": job.get("queue"), "uri": job.get("uri")}
    return {f"flux.{name}": value for name, value in values.items() if value}
