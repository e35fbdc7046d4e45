"""`jpsi wait`: waits until jobs have ended."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

import jpsi
from jpsi_engine import job_store
from jpsi_engine.job_store import StoredJob

from .. import exit_codes, messages
from ..error_boundary import run_reporting_errors
from ..output import describe_end
from . import job_json
from .lookup import recall_jobs
from .selection import select_jobs


def wait(words: Sequence[str], *, timeout: timedelta | None, as_json: bool) -> int:
    """Wait for jobs, and return the exit code for their ends."""

    def command() -> int:
        jobs = select_jobs(words, job_store.jobs())
        recalled = recall_jobs(job for job in jobs if not job.status.final)
        recalled.report_failures()
        jpsi.wait_all(
            recalled.jobs.values(), timeout, progress=os.isatty(messages.STDERR) and bool(recalled.jobs)
        )
        ends = {job.id: recalled.best_status(job) for job in jobs}
        _report_ends(
            [job for job in jobs if as_json or job.id not in recalled.failures], ends, as_json=as_json
        )
        if recalled.failures:
            return exit_codes.JPSI
        return _exit_code(ends.values()) if all(it.final for it in ends.values()) else exit_codes.TIMEOUT

    return run_reporting_errors(command)


def _exit_code(ends: Iterable[jpsi.JobStatus]) -> int:
    """Return the exit code of the first job that did not complete."""
    return next(filter(None, map(exit_codes.for_status, ends)), 0)


def _report_ends(jobs: Sequence[StoredJob], ends: Mapping[str, jpsi.JobStatus], *, as_json: bool) -> None:
    for job in jobs:
        status = ends[job.id]
        if as_json:
            messages.show(json.dumps(job_json.summary_json(job, status), default=str) + "\n")
        elif not status.final:
            messages.error(f"job {job.id} has not ended: it is {status.state}")
        elif status.state is not jpsi.JobState.COMPLETED and (
            len(jobs) > 1 or status.reason is not jpsi.Reason.EXIT_CODE
        ):
            # for a single job, the exit code says it already
            messages.error(f"job {job.id}: {describe_end(status)}")
