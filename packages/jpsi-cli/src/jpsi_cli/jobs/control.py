"""`jpsi cancel`, `hold` and `release`: control jobs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence

import jpsi
from jpsi_engine import job_store
from jpsi_engine.job_store import StoredJob

from .. import exit_codes, messages
from ..error_boundary import fenced
from . import job_json
from .lookup import Recalled, recalled, tell_each
from .selection import picked

# How long to wait for the end of cancelled jobs: most end at once, and the user knows it then.
_PATIENCE_SECONDS = 10.0


def cancel(words: Sequence[str], *, as_json: bool) -> int:
    """Cancel jobs, and return the exit code; jobs that have ended are skipped."""

    def command() -> int:
        jobs = picked(words, job_store.jobs())
        live, failures = told_to_end(jobs)
        told = [job for job in live.jobs.values() if job.id not in failures]
        late = jpsi.wait_all(told, _PATIENCE_SECONDS).count(None)
        if late:
            messages.error(f"{late} of {len(told)} jobs were told to end, and have not yet")
        tell_each(failures)
        for job in jobs if as_json else ():
            messages.show(json.dumps(job_json.listed(job, live.best(job)), default=str) + "\n")
        return exit_codes.JPSI if failures else 0

    return fenced(command)


def told_to_end(jobs: Iterable[StoredJob]) -> tuple[Recalled, Mapping[str, jpsi.JpsiError]]:
    """Cancel jobs; return those that had not ended, and the errors by job id."""
    live = recalled(job for job in jobs if not job.status.final)
    return live, {**live.failures, **_cancelled(live.jobs.values())}


def _cancelled(jobs: Iterable[jpsi.Job]) -> Mapping[str, jpsi.JpsiError]:
    """Cancel jobs through their executors; return the errors by job id."""
    by_executor: dict[jpsi.JobExecutor, list[jpsi.Job]] = {}
    for job in jobs:
        if job.executor is not None:
            by_executor.setdefault(job.executor, []).append(job)
    failures: dict[str, jpsi.JpsiError] = {}
    for executor, theirs in by_executor.items():
        try:
            executor.cancel_many(theirs)
        except jpsi.BulkException as e:
            failures |= {job.id: why for job, why in e.failed.items()}
    return failures


def hold(words: Sequence[str]) -> int:
    """Keep jobs from starting, and return the exit code."""
    return _each(words, lambda executor, job: executor.hold(job))


def release(words: Sequence[str]) -> int:
    """Let held jobs start, and return the exit code."""
    return _each(words, lambda executor, job: executor.release(job))


def _each(words: Sequence[str], act: Callable[[jpsi.JobExecutor, jpsi.Job], None]) -> int:
    def command() -> int:
        failures: dict[str, jpsi.JpsiError] = {}
        jobs = picked(words, job_store.jobs())
        for job in jobs:
            if job.status.final:
                failures[job.id] = jpsi.SubmitException(f"it has ended: {job.status.state}")
        live = recalled(job for job in jobs if job.id not in failures)
        failures |= live.failures
        for followed in live.jobs.values():
            try:
                if followed.executor is not None:
                    act(followed.executor, followed)
            except jpsi.JpsiError as e:
                failures[followed.id] = e
        tell_each(failures)
        return exit_codes.JPSI if failures else 0

    return fenced(command)
