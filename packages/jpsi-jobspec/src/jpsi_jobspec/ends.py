"""What is written down of the end of a job: as it has ended, unless what this run did tells more of it."""

from __future__ import annotations

import signal

from jpsi import JobState, JobStatus

from . import telling
from .events import CANCELLED, LOST, NO_ROOM, SERVICES_HAVE_IT, Event, Place, ended, told_by
from .exit_codes import code
from .journal import Journal, inner
from .model import When
from .planned import Entry, Kind

_TERMINATED = 128 + signal.SIGTERM


def end_of(
    place: Place, status: JobStatus, journal: Journal, why_ended: str | None, *, is_inside: bool
) -> Event:
    """What is to be written down.

    Args:
        place: what the job stands for.
        status: the last one of the job.
        journal: of the run.
        why_ended: why the job was told to end, if it was.
        is_inside: whether the run is the inside of an allocation.
    """
    # what ends an allocation may signal what runs inside before that is ended from here
    is_cut = status.exit_code == _TERMINATED or status.reason in LOST
    if is_inside and is_cut and journal.is_cancelled and not cleans_up(place.entry):
        return ended(place, JobState.CANCELED, exit_code=status.exit_code, reason=journal.why)
    if place.entry.kind is Kind.ALLOCATION and status.exit_code == telling.CANCELLED:
        inside = inner(journal.path, place.entry)
        if not inside.is_cancelled and code(inside.every_part()) == telling.CANCELLED:
            message = "some of its tasks were cancelled"
            return ended(
                place, JobState.CANCELED, exit_code=status.exit_code, reason=CANCELLED, message=message
            )
    if why_ended == NO_ROOM and status.state is JobState.CANCELED:
        return ended(place, JobState.FAILED, reason=NO_ROOM, message=SERVICES_HAVE_IT)
    return told_by(place, status, why_ended)


def cleans_up(entry: Entry) -> bool:
    """Whether it is run whatever becomes of the rest."""
    return entry.kind is Kind.LOCAL and entry.when is When.ALWAYS
