"""Implements `jpsi wait`: waits until jobs have ended, and exits with an exit code for their ends."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import jpsi
from jpsi_engine import job_store
from jpsi_engine.job_store import StoredJob

from .. import exit_codes, messages
from ..output import describe_end, quantities
from . import job_json
from .lookup import recall_jobs
from .selection import select_jobs


def wait(*, jobs: Sequence[str], timeout: str | None, as_json: bool) -> int:
    """Wait for jobs, and return the exit code for their ends."""
    limit = None if timeout is None else quantities.parse_duration_option(timeout, "--timeout")
    selected = select_jobs(jobs, job_store.jobs())
    recalled = recall_jobs(job for job in selected if not job.status.final)
    recalled.report_failures()
    has_bar = os.isatty(messages.STDERR) and bool(recalled.jobs)
    jpsi.wait_all(recalled.jobs.values(), limit, progress=has_bar)
    ends = {job.id: recalled.best_status(job) for job in selected}
    reported = [job for job in selected if as_json or job.id not in recalled.failures]
    _report_ends(reported, ends, as_json=as_json)
    if recalled.failures:
        return exit_codes.JPSI
    if not all(it.final for it in ends.values()):
        return exit_codes.TIMEOUT
    # of the first job that did not complete
    return next(filter(None, map(exit_codes.for_status, ends.values())), 0)


def _report_ends(jobs: Sequence[StoredJob], ends: Mapping[str, jpsi.JobStatus], *, as_json: bool) -> None:
    for job in jobs:
        status = ends[job.id]
        if as_json:
            messages.show_json(job_json.summary_json(job, status), indent=None)
        elif not status.final:
            messages.error(f"job {job.id} has not ended: it is {status.state}")
        elif status.state is not jpsi.JobState.COMPLETED:
            messages.error(f"job {job.id}: {describe_end(status)}")
