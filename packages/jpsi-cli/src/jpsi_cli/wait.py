"""`jpsi wait`: stays until jobs have ended."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

import jpsi
from jpsi import spooled
from jpsi.spooled import SpooledJob

from . import codes, explain, job_json, messages
from .fence import fenced
from .picking import picked
from .recalling import recalled


def wait(words: Sequence[str], *, limit: timedelta | None, as_json: bool) -> int:
    """Wait for jobs and return the exit code that tells of their ends."""

    def command() -> int:
        jobs = picked(words, spooled.jobs())
        live = recalled(job for job in jobs if not job.status.final)
        live.tell_failures()
        jpsi.wait_all(live.jobs.values(), limit, progress=os.isatty(messages.STDERR) and bool(live.jobs))
        ends = {job.id: live.best(job) for job in jobs}
        _tell([job for job in jobs if as_json or job.id not in live.failures], ends, as_json=as_json)
        if live.failures:
            return codes.JPSI
        return _code(ends.values()) if all(it.final for it in ends.values()) else codes.TIMEOUT

    return fenced(command)


def _code(ends: Iterable[jpsi.JobStatus]) -> int:
    """The code of the first job that did not end well."""
    return next(filter(None, map(codes.of, ends)), 0)


def _tell(jobs: Sequence[SpooledJob], ends: Mapping[str, jpsi.JobStatus], *, as_json: bool) -> None:
    for job in jobs:
        status = ends[job.id]
        if as_json:
            messages.show(json.dumps(job_json.listed(job, status), default=str) + "\n")
        elif not status.final:
            messages.error(f"job {job.id} has not ended: it is {status.state}")
        elif status.state is not jpsi.JobState.COMPLETED and (
            len(jobs) > 1 or status.reason is not jpsi.Reason.EXIT_CODE
        ):
            # the exit code of one job says it already
            messages.error(f"job {job.id}: {explain.sentence(status)}")
