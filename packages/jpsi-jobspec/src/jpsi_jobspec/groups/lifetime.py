"""Decides which tasks of a group run again after a restart of its job, and when they must end.

`group_run` uses it. Each start of the group's allocation begins a new life: entries that ended by themselves
do not run again; those that were ended by the end of the last allocation do. If tasks had cleaned up that
allocation, local tasks run again as well, since they had prepared it.

On this machine, no batch system ends what a killed group has left. The process that drives the run outside
ends these orphans.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import timedelta

from jpsi import JobExecutor, JobState

from ..planning import Kind
from ..run_store import Event, Journal, inner_journal
from ..running import cleans_up

#: Why a group run ends that the user does not cancel: its walltime is over, or it has lost the allocation.
TIMEOUT, INTERRUPTED = "timeout", "interrupted"
# How long before the end of the walltime tasks begin to clean up: a tenth of it, and no more than this.
_MAX_CLEANUP_TIME = timedelta(minutes=1)
_CLEANUP_FRACTION = 10


def begin_life(journal: Journal, life: str, *, is_wanted: bool) -> bool:
    """Begin a new life in the journal of a group run; return True if it had another life before.

    Args:
        journal: whose lock this process holds.
        life: an id of this start of the allocation's job, unlike that of any other.
        is_wanted: True if the group run is to go on; otherwise it stays ended.
    """
    last = journal.life
    if last == life:
        return False
    if is_wanted and journal.is_cancelled:
        journal.append(_restart_events(journal), is_synced=True)
        journal.withdraw_cancel()
    journal.record_life(life)
    return last is not None


def _restart_events(journal: Journal) -> list[Event]:
    """Return the events that let an ended group run go on."""
    parts = journal.all_parts()
    was_cleaned = any(it.job_id is not None and cleans_up(it.entry) for it in parts)
    again = [
        it
        for it in parts
        if it.state is JobState.CANCELED
        or (was_cleaned and it.entry.kind is Kind.LOCAL and it.state is not JobState.NEW)
    ]
    return [it.event(job=None, state=JobState.NEW.value) for it in again]


def time_to_run(duration: timedelta | None, used: timedelta) -> timedelta | None:
    """Return how long a group run may go on before it has to clean up; None if there is no limit.

    >>> time_to_run(timedelta(minutes=5), used=timedelta(seconds=30))
    datetime.timedelta(seconds=240)
    """
    if not duration:
        return None
    return max(timedelta(0), duration - min(_MAX_CLEANUP_TIME, duration / _CLEANUP_FRACTION) - used)


def watch_for_end(on_end: Callable[[str], None], remaining: timedelta | None) -> None:
    """Call `on_end` with the reason when the group run has to end; unblock signals from now on.

    Args:
        on_end: may be called several times, in the main thread and in others.
        remaining: for how long the group run may go on.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: on_end(INTERRUPTED))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, signal.SIGINT})
    threading.Thread(target=_wait_for_keeper, args=(on_end,), daemon=True).start()
    if remaining is not None:
        timer = threading.Timer(remaining.total_seconds(), on_end, (TIMEOUT,))
        timer.daemon = True
        timer.start()


def _wait_for_keeper(on_end: Callable[[str], None]) -> None:
    """Wait for the end of the keeper, which holds standard input open and writes nothing, then end."""
    while os.read(0, 1):
        pass
    on_end(INTERRUPTED)


_LOST = "its group ended before that was known"


def end_orphans(run: Journal, executor: JobExecutor) -> None:
    """End and clean up what a group has left on this machine; return when that is done.

    On other targets, the batch system ends all processes of a job on its nodes.
    """
    if executor.name != "local" or not executor.files.are_local:
        return
    for entry in run.plan.entries:
        if entry.kind is not Kind.ALLOCATION or not run.have_ended([entry.id]):
            continue
        inside = inner_journal(run.path, entry)
        life = inside.life
        if life is not None and not inside.is_over:
            inside.cancel(reason=INTERRUPTED)
            command = [sys.executable, "-m", "jpsi_jobspec.group_run", str(run.path), entry.id, life]
            # the process goes on for as long as its standard input is open
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:  # noqa: S603  ours
                process.wait()


def mark_lost(inside: Journal) -> None:
    """Mark entries of a group that has ended as ended, in this copy of its journal only."""
    for part in (it for it in inside.all_parts() if not it.state.final):
        if part.job_id is None:
            part.state, part.reason = JobState.CANCELED, INTERRUPTED
        else:
            part.state, part.reason, part.message = JobState.FAILED, "lost", _LOST
