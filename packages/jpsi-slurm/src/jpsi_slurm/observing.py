"""One job as Slurm tells of it, in the queue or in the accounting, as jpsi understands it."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from jpsi.plugin import JobState, Observation, Reason

from .exits import End
from .states import STATES, Meaning
from .waiting import waiting_message, waiting_reason


class Moments(NamedTuple):
    """When a job passed through its states, or is expected to."""

    submitted: datetime | None
    started: datetime | None
    ended: datetime | None


_NOTHING = frozenset({"", "None"})
# Every other end was brought about by Slurm, whose figures for it tell of its means: a job that was ended for
# its time has 0:15 in one place and 0:0 in another.
_OF_ITS_OWN = frozenset({"COMPLETED", "FAILED"})


def observed(  # noqa: PLR0913  the columns of both listings
    word: str,
    *,
    why: str,
    end: End,
    moments: Moments,
    ran_on: tuple[str, ...],
    restarts: int | None = None,
    cancelled_by: str | None = None,
) -> Observation:
    """What a job's columns say.

    Args:
        word: the state.
        why: Slurm's reason: why it is pending, or was when it was cancelled, or ended as it did.
        end: what the figures for its exit code say; they count for jobs that ended of themselves.
        moments: the times.
        ran_on: its nodes; empty if it has not run.
        restarts: how often it was put back.
        cancelled_by: the number of the user who cancelled it.
    """
    details: dict[str, Any] = {"slurm.state": word}
    if why not in _NOTHING:
        details["slurm.reason"] = why
    if cancelled_by is not None:
        details["slurm.cancelled_by"] = cancelled_by
    meaning = STATES.get(word)
    if meaning is None:
        return Observation(state=None, word=word, details=details)
    pending = meaning.state is JobState.QUEUED
    end = end if word in _OF_ITS_OWN else End()
    reason, message = _explained(word, meaning, why, end, restarts, has_run=bool(ran_on))
    return Observation(
        state=meaning.state,
        word=word,
        reason=reason,
        message=message if cancelled_by is None else f"{message} by the user with number {cancelled_by}",
        exit_code=end.exit_code,
        ran=_has_run(meaning.state, reason, restarts, is_placed=bool(ran_on)),
        time=_entered(meaning.state, moments),
        restarts=restarts,
        nodes=ran_on,
        start_estimate=moments.started if pending else None,
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


def _entered(state: JobState, moments: Moments) -> datetime | None:
    if state is JobState.QUEUED:
        return moments.submitted
    return moments.ended if state.final else moments.started
