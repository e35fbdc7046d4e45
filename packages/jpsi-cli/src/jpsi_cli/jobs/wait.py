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
from ..error_boundary import fenced
from ..output import describe_end
from . import job_json
from .lookup import recalled
from .selection import picked


def wait(words: Sequence[str], *, limit: timedelta | None, as_json: bool) -> int:
    """Wait for jobs, and return the exit code for their ends."""

    def command() -> int:
        jobs = picked(words, job_store.jobs())
        live = recalled(job for job in jobs if not job.status.final)
        live.tell_failures()
        jpsi.wait_all(live.jobs.values(), limit, progress=os.isatty(messages.STDERR) and bool(live.jobs))
        ends = {job.id: live.best(job) for job in jobs}
        _tell([job for job in jobs if as_json or job.id not in live.failures], ends, as_json=as_json)
        if live.failures:
            return exit_codes.JPSI
        return _code(ends.values()) if all(it.final for it in ends.values()) else exit_codes.TIMEOUT

    return fenced(command)


def _code(ends: Iterable[jpsi.JobStatus]) -> int:
    """Return the exit code of the first job that did not complete."""
    return next(filter(None, map(exit_codes.of, ends)), 0)


def _tell(jobs: Sequence[StoredJob], ends: Mapping[str, jpsi.JobStatus], *, as_json: bool) -> None:
    for job in jobs:
        status = ends[job.id]
        if as_json:
            messages.show(json.dumps(job_json.listed(job, status), default=str) + "\n")
        elif not status.final:
            messages.error(f"job {job.id} has not ended: it is {status.state}")
        elif status.state is not jpsi.JobState.COMPLETED and (
            len(jobs) > 1 or status.reason is not jpsi.Reason.EXIT_CODE
        ):
            # for a single job, the exit code says it already
            messages.error(f"job {job.id}: {describe_end(status)}")
