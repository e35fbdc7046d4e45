"""One job as Slurm tells of it, in the queue or in the accounting, as jpsi understands it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from jpsi.plugin import JobState, Meaning, Observation, Reason
from jpsi.plugin.kit import carried_tag, hostlist, moment

from ..states import STATES
from .exit_status import End
from .listing import Row
from .reason_codes import NOTHING, waiting_message, waiting_reason

# squeue, sacct and scontrol where a job has no nodes
_NO_NODES = frozenset({"", "(null)", "None assigned", "n/a"})
# Every other end was brought about by Slurm, whose figures for it tell of its means: a job that was ended for
# its time has 0:15 in one place and 0:0 in another.
_OF_ITS_OWN = frozenset({"COMPLETED", "FAILED"})
_NO_END = End()


def observed(row: Row, end: End = _NO_END, *, cancelled_by: str | None = None) -> Observation:
    """What a job's columns say, with the tag that its comment carries.

    Args:
        row: the columns.
        end: what the figures for its exit code say; they count for jobs that ran and ended of themselves.
        cancelled_by: the number of the user who cancelled it.
    """
    word = row.state
    # why it is pending, or was when it was cancelled, or ended as it did
    why = " ".join(row.reason.split())
    ran_on = () if row.nodes in _NO_NODES else hostlist(row.nodes)
    told = {"state": word, "reason": "" if why in NOTHING else why, "cancelled_by": cancelled_by}
    details: dict[str, Any] = {f"slurm.{name}": text for name, text in told.items() if text}
    # Of a job that was put back, squeue tells when that was.
    meaning, tag, submitted = STATES.get(word), carried_tag(row.comment), moment(row.submitted)
    restarts = int(row.restarts) if row.restarts.isdecimal() else None
    if meaning is None:
        return Observation(state=None, word=word, tag=tag, submitted=submitted, details=details)
    if not ran_on or word not in _OF_ITS_OWN:
        # An exit code of a job that never ran is Slurm's own, such as 1 where a request was refused.
        end = _NO_END
    reason, message = _explained(word, meaning, why, end, restarts, has_run=bool(ran_on))
    return Observation(
        state=meaning.state,
        word=word,
        tag=tag,
        submitted=submitted,
        reason=reason,
        message=message if cancelled_by is None else f"{message} by the user with number {cancelled_by}",
        exit_code=end.exit_code,
        ran=_has_run(meaning.state, reason, restarts, is_placed=bool(ran_on)),
        time=_entered(meaning.state, row),
        restarts=restarts,
        nodes=ran_on,
        start_estimate=moment(row.started) if meaning.state is JobState.QUEUED else None,
        details=details,
    )


def _explained(  # noqa: PLR0913  as above
    word: str,
    meaning: Meaning,
    why: str,
    end: End,
    restarts: int | None,
    *,
    has_run: bool,
) -> tuple[Reason | None, str | None]:
    if word == "PENDING":
        return waiting_reason(why) or (Reason.REQUEUED if restarts else None), waiting_message(why)
    if word == "CANCELLED" and waiting_reason(why) is not None:
        # Slurm itself cancels a job that can never run, with --kill-on-invalid-dep
        return waiting_reason(why), waiting_message(why)
    if word == "FAILED" and not has_run:
        return Reason.LAUNCH, waiting_message(why) or "Slurm could not start the job"
    return end.reason or meaning.reason, end.message or meaning.message


def _has_run(state: JobState, reason: Reason | None, restarts: int | None, *, is_placed: bool) -> bool | None:
    """Whether any of the job ran; None where an earlier run of it may have."""
    if state is JobState.QUEUED:
        return None
    if is_placed and reason is not Reason.LAUNCH:
        return True
    return False if restarts == 0 else None


def _entered(state: JobState, row: Row) -> datetime | None:
    if state is JobState.QUEUED:
        return moment(row.submitted)
    return moment(row.ended if state.final else row.started)
