"""Follows jobs that may be submitted again, in a process that `jpsi submit` starts and that outlives it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Collection

import jpsi
from jpsi_engine import job_store

from .recall import recall_jobs

# The seconds between two attempts to recall jobs, which double up to the longest.
_PAUSE, _LONGEST_PAUSE = 1.0, 300.0
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


def follow_retries(sleep: Callable[[float], None] = time.sleep) -> None:
    """Follow the jobs whose ids standard input has until they have ended.

    A job that cannot be recalled now, as in an outage, is recalled again later.
    """
    wanted, pause = set(sys.stdin.read().split()), _PAUSE
    followed: dict[str, jpsi.Job] = {}
    left = [job for job in job_store.jobs() if job.id in wanted]
    while left:
        followed |= recall_jobs(left).jobs
        again = job_store.reread([job for job in left if job.id not in followed])
        left = [job for job in again if not (job.status.final or job.is_unsent or job.deferral or job.damage)]
        if left:
            sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
    for job in followed.values():
        job.wait()
