"""The outcome of a job for the journal: its last status, unless this run knows a better reason."""

from __future__ import annotations

import signal

from jpsi import JobState, JobStatus

from ..document import When
from ..planning import Entry, Kind
from ..run_store import (
    CANCELLED,
    LOST,
    NO_ROOM,
    SERVICES_HAVE_IT,
    Event,
    Journal,
    Place,
    end_event,
    end_event_of,
    inner_journal,
)
from .exit_codes import EXIT_CANCELLED, exit_code_of

_TERMINATED = 128 + signal.SIGTERM


def end_of(
    place: Place, status: JobStatus, journal: Journal, why_ended: str | None, *, is_inside: bool
) -> Event:
    """Return the event to journal for a job that has ended.

    Args:
        place: the replica that the job runs.
        status: the last one of the job.
        journal: of the run.
        why_ended: why the driver ended the job, if it did.
        is_inside: True if the run is the inside of an allocation.
    """
    # the signal that ends an allocation may reach the tasks inside before the driver cancels them
    is_cut = status.exit_code == _TERMINATED or status.reason in LOST
    if is_inside and is_cut and journal.is_cancelled and not cleans_up(place.entry):
        return end_event(place, JobState.CANCELED, exit_code=status.exit_code, reason=journal.why)
    if place.entry.kind is Kind.ALLOCATION and status.exit_code == EXIT_CANCELLED:
        inside = inner_journal(journal.path, place.entry)
        if not inside.is_cancelled and exit_code_of(inside.every_part()) == EXIT_CANCELLED:
            message = "some of its tasks were cancelled"
            return end_event(
                place, JobState.CANCELED, exit_code=status.exit_code, reason=CANCELLED, message=message
            )
    if why_ended == NO_ROOM and status.state is JobState.CANCELED:
        return end_event(place, JobState.FAILED, reason=NO_ROOM, message=SERVICES_HAVE_IT)
    return end_event_of(place, status, why_ended)


def cleans_up(entry: Entry) -> bool:
    """Return True if an entry runs whatever the outcome of the rest."""
    return entry.kind is Kind.LOCAL and entry.when is When.ALWAYS
