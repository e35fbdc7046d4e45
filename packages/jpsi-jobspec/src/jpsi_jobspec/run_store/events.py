"""Events of a journal: a mapping for each thing that happened. Pure."""

from __future__ import annotations

from typing import Any

import attrs

from jpsi import JobState, JobStatus, Reason

from ..planning import Entry

#: As JSON has it.
Event = dict[str, Any]

#: Why something was cancelled that waited for what has failed.
DEPENDENCY_FAILED = "dependency_failed"
#: Why something was cancelled that somebody wanted to end.
CANCELLED = "cancelled"
#: Why a service has ended: nothing is left that it could serve.
NO_LONGER_NEEDED = "no_longer_needed"
#: Why something has failed for which services leave no room.
NO_ROOM = "room"
#: The same as a sentence.
SERVICES_HAVE_IT = "services have it"

#: How a job ends with the allocation that it ran in, and not by itself.
LOST = {Reason.LOST, Reason.NODE_FAIL}


@attrs.frozen(slots=True)
class Place:
    """One replica of an entry; they count from 1."""

    entry: Entry
    replica: int


def replica_event(place: Place, **content: Any) -> Event:  # noqa: ANN401  what JSON has
    """Something that happened to a replica."""
    return {"entry": place.entry.id, "replica": place.replica, **content}


def end_event(
    place: Place,
    state: JobState,
    *,
    exit_code: int | None = None,
    reason: str | None = None,
    message: str | None = None,
) -> Event:
    """A replica has ended."""
    return replica_event(place, state=state.value, exit_code=exit_code, reason=reason, message=message)


def end_event_of(place: Place, status: JobStatus, why_cancelled: str | None = None) -> Event:
    """A replica has ended as its job did.

    Args:
        place: which one.
        status: the last one of its job.
        why_cancelled: why the job was told to end, if it was.
    """
    reason = None if status.reason is None else status.reason.value
    if status.reason is Reason.DEPENDENCY:
        reason = DEPENDENCY_FAILED
    elif status.state is JobState.CANCELED and why_cancelled is not None:
        reason = why_cancelled
    return end_event(place, status.state, exit_code=status.exit_code, reason=reason, message=status.message)
