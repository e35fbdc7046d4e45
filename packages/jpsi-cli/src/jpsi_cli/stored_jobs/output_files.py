"""Tells what a job has written from what stood in a file before: users name files that exist.

A job empties its files when it begins. One that waits, or that ended before it opened them, has left them as
they were.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import jpsi
from jpsi_engine.job_store import StoredJob

from ..output import failed_to_open

Stream = Literal["stdout", "stderr"]


def was_not_opened(job: StoredJob, stream: Stream) -> bool:
    """Return True if a job has not opened the file of a stream, which was there before.

    Args:
        job: the job; files on remote hosts are not looked at.
        stream: the stream, whose file the user may have named.
    """
    if named_path(job, stream) is None or (job.started is not None and not failed_to_open(job.status)):
        return False
    try:
        output = job.output(stream)
        # a job of a batch system may have begun, and nothing on disk says so yet
        return output.is_local and Path(output.path).stat().st_mtime < job.created.timestamp()
    except (OSError, jpsi.JpsiError):
        return False


def named_path(job: StoredJob, stream: Stream) -> Path | None:
    """Return the path that the user named for a stream; None if it is in the job's own folder."""
    return job.spec.stdout_path if stream == "stdout" else job.spec.stderr_path
