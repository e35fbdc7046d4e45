"""`flux cancel` and `flux job` of the fake of Flux."""

from __future__ import annotations

from collections.abc import Mapping

from jpsi.plugin import CommandResult
from jpsi_testing.fake import FakeJob, FakeScheduler, Invocation

from .native_ids import format_id, parse_ids

_URGENCIES: Mapping[str, bool] = {"hold": True, "0": True, "default": False, "16": False}


def cancel(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    """End jobs; print an error about each ended or unknown one, and end the others nonetheless."""
    ids, error = parse_ids(invocation.arguments[1:])
    if error is not None:
        return CommandResult(
            returncode=2, stderr=f"usage: flux cancel [OPTIONS] [JOBID...]\nflux-cancel: {error}"
        )
    errors = [
        f"flux-cancel: ERROR: {format_id(native_id, invocation)}: {reason}\n"
        for native_id in ids
        if (reason := _cancel_job(scheduler, native_id)) is not None
    ]
    return CommandResult(returncode=1 if errors or not ids else 0, stderr="".join(errors))


def _cancel_job(scheduler: FakeScheduler, native_id: str) -> str | None:
    """End a job, or return the reason why Flux refuses."""
    job = _find_job(scheduler, native_id)
    if job is None:
        return "unknown job id"
    if job.state.final:
        return "job is inactive"
    if not job.is_own:
        return "guests can only raise exceptions on their own jobs"
    scheduler.cancel(native_id)
    return None


def job(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    """Change a job's urgency, or print a job's decimal id."""
    verb, *words = invocation.arguments[1:] or [""]
    if verb == "id":
        ids, error = parse_ids(tuple(word for word in words if not word.startswith("--to=")))
        if error is not None:
            return CommandResult(returncode=1, stderr="flux-job: malformed input\n")
        return CommandResult(returncode=0, stdout="".join(f"{native_id}\n" for native_id in ids))
    if verb != "urgency" or len(words) != 2 or words[1] not in _URGENCIES:  # noqa: PLR2004  a job, an urgency
        return CommandResult(returncode=1, stderr="Usage: flux-job [OPTIONS] COMMAND ARGS\n")
    reason = _change_urgency(scheduler, words[0], hold=_URGENCIES[words[1]])
    stderr = "" if reason is None else f"flux-job: {words[0]}: {reason}\n"
    return CommandResult(returncode=0 if reason is None else 1, stderr=stderr)


def _change_urgency(scheduler: FakeScheduler, word: str, *, hold: bool) -> str | None:
    """Change a job's urgency, or return the reason why Flux refuses."""
    ids, error = parse_ids((word,))
    found = None if error else _find_job(scheduler, ids[0])
    if found is None:
        return "unknown job"
    if found.state.final:
        return "job is inactive"
    if found.started is not None:
        return "urgency cannot be changed once resources are allocated"
    (scheduler.hold if hold else scheduler.release)(found.native_id)
    return None


def _find_job(scheduler: FakeScheduler, native_id: str) -> FakeJob | None:
    return next((job for job in scheduler.listed() if job.native_id == native_id), None)
