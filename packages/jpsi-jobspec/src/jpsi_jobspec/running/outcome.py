"""The outcome of a job for the journal: its last status, unless this run knows a better reason."""

from __future__ import annotations

import signal

from jpsi import JobState, JobStatus

from ..document import When
from ..planning import Entry, Kind
from ..run_store import (
    CANCELLED,
    HELD_BY_SERVICES,
    LOST,
    NO_ROOM,
    EntryReplica,
    Event,
    Journal,
    end_event,
    end_event_from_status,
    inner_journal,
)
from .exit_codes import EXIT_CANCELLED, exit_code_of

_TERMINATED = 128 + signal.SIGTERM


def end_event_for_job(
    entry_replica: EntryReplica,
    status: JobStatus,
    journal: Journal,
    why_ended: str | None,
    *,
    is_inside: bool,
) -> Event:
    """Return the event to journal for a job that has ended.

    Args:
        entry_replica: the replica that the job runs.
        status: the last one of the job.
        journal: of the run.
        why_ended: why the driver ended the job, if it did.
        is_inside: True if the run is the inside of an allocation.
    """
    # the signal that ends an allocation may reach the tasks inside before the driver cancels them
    was_interrupted = status.exit_code == _TERMINATED or status.reason in LOST
    if is_inside and was_interrupted and journal.is_cancelled and not cleans_up(entry_replica.entry):
        return end_event(
            entry_replica, JobState.CANCELED, exit_code=status.exit_code, reason=journal.cancel_reason
        )
    if entry_replica.entry.kind is Kind.ALLOCATION and status.exit_code == EXIT_CANCELLED:
        inside = inner_journal(journal.path, entry_replica.entry)
        if not inside.is_cancelled and exit_code_of(inside.all_parts()) == EXIT_CANCELLED:
            message = "some of its tasks were cancelled"
            return end_event(
                entry_replica,
                JobState.CANCELED,
                exit_code=status.exit_code,
                reason=CANCELLED,
                message=message,
            )
    if why_ended == NO_ROOM and status.state is JobState.CANCELED:
        return end_event(entry_replica, JobState.FAILED, reason=NO_ROOM, message=HELD_BY_SERVICES)
    return end_event_from_status(entry_replica, status, why_ended)


def cleans_up(entry: Entry) -> bool:
    """Return True if an entry runs whatever the outcome of the rest."""
    return entry.kind is Kind.LOCAL and entry.when is When.ALWAYS
