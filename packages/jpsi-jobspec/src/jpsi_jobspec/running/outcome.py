"""Decides how a job, a run or a group has ended, and which exit code reports it.

The driver records by it why each job ended; commands exit with its codes.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable

from jpsi import JobState, JobStatus, Reason

from ..document import When
from ..planning import Entry, Kind
from ..run_store import (
    CANCELLED,
    CONSEQUENCES,
    HELD_BY_SERVICES,
    LOST,
    NO_ROOM,
    Event,
    Journal,
    Part,
    inner_journal,
)

#: The exit codes of the commands, as everywhere in `jpsi`.
EXIT_DONE, EXIT_FAILED, EXIT_USAGE, EXIT_TIMEOUT, EXIT_JPSI, EXIT_CANCELLED = 0, 1, 2, 124, 125, 130
_LARGEST_CODE = 255
# What these codes of a command mean is not what a task means by them.
_RESERVED_CODES = {EXIT_USAGE, EXIT_TIMEOUT, EXIT_JPSI, EXIT_CANCELLED}
_TERMINATED = 128 + signal.SIGTERM


def end_event_for_job(
    part: Part, status: JobStatus, journal: Journal, why_ended: str | None, *, is_group_run: bool
) -> Event:
    """Return the event for a job that has ended: its last status, unless this run knows a better reason.

    Args:
        part: the replica that the job runs.
        status: the last one of the job.
        journal: of the run.
        why_ended: why the driver ended the job, if it did.
        is_group_run: True if the run is that of a group, inside its allocation.
    """
    code = status.exit_code
    # the signal that ends an allocation may reach the tasks inside before the driver cancels them
    was_interrupted = code == _TERMINATED or status.reason in LOST
    if is_group_run and was_interrupted and journal.is_cancelled and not cleans_up(part.entry):
        return part.end_event(JobState.CANCELED, journal.cancel_reason, exit_code=code)
    if part.entry.kind is Kind.ALLOCATION and code == EXIT_CANCELLED:
        inside = inner_journal(journal.path, part.entry)
        if not inside.is_cancelled and exit_code_of(inside.all_parts()) == EXIT_CANCELLED:
            message = "some of its tasks were cancelled"
            return part.end_event(JobState.CANCELED, CANCELLED, message, code)
    if why_ended == NO_ROOM and status.state is JobState.CANCELED:
        return part.end_event(JobState.FAILED, NO_ROOM, HELD_BY_SERVICES)
    return part.end_event_from_status(status, why_ended)


def cleans_up(entry: Entry) -> bool:
    """Return True if an entry runs whatever the outcome of the rest."""
    return entry.kind is Kind.LOCAL and entry.when is When.ALWAYS


def exit_code_of(parts: Iterable[Part]) -> int:
    """Return the exit code of a run that is over: that of the first task that has failed.

    It is `EXIT_FAILED` if the code of that task has a meaning for the command.
    """
    ended = list(parts)
    failed = next((it for it in ended if it.state is JobState.FAILED), None)
    if failed is None:
        causes = {it.reason for it in ended if it.state is JobState.CANCELED} - CONSEQUENCES
        return EXIT_CANCELLED if causes else EXIT_DONE
    if failed.reason == Reason.TIMEOUT.value:
        return EXIT_TIMEOUT
    # what has failed must not look like a success
    code = failed.exit_code
    # an allocation has the exit code of the run inside of it
    if code in _RESERVED_CODES and failed.entry.kind is not Kind.ALLOCATION:
        return EXIT_FAILED
    return code if code is not None and 0 < code <= _LARGEST_CODE else EXIT_JPSI
