"""Events of a journal: a mapping for each event. Pure."""

from __future__ import annotations

from typing import Any

import attrs

from jpsi import JobState, JobStatus, Reason

from ..planning import Entry

#: A JSON object.
Event = dict[str, Any]

#: The reason of an entry that was cancelled because a dependency failed.
DEPENDENCY_FAILED = "dependency_failed"
#: The reason of an entry that the user cancelled.
CANCELLED = "cancelled"
#: The reason of a service that was ended because nothing is left that needs it.
NO_LONGER_NEEDED = "no_longer_needed"
#: The reason of an entry that failed because services leave no room for it.
NO_ROOM = "room"
#: The same as a sentence.
HELD_BY_SERVICES = "services hold the resources that it needs"

#: Reasons of a job that ended with its allocation, not by itself.
LOST = {Reason.LOST, Reason.NODE_FAIL}


@attrs.frozen(slots=True)
class EntryReplica:
    """A replica of an entry; replicas count from 1."""

    entry: Entry
    replica: int


def replica_event(entry_replica: EntryReplica, **content: Any) -> Event:  # noqa: ANN401  what JSON has
    """Return an event of a replica."""
    return {"entry": entry_replica.entry.id, "replica": entry_replica.replica, **content}


def end_event(
    entry_replica: EntryReplica,
    state: JobState,
    *,
    exit_code: int | None = None,
    reason: str | None = None,
    message: str | None = None,
) -> Event:
    """Return the event that a replica has ended."""
    return replica_event(
        entry_replica, state=state.value, exit_code=exit_code, reason=reason, message=message
    )


def end_event_from_status(
    entry_replica: EntryReplica, status: JobStatus, why_cancelled: str | None = None
) -> Event:
    """Return the event that a replica has ended as its job did.

    Args:
        entry_replica: the replica.
        status: the last one of its job.
        why_cancelled: why the driver ended the job, if it did.
    """
    reason = None if status.reason is None else status.reason.value
    if status.reason is Reason.DEPENDENCY:
        reason = DEPENDENCY_FAILED
    elif status.state is JobState.CANCELED and why_cancelled is not None:
        reason = why_cancelled
    return end_event(
        entry_replica, status.state, exit_code=status.exit_code, reason=reason, message=status.message
    )
