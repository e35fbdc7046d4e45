"""Implements `jpsi cancel`, `jpsi hold` and `jpsi release`: passes them on to the batch systems of jobs.

`jpsi top` uses `cancel_jobs` as well. A job that cannot be controlled does not stop the command: the others
are done first, then the failures are reported.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence

import jpsi
from jpsi_engine import job_store
from jpsi_engine.job_store import ControlledJobs, Deferral, StoredJob

from .. import exit_codes, messages
from ..stored_jobs import (
    RecalledJobs,
    job_json,
    recall_jobs,
    report_failures,
    select_jobs,
    select_live_jobs,
    settle_submissions,
    start_waiting,
)

# How long to wait for the end of cancelled jobs: most end at once, and the user knows it then.
_TIMEOUT_SECONDS = 10.0


def cancel(*, jobs: Sequence[str], as_json: bool) -> int:
    """Cancel jobs, and return the exit code; jobs that have ended are skipped."""
    selected = select_jobs(jobs, job_store.jobs())
    recalled, failures = cancel_jobs(selected)
    cancelled = [job for job in recalled.jobs.values() if job.id not in failures]
    unfinished = jpsi.wait_all(cancelled, _TIMEOUT_SECONDS).count(None)
    if unfinished:
        hint = "jpsi ls --refresh shows when they have"
        messages.error(f"{unfinished} of {len(cancelled)} jobs were cancelled and have not ended yet; {hint}")
    report_failures(failures)
    if all(job.status.final for job in selected):
        whose = f"job {selected[0].id}" if len(selected) == 1 else f"each of these {len(selected)} jobs"
        messages.error(f"{whose} had already ended; there is nothing to cancel")
    # a deferred job is recalled by no executor: its end is on disk
    stored = {job.id: job for job in job_store.jobs()} if as_json else {}
    for job in (stored.get(it.id, it) for it in selected if as_json):
        messages.show_json(job_json.summary_json(job, recalled.best_status(job)), indent=None)
    return exit_codes.JPSI if failures else 0


def cancel_jobs(jobs: Iterable[StoredJob]) -> tuple[RecalledJobs, Mapping[str, jpsi.JpsiError]]:
    """Cancel jobs; return those that had not ended, and the errors by job id."""
    live, settled = settle_submissions(job for job in jobs if not job.status.final)
    deferred = job_store.cancel_deferred(_deferrals(live))
    unsent = job_store.cancel_unsent(job for job in live if job.is_unsent and job.deferral is None)
    failures = {**settled.failures, **deferred.failures, **unsent.failures}
    over = {*failures, *deferred.done, *unsent.done}
    recalled = recall_jobs(job for job in live if job.id not in over)
    return recalled, {**failures, **recalled.failures, **_cancel_by_executor(recalled.jobs.values())}


def _deferrals(jobs: Iterable[StoredJob]) -> dict[str, Deferral]:
    """Return the deferrals of those jobs that are deferred, by job id."""
    return {job.id: job.deferral for job in jobs if not job.status.final and job.deferral is not None}


def _cancel_by_executor(jobs: Iterable[jpsi.Job]) -> Mapping[str, jpsi.JpsiError]:
    """Cancel jobs through their executors; return the errors by job id."""
    by_executor: dict[jpsi.JobExecutor, list[jpsi.Job]] = {}
    for job in jobs:
        if job.executor is not None:
            by_executor.setdefault(job.executor, []).append(job)
    failures: dict[str, jpsi.JpsiError] = {}
    for executor, executor_jobs in by_executor.items():
        try:
            executor.cancel_many(executor_jobs)
        except jpsi.BulkException as e:
            failures |= {job.id: why for job, why in e.failed.items()}
    return failures


def hold(*, jobs: Sequence[str]) -> int:
    """Keep jobs from starting, and return the exit code."""
    return _control_each(jobs, "held", [_hold, _require_unstarted], job_store.hold_deferred)


def _hold(executor: jpsi.JobExecutor, job: jpsi.Job) -> None:
    try:
        executor.hold(job)
    except jpsi.JpsiError:
        # the batch system refuses a job that it has ended itself, which is recorded then
        with contextlib.suppress(jpsi.JpsiError):
            executor.info(job)
        if job.status.final:
            executor.hold(job)
        raise


def _require_unstarted(executor: jpsi.JobExecutor, job: jpsi.Job) -> None:
    """Raise if a job started before the request to hold it, which the batch system accepts nevertheless.

    The first call queries the batch system about all jobs.
    """
    try:
        info = executor.info(job)
    except jpsi.JpsiError:
        if job.status.final:
            raise
        return
    if info is not None and info.state is jpsi.JobState.ACTIVE:
        raise jpsi.SubmitException(f"job {job.id} ({job.native_id}) runs: it started before the hold")


def release(*, jobs: Sequence[str]) -> int:
    """Let held jobs start, and return the exit code."""
    return _control_each(jobs, "released", [_release], _release_deferred)


def _release(executor: jpsi.JobExecutor, job: jpsi.Job) -> None:
    info = executor.info(job)
    is_active = info is not None and info.state is jpsi.JobState.ACTIVE
    # some batch systems refuse to release a job that runs, and others accept it
    with contextlib.suppress(jpsi.SubmitException) if is_active else contextlib.nullcontext():
        executor.release(job)
    if is_active:
        messages.error(f"job {job.id} runs already; there is nothing to release")


def _release_deferred(jobs: Mapping[str, Deferral]) -> ControlledJobs:
    """Release deferred jobs, and have a process submit them; `jobs` has their deferrals by job id."""
    failures: dict[str, jpsi.JpsiError] = {}
    by_deferral: dict[Deferral, list[str]] = {}
    for job_id, deferral in jobs.items():
        by_deferral.setdefault(deferral, []).append(job_id)
    for deferral, job_ids in by_deferral.items():
        try:
            deferral.release(job_ids)
            start_waiting(deferral)
        except jpsi.JpsiError as e:
            failures |= dict.fromkeys(job_ids, e)
    return ControlledJobs(jobs.keys() - failures.keys(), failures)


def _control_each(
    words: Sequence[str],
    done: str,
    steps: Sequence[Callable[[jpsi.JobExecutor, jpsi.Job], None]],
    act_on_deferred: Callable[[Mapping[str, Deferral]], ControlledJobs],
) -> int:
    jobs, settled = settle_submissions(select_live_jobs(words, job_store.jobs()))
    failures = dict(settled.failures)
    failures |= {
        it.id: jpsi.SubmitException(f"it has ended: {it.status.state}") for it in jobs if it.status.final
    }
    deferred = act_on_deferred(_deferrals(jobs))
    failures |= deferred.failures
    # a deferred one may have been submitted meanwhile
    recalled = recall_jobs(job for job in jobs if job.id not in failures and job.id not in deferred.done)
    failures |= recalled.failures
    ended: dict[str, jpsi.JpsiError] = {}
    for step, followed in itertools.product(steps, recalled.jobs.values()):
        if followed.executor is None or followed.id in failures or followed.id in ended:
            continue
        try:
            step(followed.executor, followed)
        except jpsi.JpsiError as e:
            (ended if followed.status.final else failures)[followed.id] = e
    # those that end meanwhile count as if they had ended before, if there are others
    if not {job.id for job in jobs} - failures.keys() - ended.keys():
        failures |= ended
        ended = {}
    report_failures(failures)
    others = len({job.id for job in jobs} - failures.keys() - ended.keys())
    if failures and others:
        messages.error(f"{others} of the {len(jobs) - len(ended)} jobs were {done} all the same")
    return exit_codes.JPSI if failures else 0
