"""Follows jobs that may be submitted again, in a process that `jpsi submit` starts and that outlives it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Collection

import jpsi
from jpsi_engine import job_store

from .recall import recall_jobs

_PROGRAM = "from jpsi_cli.stored_jobs import follow_retries; follow_retries()"


def start_following(job_ids: Collection[str]) -> int:
    """Have a process follow jobs, and so submit them again, until they have ended; return its pid.

    Raises:
        SubmitException: it cannot be started.
    """
    try:
        process = subprocess.Popen(  # noqa: S603  no shell
            [sys.executable, "-P", "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        assert process.stdin is not None  # noqa: S101  a pipe
        with process.stdin as pipe:
            pipe.write("\n".join(job_ids))
    except OSError as e:
        msg = f"no process can be started that submits jobs again: {e}"
        raise jpsi.SubmitException(msg, e) from e
    return process.pid


def follow_retries() -> None:
    """Follow the jobs whose ids standard input has until they have ended."""
    wanted = set(sys.stdin.read().split())
    recalled = recall_jobs(it for it in job_store.jobs() if it.id in wanted)
    for job in recalled.jobs.values():
        job.wait()
