"""Turns a row of squeue or sacct into the Observation of one job."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from jpsi.plugin import JobState, Meaning, Observation, Reason
from jpsi.plugin.kit import expand_hostlist, extract_tag, parse_time

from ..states import STATES
from .exit_status import End
from .listing import Row
from .reason_codes import NO_REASONS, pending_message, pending_reason

# The node column of squeue, sacct and scontrol for a job without nodes
_NO_NODES = frozenset({"", "(null)", "None assigned", "n/a"})
# Slurm itself caused every other end, and its exit figures then describe how: a job that exceeded its
# walltime has 0:15 in one command and 0:0 in another.
_OWN_END_STATES = frozenset({"COMPLETED", "FAILED"})
_NO_END = End()


def observe_row(row: Row, end: End = _NO_END, *, cancelled_by: str | None = None) -> Observation:
    """Return the Observation for a job's columns, with the tag from its comment.

    Args:
        row: the columns.
        end: the end decoded from the exit code; used only for jobs that ran and were not ended by Slurm.
        cancelled_by: the number of the user who cancelled the job.
    """
    word = row.state
    # the reason why the job is pending, was pending when cancelled, or ended
    reason_code = " ".join(row.reason.split())
    ran_on = () if row.nodes in _NO_NODES else expand_hostlist(row.nodes)
    values = {
        "state": word,
        "reason": "" if reason_code in NO_REASONS else reason_code,
        "cancelled_by": cancelled_by,
    }
    details: dict[str, Any] = {f"slurm.{name}": text for name, text in values.items() if text}
    # For a requeued job, squeue reports the time of the requeue as the submit time.
    meaning, tag, submitted = STATES.get(word), extract_tag(row.comment), parse_time(row.submitted)
    restarts = int(row.restarts) if row.restarts.isdecimal() else None
    if meaning is None:
        return Observation(state=None, word=word, tag=tag, submitted=submitted, details=details)
    if not ran_on or word not in _OWN_END_STATES:
        # The exit code of a job that never ran is Slurm's own, such as 1 for a refused request.
        end = _NO_END
    reason, message = _explain(word, meaning, reason_code, end, restarts, has_run=bool(ran_on))
    return Observation(
        state=meaning.state,
        word=word,
        tag=tag,
        submitted=submitted,
        reason=reason,
        message=message if cancelled_by is None else f"{message} by the user with number {cancelled_by}",
        exit_code=end.exit_code,
        ran=_has_run(meaning.state, reason, restarts, is_placed=bool(ran_on)),
        time=_state_time(meaning.state, row),
        restarts=restarts,
        nodes=ran_on,
        start_estimate=parse_time(row.started) if meaning.state is JobState.QUEUED else None,
        details=details,
    )


def _explain(  # noqa: PLR0913  as above
    word: str,
    meaning: Meaning,
    reason_code: str,
    end: End,
    restarts: int | None,
    *,
    has_run: bool,
) -> tuple[Reason | None, str | None]:
    if word == "PENDING":
        return pending_reason(reason_code) or (Reason.REQUEUED if restarts else None), pending_message(
            reason_code
        )
    if word == "CANCELLED" and pending_reason(reason_code) is not None:
        # Slurm itself cancels a job that can never run, with --kill-on-invalid-dep
        return pending_reason(reason_code), pending_message(reason_code)
    if word == "FAILED" and not has_run:
        return Reason.LAUNCH, pending_message(reason_code) or "Slurm could not start the job"
    return end.reason or meaning.reason, end.message or meaning.message


def _has_run(state: JobState, reason: Reason | None, restarts: int | None, *, is_placed: bool) -> bool | None:
    """Return True if any part of the job ran; None if an earlier run may have."""
    if state is JobState.QUEUED:
        return None
    if is_placed and reason is not Reason.LAUNCH:
        return True
    return False if restarts == 0 else None


def _state_time(state: JobState, row: Row) -> datetime | None:
    if state is JobState.QUEUED:
        return parse_time(row.submitted)
    return parse_time(row.ended if state.final else row.started)
