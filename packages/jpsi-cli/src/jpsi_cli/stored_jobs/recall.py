"""Recalls jobs on disk through their executors, so that commands can wait for them or control them.

`jpsi wait`, `cancel`, `hold`, `logs`, `explain` and the option `--refresh` use it, often in another process
than the one that submitted the jobs. A job that cannot be recalled does not stop the others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import attrs

import jpsi
from jpsi_engine import job_store
from jpsi_engine.job_store import StoredJob

from .. import messages

# The longest time to find out how a job ended whose local process no longer exists.
_EXITED_PROCESS_SECONDS = 5.0


@attrs.frozen
class RecalledJobs:
    """The recalled jobs, which this process follows, and the errors of the others, both by job id."""

    jobs: Mapping[str, jpsi.Job]
    failures: Mapping[str, jpsi.JpsiError]

    def best_status(self, job: StoredJob) -> jpsi.JobStatus:
        """Return the best known status of a job."""
        return best_status(job, self.jobs[job.id].status if job.id in self.jobs else None)

    def await_exited_processes(self, jobs: Iterable[StoredJob]) -> None:
        """Wait briefly for jobs whose local process no longer exists: jpsi soon finds out how they ended."""
        for job in jobs:
            if job.origin.machine is not None and job.remark is not None and job.id in self.jobs:
                self.jobs[job.id].wait(_EXITED_PROCESS_SECONDS)

    def report_failures(self) -> None:
        """Report why jobs could not be recalled, each reason once."""
        report_failures(self.failures)


def listed_jobs() -> list[StoredJob]:
    """Return all jobs on disk without the probe jobs of `jpsi doctor`, which no user has submitted."""
    return [job for job in job_store.jobs() if messages.PROBE_MARK not in job.user_attributes]


def recall_jobs(jobs: Iterable[StoredJob]) -> RecalledJobs:
    """Recall jobs and follow them, but no other jobs of their executors."""
    found: dict[str, jpsi.Job] = {}
    failures: dict[str, jpsi.JpsiError] = {}
    recallable = []
    for job in jobs:
        if job.damage and job.spec.executable is None:
            # without its spec, no executor can recall the job
            failures[job.id] = jpsi.SubmitException(f"job {job.id} is {job.remark}")
        else:
            recallable.append(job)
    for origin, origin_jobs in job_store.by_origin(recallable).items():
        ids = [job.id for job in origin_jobs]
        try:
            found |= {job.id: job for job in origin.open().recall(ids)}
        except jpsi.JpsiError as e:
            failures |= {job.id: _recall_error(job, e) for job in origin_jobs}
            continue
        missing = jpsi.SubmitException(
            f"{origin.name} does not find it: another process is submitting it, or {origin.path} is "
            "no longer configured"
        )
        failures |= {job_id: missing for job_id in ids if job_id not in found}
    failures |= _unsubmitted_errors(
        [job for job in recallable if job.id in found and found[job.id].native_id is None]
    )
    return RecalledJobs({job.id: job for job in found.values() if job.id not in failures}, failures)


def _recall_error(job: StoredJob, error: jpsi.JpsiError) -> jpsi.JpsiError:
    """Return the error of a job whose executor could not be queried now."""
    if job.status.state is not jpsi.JobState.NEW or job.is_unsent:
        return error
    return jpsi.SubmitException(f"{job.remark}; and jpsi cannot find that out now: {error}", error)


def _unsubmitted_errors(jobs: Collection[StoredJob]) -> dict[str, jpsi.JpsiError]:
    """Return why jobs were not submitted, and so cannot be followed; the recall may have found that out."""
    remarks = {job.id: job.remark for job in job_store.reread(jobs) if job.is_unsent}
    return {it.id: jpsi.SubmitException(remarks.get(it.id) or "it was not submitted") for it in jobs}


def refresh_statuses(jobs: Collection[StoredJob]) -> Mapping[str, jpsi.JobStatus]:
    """Return the statuses, by id, of jobs that had not ended; query each batch system once for all.

    Jobs that wait for their next attempt are left out, as this process would submit them.
    """
    recalled = recall_jobs(job for job in jobs if not job.status.final and not job.awaits_retry)
    recalled.report_failures()
    names = {job.id: job.origin.name for job in jobs}
    queried: set[jpsi.JobExecutor] = set()
    for job in recalled.jobs.values():
        executor = job.executor
        if executor is None or executor in queried or job.status.final:
            continue
        try:
            is_answered = executor.info(job) is not None
        except jpsi.JpsiError as e:
            # one that has ended meanwhile says nothing about the others
            is_answered = not job.status.final
            if is_answered:
                messages.warning(f"{names[job.id]}: {e}")
        if is_answered:
            queried.add(executor)
    recalled.await_exited_processes(jobs)
    return {job_id: job.status for job_id, job in recalled.jobs.items()}


def settle_ends(jobs: Sequence[StoredJob]) -> Sequence[StoredJob]:
    """Return these jobs, once the batch systems were asked how those ended that have left no exit code."""
    unclear = [job for job in jobs if not job.status.final and job.deferral is None and not job.is_unsent]
    if not unclear:
        return jobs
    refresh_statuses(unclear)
    settled = {job.id: job for job in job_store.reread(unclear)}
    return [settled.get(job.id, job) for job in jobs]


def recover_remote_jobs(name: str) -> None:
    """Recover the jobs that other hosts have submitted to a remote target, so that they are on disk."""
    try:
        with jpsi.JobExecutor(name) as executor:
            if executor.system.is_remote:
                executor.recover()
    except jpsi.JpsiError as e:
        messages.warning(f"{name}: {e}")


def best_status(job: StoredJob, reported: jpsi.JobStatus | None) -> jpsi.JobStatus:
    """Return the best known status of a job: that on disk, unless `reported` is further or says more."""
    stored = job.status
    if reported is None or stored.final:
        return stored
    if reported.state is not stored.state:
        return reported
    if not reported.message:
        return stored
    return attrs.evolve(stored, message=reported.message, metadata={**stored.metadata, **reported.metadata})


def report_failures(failures: Mapping[str, jpsi.JpsiError]) -> None:
    """Report why something was not done for jobs, each reason once, with the jobs that it applies to."""
    reasons: dict[str, list[str]] = {}
    for job_id, error in failures.items():
        reasons.setdefault(str(error), []).append(job_id)
    for reason, ids in reasons.items():
        named = ids[0] if ids[0] in reason or len(ids) == 1 else f"{ids[0]} and {len(ids) - 1} more"
        messages.error(reason if ids[0] in reason else f"job {named}: {reason}")
