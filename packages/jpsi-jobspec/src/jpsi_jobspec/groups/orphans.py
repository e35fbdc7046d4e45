"""Ends what is left of a group whose job was killed as a whole."""

from __future__ import annotations

import subprocess
import sys

from jpsi import JobExecutor, JobState

from ..planning import Kind
from ..run_store import Journal, inner_journal
from .shutdown import INTERRUPTED

_LOST = "its group ended before that was known"


def end_orphans(run: Journal, executor: JobExecutor) -> None:
    """Have what a group has left on this machine be ended and cleaned up; returns when that is done.

    Elsewhere the batch system ends what is left on the nodes of a job.
    """
    if executor.name != "local" or not executor.files.are_here:
        return
    for entry in run.plan.entries:
        if entry.kind is not Kind.ALLOCATION or not run.have_ended([entry.id]):
            continue
        inside = inner_journal(run.path, entry)
        life = inside.life
        if life is not None and not inside.is_over:
            inside.cancel(why=INTERRUPTED)
            command = [sys.executable, "-m", "jpsi_jobspec.group_run", str(run.path), entry.id, life]
            # it goes on for as long as somebody holds the other end of its input
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:  # noqa: S603  ours
                process.wait()


def mark_lost(inside: Journal) -> None:
    """Take for ended, in this picture of it, what has not ended in a group that has."""
    for part in (it for parts in inside.parts.values() for it in parts if not it.state.final):
        if part.job_id is None:
            part.state, part.reason = JobState.CANCELED, INTERRUPTED
        else:
            part.state, part.reason, part.message = JobState.FAILED, "lost", _LOST
