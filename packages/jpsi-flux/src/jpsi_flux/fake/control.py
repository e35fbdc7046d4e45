"""`flux cancel` and `flux job` of the fake of Flux."""

from __future__ import annotations

from collections.abc import Mapping

from jpsi.plugin import CommandResult
from jpsi_testing.fake import FakeJob, FakeScheduler, Invocation

from .native_ids import read, shown

_URGENCIES: Mapping[str, bool] = {"hold": True, "0": True, "default": False, "16": False}


def cancel(scheduler: FakeScheduler, invocation: Invocation) -> CommandResult:
    """End jobs; print an error about each ended or unknown one, and end the others nonetheless."""
    ids, wrong = read(invocation.arguments[1:])
    if wrong is not None:
        return CommandResult(
            returncode=2, stderr=f"usage: flux cancel [OPTIONS] [JOBID...]\nflux-cancel: {wrong}"
        )
    complaints = [
        f"flux-cancel: ERROR: {shown(native_id, invocation)}: {why}\n"
        for native_id in ids
        if (why := _cancelled(scheduler, native_id)) is not None
    ]
    return CommandResult(returncode=1 if complaints or not ids else 0, stderr="".join(complaints))


def _cancelled(scheduler: FakeScheduler, native_id: str) -> str | None:
    """End a job, or return the reason why Flux refuses."""
    job = _known(scheduler, native_id)
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
        ids, wrong = read(tuple(word for word in words if not word.startswith("--to=")))
        if wrong is not None:
            return CommandResult(returncode=1, stderr="flux-job: malformed input\n")
        return CommandResult(returncode=0, stdout="".join(f"{native_id}\n" for native_id in ids))
    if verb != "urgency" or len(words) != 2 or words[1] not in _URGENCIES:  # noqa: PLR2004  a job, an urgency
        return CommandResult(returncode=1, stderr="Usage: flux-job [OPTIONS] COMMAND ARGS\n")
    why = _changed(scheduler, words[0], hold=_URGENCIES[words[1]])
    said = "" if why is None else f"flux-job: {words[0]}: {why}\n"
    return CommandResult(returncode=0 if why is None else 1, stderr=said)


def _changed(scheduler: FakeScheduler, word: str, *, hold: bool) -> str | None:
    """Change a job's urgency, or return the reason why Flux refuses."""
    ids, wrong = read((word,))
    found = None if wrong else _known(scheduler, ids[0])
    if found is None:
        return "unknown job"
    if found.state.final:
        return "job is inactive"
    if found.started is not None:
        return "urgency cannot be changed once resources are allocated"
    (scheduler.hold if hold else scheduler.release)(found.native_id)
    return None


def _known(scheduler: FakeScheduler, native_id: str) -> FakeJob | None:
    return next((job for job in scheduler.listed() if job.native_id == native_id), None)
