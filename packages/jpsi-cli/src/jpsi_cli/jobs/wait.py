"""Implements `jpsi wait`: waits until jobs have ended, and exits with an exit code for their ends."""

from __future__ import annotations

import time
from collections.abc import Sequence

from jpsi_engine import job_store

from ..output import quantities
from ..stored_jobs import select_jobs, wait_for_ends


def wait(*, jobs: Sequence[str], timeout: str | None, as_json: bool) -> int:
    """Wait for jobs, and return the exit code for their ends."""
    limit = None if timeout is None else quantities.parse_duration_option(timeout, "--timeout")
    deadline = None if limit is None else time.monotonic() + limit.total_seconds()
    return wait_for_ends(jobs, select_jobs(jobs, job_store.jobs()), deadline, as_json=as_json)
