"""Waits for jobs on disk to end, reports how they ended, and returns an exit code for that."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence

import jpsi
from jpsi_engine import job_store
from jpsi_engine.job_store import StoredJob

from .. import exit_codes, messages
from ..output import describe_end
from . import job_json
from .deferred import await_submission
from .recall import recall_jobs, report_failures
from .selection import job_with_index


def wait_for_ends(jobs: Sequence[StoredJob], deadline: float | None, *, as_json: bool) -> int:
    """Wait for jobs, and return the exit code for their ends.

    Args:
        jobs: the jobs.
        deadline: when to stop waiting, in seconds of the monotonic clock; None is never.
        as_json: True to write each job as JSON to standard output.
    """
    awaited = await_submission(jobs, deadline)
    jobs, left_out = awaited.jobs, {*awaited.deferred_ids, *awaited.failures}
    recalled = recall_jobs(job for job in jobs if not job.status.final and job.id not in left_out)
    failures = {**awaited.failures, **recalled.failures}
    report_failures(failures)
    has_bar = os.isatty(messages.STDERR) and bool(recalled.jobs)
    seconds_left = None if deadline is None else max(0.0, deadline - time.monotonic())
    jpsi.wait_all(recalled.jobs.values(), seconds_left, progress=has_bar)
    ends = {job.id: recalled.best_status(job) for job in jobs}
    reported = [job for job in jobs if as_json or job.id not in failures]
    # they may have another native id by now
    resubmitted = [it for it in reported if it.id in recalled.jobs and it.spec.attributes.retry]
    reread = {job.id: job for job in job_store.reread(resubmitted)}
    _report_ends([reread.get(it.id, it) for it in reported], ends, as_json=as_json)
    if failures:
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
            messages.error(f"{job_with_index(job)} has not ended: it is {status.state}")
        elif status.state is not jpsi.JobState.COMPLETED:
            messages.error(f"{job_with_index(job)}: {describe_end(status)}")
