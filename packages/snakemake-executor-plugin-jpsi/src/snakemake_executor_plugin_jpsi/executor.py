"""Runs the jobs of a workflow of Snakemake as jobs of jpsi.

A Snakemake that was killed, and is started again, finds the jobs that have not ended: it waits for one that
still runs, and submits the same job if it never reached the batch system, so that no two jobs write to one
file.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path

from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor
from snakemake_interface_executor_plugins.jobs import JobExecutorInterface

import jpsi
from jpsi.plugin import line
from jpsi_engine.job_store import StoredJob

from . import earlier_jobs
from .job_spec import make_job_spec

# jpsi follows its jobs by itself: Snakemake's checks only read what it knows.
_CHECK_SECONDS = 0.2
# How long to wait for the end of jobs whose output files other jobs are to write.
_CANCEL_SECONDS = 60.0


class Executor(RemoteExecutor):  # type: ignore[misc]  # Snakemake's interface is not typed
    """The executor `jpsi` of one run of a workflow."""

    def __post_init__(self) -> None:
        """Open jpsi's executor; Snakemake calls this once it knows its own settings."""
        if self.workflow.remote_execution_settings.immediate_submit:
            msg = "the executor jpsi cannot submit all jobs at once; leave out --immediate-submit"
            raise WorkflowError(msg)
        settings = self.workflow.executor_settings
        # those that may still run; Snakemake's list of them lacks some for moments
        self._live: dict[str, jpsi.Job] = {}
        try:
            self._executor = jpsi.JobExecutor(settings.executor, url=settings.url)
        except jpsi.JpsiError as e:
            raise WorkflowError(str(e)) from e

    def get_python_executable(self) -> str:
        """Return the interpreter for jobs as a word of the shell; Snakemake's own has no quotes."""
        return str(line(super().get_python_executable()))

    def run_job(self, job: JobExecutorInterface) -> None:
        """Submit a job."""
        self._submit([job])

    def run_jobs(self, jobs: list[JobExecutorInterface]) -> None:
        """Submit the jobs that can run now; those that are alike become one array of the batch system."""
        for job in jobs:
            self.run_job_pre(job)
        self._submit(jobs)

    async def check_active_jobs(self, active_jobs: list[SubmittedJobInfo]) -> AsyncIterator[SubmittedJobInfo]:
        """Report the jobs that have ended, and yield the others; this queries nothing."""
        for info in active_jobs:
            job: jpsi.Job = info.aux["job"]
            status = job.status
            if not status.final:
                yield info
                continue
            self._live.pop(job.id, None)
            if _has_succeeded(job):
                self.report_job_success(info)
            else:
                self._report_failure(info, job, status)

    async def sleep(self) -> None:
        """Wait before the next check; Snakemake's own interval is for executors that query batch systems."""
        await asyncio.sleep(_CHECK_SECONDS)

    def cancel_jobs(self, active_jobs: list[SubmittedJobInfo]) -> None:  # noqa: ARG002  it may lack some
        """Cancel all jobs, as the workflow was interrupted, also those that are just being submitted."""
        self._cancel(list(self._live.values()))

    def shutdown(self) -> None:
        """Stop following jobs."""
        super().shutdown()
        self._executor.close()

    def _submit(self, snakemake_jobs: Iterable[JobExecutorInterface]) -> None:
        new: dict[str, tuple[SubmittedJobInfo, jpsi.Job]] = {}
        for snakemake_job in snakemake_jobs:
            job = self._take_earlier(snakemake_job) or jpsi.Job(self._make_spec(snakemake_job))
            info = SubmittedJobInfo(snakemake_job, external_jobid=job.id, aux={"job": job})
            self._live[job.id] = job
            if job.status.state is jpsi.JobState.NEW:
                new[job.id] = info, job
            else:
                self.logger.info(f"Job {snakemake_job.jobid} goes on as {job.id}.")
                self.report_job_submission(info)
        failed = self._submit_new([job for _, job in new.values()])
        for info, job in new.values():
            if (error := failed.get(job.id)) is None:
                self.report_job_submission(info)
            else:
                self._live.pop(job.id)
                self._report_error(info, f"jpsi could not submit it to {self._executor.name}: {error}")

    def _submit_new(self, jobs: Sequence[jpsi.Job]) -> dict[str, jpsi.JpsiError]:
        """Submit jobs; return the errors by job id."""
        try:
            self._executor.submit_many(jobs)
        except jpsi.BulkException as e:
            return {job.id: error for job, error in e.failed.items()}
        return {}

    def _take_earlier(self, snakemake_job: JobExecutorInterface) -> jpsi.Job | None:
        """Return the job of an earlier Snakemake for the same files, if it has not ended; follow it again.

        With `--rerun-incomplete` it is cancelled instead, and its end waited for; but one that may not have
        reached the batch system is submitted again as the same job, which cannot run twice.

        Raises:
            WorkflowError: such a job cannot be followed, or does not end.
        """
        # once alone: whatever runs later for these files runs in this Snakemake
        stored = self._earlier.pop(self._key(snakemake_job), ())
        jobs = self._recall([it.id for it in stored])
        if missing := [it for it in stored if it.id not in {job.id for job in jobs}]:
            found = "; ".join(f"jpsi cancel {it.id} (executor {it.origin.name})" for it in missing)
            raise WorkflowError(f"jobs of an earlier run write to files of {snakemake_job.name}: {found}")
        new = [job for job in jobs if job.status.state is jpsi.JobState.NEW]
        if self.workflow.dag_settings.force_incomplete:
            self._end([job for job in jobs if job not in new])
            return next(iter(new), None)
        # one that failed a moment ago is to run again
        return next((job for job in jobs if not job.status.final or _has_succeeded(job)), None)

    @functools.cached_property
    def _earlier(self) -> dict[str, list[StoredJob]]:
        try:
            return earlier_jobs.live_jobs()
        except jpsi.JpsiError as e:
            raise WorkflowError(f"cannot look for jobs of an earlier run: {e}") from e

    def _recall(self, job_ids: Sequence[str]) -> Sequence[jpsi.Job]:
        try:
            return self._executor.recall(job_ids) if job_ids else []
        except jpsi.JpsiError as e:
            raise WorkflowError(f"cannot follow jobs of an earlier run: {e}") from e

    def _end(self, jobs: Sequence[jpsi.Job]) -> None:
        """Cancel jobs, and wait until they have ended."""
        self._cancel(jobs)
        if None in jpsi.wait_all(jobs, _CANCEL_SECONDS):
            ids = " ".join(job.id for job in jobs if not job.status.final)
            msg = f"jobs of an earlier run still write to these files; try again when they have ended: {ids}"
            raise WorkflowError(msg)

    def _cancel(self, jobs: Sequence[jpsi.Job]) -> None:
        try:
            self._executor.cancel_many([job for job in jobs if job.native_id and not job.status.final])
        except jpsi.BulkException as e:
            self.logger.error(str(e))

    def _key(self, snakemake_job: JobExecutorInterface) -> str:
        return earlier_jobs.output_key(str(Path.cwd()), snakemake_job.output)

    def _make_spec(self, snakemake_job: JobExecutorInterface) -> jpsi.JobSpec:
        spec = make_job_spec(
            self.format_job_exec(snakemake_job),
            snakemake_job.name,
            snakemake_job.threads,
            snakemake_job.resources,
            self.envvars(),
        )
        spec.directory = Path.cwd()
        earlier_jobs.mark(spec, self._key(snakemake_job))
        return spec

    def _report_failure(self, info: SubmittedJobInfo, job: jpsi.Job, status: jpsi.JobStatus) -> None:
        facts = [f"{self._executor.name} {job.native_id}"]
        facts += [f"reason: {status.reason.value}"] if status.reason else []
        facts += [f"evidence: {status.evidence.value}"] if status.evidence else []
        logs = [str(job.streams.stderr)] if job.streams and not self.workflow.executor_settings.url else []
        hint = f"More: jpsi explain {job.id}"
        self._report_error(info, f"{status} ({', '.join(facts)}). {hint}", logs)

    def _report_error(self, info: SubmittedJobInfo, message: str, logs: Sequence[str] = ()) -> None:
        if info.job.is_group():
            # Snakemake 9 drops the message about a group
            self.logger.error(f"Group job {info.job.jobid}: {message}")
        self.report_job_error(info, msg=message + "\n", aux_logs=list(logs))


def _has_succeeded(job: jpsi.Job) -> bool:
    return job.status.state is jpsi.JobState.COMPLETED
