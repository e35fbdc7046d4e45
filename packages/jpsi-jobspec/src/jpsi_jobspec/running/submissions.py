"""The jobs of a run: journals them, submits them, finds them again after a restart, and ends them.

The driver uses it. What the batch system refuses for now, or does not answer, is retried with a backoff until
it succeeds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence

import attrs

from jpsi import (
    BulkException,
    Dependency,
    InvalidJobException,
    Job,
    JobState,
    JobStatus,
    JpsiError,
    SubmitException,
)
from jpsi_engine import job_store

from ..run_store import DEPENDENCY_FAILED, LOST, NOT_SUBMITTED, Event, Journal, Part
from .executor import Executor
from .next_step import render_unmet

#: Called with a sentence for the user who watches the run.
Report = Callable[[str], None]

# The pauses between retries grow from one failure to the next one.
_SHORTEST_SECONDS = 1.0
_LONGEST_SECONDS = 60.0


@attrs.define(slots=True)
class SubmissionResult:
    """The results of submissions, for the driver."""

    #: Jobs of an earlier process that this process follows now.
    followed: list[Job] = attrs.field(factory=list)
    #: Jobs of an earlier process that it journaled and never submitted; they can be submitted as they are.
    unsubmitted: list[Job] = attrs.field(factory=list)
    #: Replicas whose jobs are in the journal only.
    unknown: list[Part] = attrs.field(factory=list)
    #: Entries that have changed: their jobs were refused or lost, or had ended.
    changed: dict[str, None] = attrs.field(factory=dict)
    #: Entries whose dependencies the batch system cannot handle.
    held: set[str] = attrs.field(factory=set)


class Submissions:
    """The jobs of one run. Used by one thread, that of the driver."""

    def __init__(
        self,
        journal: Journal,
        executor: Executor,
        report: Report,
        clock: Callable[[], float] = time.monotonic,
        *,
        is_restarted: bool = False,
    ) -> None:
        """Submit the jobs of a run by an executor.

        Args:
            journal: of the run.
            executor: runs the jobs.
            report: called with a sentence about each problem that the user should know, such as a retry.
            clock: returns seconds.
            is_restarted: True if earlier jobs were submitted in an earlier start of the allocation.
        """
        self._is_restarted = is_restarted
        self._journal = journal
        self._executor = executor
        self._report = report
        self._clock = clock
        # the current pause, and its end
        self._pause = 0.0
        self._pause_end = 0.0
        #: The replica that each job runs, by the job's id.
        self.parts: dict[str, Part] = {}
        #: The jobs by their ids, including those that wait to be submitted.
        self.jobs: dict[str, Job] = {}
        self._to_recover: dict[str, Part] = {}
        self._unsent: dict[str, Job] = {}
        self._unended: dict[str, Job] = {}
        # why dependencies of jobs that are to end cannot be met, by the ids of the jobs
        self._unmet: dict[str, str] = {}

    def recover(self, wanted: Mapping[str, Part]) -> SubmissionResult:
        """Find the jobs with these ids again, which an earlier process journaled."""
        self._to_recover = dict(wanted)
        self.parts |= wanted
        return self.retry()

    def submit(self, jobs: Mapping[Job, Part]) -> SubmissionResult:
        """Journal jobs, then submit them, now or once the batch system accepts jobs again.

        Raises:
            JpsiError: the journal cannot be written.
        """
        result = SubmissionResult()
        self._journal.append([part.event(job=it.id) for it, part in jobs.items()], is_synced=True)
        self.jobs |= {it.id: it for it in jobs}
        self.parts |= {it.id: part for it, part in jobs.items()}
        self._unsent |= {it.id: it for it in jobs}
        if self._can_retry:
            self._start_pause(self._submit_unsent(result))
        return result

    def forget(self, job_id: str) -> None:
        """Forget a job that has ended."""
        del self.jobs[job_id], self.parts[job_id]

    def cancel(self, jobs: Iterable[Job], unmet: Mapping[str, str]) -> list[Part]:
        """Have `retry` cancel jobs; return the replicas of those that were never submitted.

        Args:
            jobs: those to cancel.
            unmet: why a dependency of a job cannot be met, by job id, if that is why the job is to end.
        """
        never_submitted = []
        self._unmet |= unmet
        for job in jobs:
            if job.executor is None:
                never_submitted.append(self.parts[job.id])
                self._unsent.pop(job.id, None)
                self.forget(job.id)
            elif not job.status.final:
                self._unended[job.id] = job
        return never_submitted

    def retry(self) -> SubmissionResult:
        """Retry all that is left to do, unless the pause has not ended."""
        result = SubmissionResult()
        if (self._to_recover or self._unsent or self._unended) and self._can_retry:
            problems = [*self._recover(result), *self._submit_unsent(result), *self._cancel_unended()]
            self._start_pause(problems)
        return result

    @property
    def _can_retry(self) -> bool:
        return self._clock() >= self._pause_end

    def _start_pause(self, problems: Sequence[str]) -> None:
        """Begin a pause, longer than the last one, if there were problems."""
        self._pause = min(max(_SHORTEST_SECONDS, self._pause * 2), _LONGEST_SECONDS) if problems else 0.0
        self._pause_end = self._clock() + self._pause
        for problem in dict.fromkeys(problems):
            self._report(f"{problem}; trying again in {self._pause:.0f} s")

    def _recover(self, result: SubmissionResult) -> list[str]:
        """Find jobs again; return why that failed for some of them."""
        if not self._to_recover:
            return []
        try:
            found = {it.id: it for it in self._executor.recall(self._to_recover)}
            missing = self._to_recover.keys() - found.keys()
            stored_jobs = job_store.jobs(also=[self._journal.work]) if missing else []
        except SubmitException as e:
            if not e.transient:
                raise
            return [f"the jobs of an earlier process cannot be listed yet: {e}"]
        # a submit command that outlived its process is still at work on these
        in_submission = {it.id for it in stored_jobs if it.id in missing and not it.origin.is_remote}
        ended_remotely = {it.id: it.status for it in stored_jobs if it.origin.is_remote and it.status.final}
        self.jobs.update(found)
        wanted_jobs, self._to_recover = self._to_recover, {}
        ends: list[Event] = []
        for job_id, part in wanted_jobs.items():
            if job_id in in_submission:
                self._to_recover[job_id] = part
            elif (job := found.get(job_id)) is not None:
                (result.unsubmitted if job.status.state is JobState.NEW else result.followed).append(job)
            elif (end := self._end_of_missing(part, ended_remotely.get(job_id))) is not None:
                ends.append(end)
            else:
                del self.parts[job_id]
                result.unknown.append(part)
        self._journal.append(ends)
        result.changed |= {it["entry"]: None for it in ends}
        late = f"{len(in_submission)} jobs are still being submitted by an earlier process"
        return [late] if in_submission else []

    def _end_of_missing(self, part: Part, status: JobStatus | None) -> Event | None:
        """Return the event to journal for a job that the executor does not know; None if it may run again.

        Args:
            part: the replica.
            status: how the job has ended, if the files of a remote host say so.
        """
        if status is not None and status.reason not in LOST:
            return part.end_event_from_status(status)
        if self._is_restarted or not part.is_submitted:
            return None
        message = "its job was submitted, and cannot be found any more"
        return part.end_event(JobState.FAILED, "lost", message)

    def _submit_unsent(self, result: SubmissionResult) -> list[str]:
        """Submit the jobs that wait for it; return why the batch system did not take some of them now."""
        # a job that was added while others waited for the batch system may depend on one of those
        jobs, self._unsent = list(self._unsent.values()), {}
        if not jobs:
            return []
        failed: Mapping[Job, JpsiError] = {}
        try:
            self._executor.submit_many(jobs)
        except BulkException as e:
            failed = e.failed
        waiting: list[str] = []
        events: list[Event] = []
        for job in jobs:
            part, error = self.parts[job.id], failed.get(job)
            if error is None:
                events.append(part.event(is_submitted=True))
            elif _is_transient(error):
                self._unsent[job.id] = job
                waiting.append(str(error))
            else:
                self.forget(job.id)
                events.append(self._refusal_event(job, part, error, result))
                result.changed[part.entry.id] = None
        self._journal.append(events)
        return [f"{waiting[0]}; {len(waiting)} jobs wait to be submitted"] if len(waiting) > 1 else waiting

    def _refusal_event(self, job: Job, part: Part, error: JpsiError, result: SubmissionResult) -> Event:
        """Return the event to journal for a job that was refused."""
        needed = [Dependency.of(it) for it in (job.spec and job.spec.attributes.after) or ()]
        for it in needed:
            # the dependency has ended since the driver looked
            if isinstance(it.job, Job) and it.kind.is_met(it.job.status.state) is False:
                other = self.parts[it.job.id].entry.id
                unmet = render_unmet(after for after in part.entry.after if after.id == other)
                return part.end_event(JobState.CANCELED, DEPENDENCY_FAILED, unmet)
        if needed and isinstance(error, InvalidJobException):
            # a batch system cannot wait for every kind of job, such as array elements: the driver waits then
            result.held.add(part.entry.id)
            return part.event(job=None)
        return part.end_event(JobState.FAILED, NOT_SUBMITTED, str(error))

    def _cancel_unended(self) -> list[str]:
        """Cancel the jobs that are to end; return why that failed for now."""
        by_reason: dict[str, list[Job]] = {}
        for job in self._unended.values():
            if not job.status.final:
                by_reason.setdefault(self._unmet.get(job.id, ""), []).append(job)
        failed: dict[Job, JpsiError] = {}
        for unmet, jobs in by_reason.items():
            try:
                self._executor.cancel_many(jobs, unmet=unmet)
            except BulkException as e:
                failed |= e.failed
        transient = {it: why for it, why in failed.items() if _is_transient(why)}
        self._unended = {it.id: it for it in transient}
        for why in dict.fromkeys(str(it) for job, it in failed.items() if job not in transient):
            self._report(why)
        return list(map(str, transient.values()))[:1]


def _is_transient(error: JpsiError) -> bool:
    """Return True if a retry may succeed."""
    return isinstance(error, SubmitException) and error.transient
