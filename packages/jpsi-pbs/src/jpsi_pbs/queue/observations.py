"""Turns jobs in qstat's listing into Observations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import attrs

from jpsi.plugin import JobState, Observation, Reason

from ..native_ids import is_element
from ..states import ENDED, STATES
from .exit_status import End
from .listing import Listed

_QUEUED = JobState.QUEUED

# src/include/job.h of OpenPBS 23.06.06: JOB_SUBSTATE_FINISHED
_FINISHED = 92
# The array's attributes that also hold for an element that qstat lists with them
_OF_ELEMENTS = ("job_state", "ctime", "qtime", "Hold_Types", "depend")
# PBS's comment on a job that it could not start
_GIVEN_UP = "too many failed attempts to run"


def has_left(job: Listed) -> bool:
    """Return True if the job has ended with unknown result: on another server, or as a forgotten element."""
    word = job.text("job_state")
    return (word == "M" and job.number("substate") == _FINISHED) or (word in ENDED and _is_of_array(job))


def _is_of_array(job: Listed) -> bool:
    """Return True if the job is an array element whose attributes, except the state, are its array's.

    Such an element is pending, or it has ended: deleted before it started, or forgotten since.
    """
    return is_element(job.native_id) and not job.text("array_index")


def observe_jobs(
    named: Iterable[tuple[Listed, Iterable[str]]], system: str, end_of: Callable[[Listed], End | None]
) -> dict[str, Observation]:
    """Return the Observations of listed jobs by the queried ids.

    Jobs for which `has_left` is true are left out. Pending elements of one array share one Observation.

    Args:
        named: each listed job with the ids by which it was queried.
        system: the prefix of the names of details.
        end_of: derives the end of a finished job; returns None if the listing does not say.
    """
    found: dict[str, Observation] = {}
    alike: dict[tuple[str, str], Observation] = {}
    for job, names in named:
        if has_left(job) or not names:
            continue
        if not _is_of_array(job):
            found.update(dict.fromkeys(names, observation(job, system, end_of)))
            continue
        key = job.native_id.partition("[")[0], job.text("job_state")
        if key not in alike:
            own = {name: job.attributes[name] for name in _OF_ELEMENTS if name in job.attributes}
            alike[key] = observation(attrs.evolve(job, attributes=own), system, end_of)
        found.update(dict.fromkeys(names, alike[key]))
    return found


def observation(job: Listed, system: str, end_of: Callable[[Listed], End | None]) -> Observation:
    """Return the Observation of a listed job, with its tag and time of submission.

    Args:
        job: the listed job.
        system: the prefix of the names of details.
        end_of: derives the end of a finished job; returns None if the listing does not say.
    """
    return attrs.evolve(_observation(job, system, end_of), tag=job.tag, submitted=job.submitted)


def _observation(job: Listed, system: str, end_of: Callable[[Listed], End | None]) -> Observation:
    word = job.text("job_state")
    details = _details(job, system)
    end = end_of(job) if word in ENDED else None
    if end is not None:
        return Observation(
            state=end.state,
            word=word,
            reason=end.reason,
            message=end.message,
            exit_code=end.exit_code,
            ran=end.ran,
            time=job.moment("obittime", "mtime"),
            restarts=_restarts(job, has_begun=True),
            nodes=job.nodes,
            details=details,
        )
    meaning = STATES.get(word)
    if meaning is None:
        return Observation(state=None, word=word, details=details)
    is_queued = meaning.state is _QUEUED
    restarts = _restarts(job, has_begun=not is_queued)
    return Observation(
        state=meaning.state,
        word=word,
        reason=_waiting_reason(job, restarts) if is_queued else None,
        message=(_waiting_message(job) if is_queued else None) or meaning.message,
        time=job.moment("qtime") if is_queued else job.moment("stime"),
        restarts=restarts,
        nodes=() if is_queued else job.nodes,
        details=details,
    )


def _details(job: Listed, system: str) -> dict[str, Any]:
    names = {"state": "job_state", "substate": "substate", "exit_status": "Exit_status", "comment": "comment"}
    return {f"{system}.{name}": job.text(key) for name, key in names.items() if job.text(key)}


def _restarts(job: Listed, *, has_begun: bool) -> int | None:
    """Return the number of requeues: one less than the number of starts once the current run has begun."""
    count = job.number("run_count")
    return None if count is None else max(0, count - has_begun)


def _waiting_message(job: Listed) -> str | None:
    if job.text("comment"):
        return job.text("comment").strip()
    return "the job waits for a job that it depends on" if _depends(job) else None


def _depends(job: Listed) -> bool:
    return job.text("Hold_Types") == "s" and job.text("depend").startswith("after")


def _waiting_reason(job: Listed, restarts: int | None) -> Reason | None:
    if _GIVEN_UP in job.text("comment"):
        return Reason.LAUNCH
    return Reason.REQUEUED if restarts else None
