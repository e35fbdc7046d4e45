"""Ends processes of a group that outlived the kill of its job.

The process that drives the run outside calls it. On this machine, no batch system ends what a killed group
has left.
"""

from __future__ import annotations

import subprocess
import sys

from jpsi import JobExecutor, JobState

from ..planning import Kind
from ..run_store import Journal, inner_journal
from .lifetime import INTERRUPTED

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
