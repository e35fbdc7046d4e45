"""The jobs of a run: journals them, submits them, finds them again after a restart, and ends them.

What the batch system refuses for now, or does not answer, is retried with a backoff until it succeeds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence

import attrs

from jpsi import BulkException, Dependency, InvalidJobException, Job, JobState, JpsiError, SubmitException
from jpsi_engine import job_store

from ..run_store import (
    DEPENDENCY_FAILED,
    LOST,
    EntryReplica,
    Event,
    Journal,
    end_event,
    end_event_from_status,
    replica_event,
)
from .backoff import Backoff
from .executor import Executor

#: Called with a sentence for the user who watches the run.
Report = Callable[[str], None]


@attrs.define(slots=True)
class SubmissionResult:
    """The results of submissions, for the driver."""

    #: Jobs of an earlier process that this process follows now.
    followed: list[Job] = attrs.field(factory=list)
    #: Jobs of an earlier process that it journaled and never submitted; they can be submitted as they are.
    unsubmitted: list[Job] = attrs.field(factory=list)
    #: Replicas whose jobs are in the journal only.
    unknown: list[EntryReplica] = attrs.field(factory=list)
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
        self._backoff = Backoff(clock)
        #: The replica that each job runs, by the job's id.
        self.entry_replicas: dict[str, EntryReplica] = {}
        #: The jobs by their ids, including those that wait to be submitted.
        self.jobs: dict[str, Job] = {}
        self._to_recover: dict[str, EntryReplica] = {}
        self._unsent: dict[str, Job] = {}
        self._unended: dict[str, Job] = {}

    def recover(self, wanted: Mapping[str, EntryReplica]) -> SubmissionResult:
        """Find the jobs with these ids again, which an earlier process journaled."""
        self._to_recover = dict(wanted)
        self.entry_replicas |= wanted
        return self.retry()

    def add(self, job: Job, entry_replica: EntryReplica) -> None:
        """Remember which replica a job runs."""
        self.entry_replicas[job.id] = entry_replica
        self.jobs[job.id] = job

    def submit(self, jobs: Sequence[Job]) -> SubmissionResult:
        """Journal jobs, then submit them, now or once the batch system accepts jobs again.

        Raises:
            JpsiError: the journal cannot be written.
        """
        result = SubmissionResult()
        self._journal.append(
            [replica_event(self.entry_replicas[it.id], job=it.id) for it in jobs], is_synced=True
        )
        self._unsent |= {it.id: it for it in jobs}
        if self._backoff.is_over:
            self._start_backoff(self._submit_unsent(result))
        return result

    def forget(self, job_id: str) -> None:
        """Forget a job that has ended."""
        del self.jobs[job_id], self.entry_replicas[job_id]

    def cancel(self, jobs: Iterable[Job]) -> list[EntryReplica]:
        """Have `retry` cancel jobs; return the replicas of those that were never submitted."""
        never_submitted = []
        for job in jobs:
            if job.executor is None:
                del self.jobs[job.id]
                self._unsent.pop(job.id, None)
                never_submitted.append(self.entry_replicas.pop(job.id))
            elif not job.status.final:
                self._unended[job.id] = job
        return never_submitted

    def retry(self) -> SubmissionResult:
        """Retry all that is left to do, unless the backoff has not ended."""
        result = SubmissionResult()
        if (self._to_recover or self._unsent or self._unended) and self._backoff.is_over:
            self._start_backoff(
                [*self._recover(result), *self._submit_unsent(result), *self._cancel_unended()]
            )
        return result

    def _start_backoff(self, problems: Sequence[str]) -> None:
        """Begin a pause if there were problems; otherwise reset the backoff."""
        if not problems:
            self._backoff.reset()
            return
        seconds = self._backoff.start_next()
        for problem in dict.fromkeys(problems):
            self._report(f"{problem}; trying again in {seconds:.0f} s")

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
        lost: list[Event] = []
        for job_id, entry_replica in wanted_jobs.items():
            job = found.get(job_id)
            if job_id in in_submission:
                self._to_recover[job_id] = entry_replica
            elif job is not None:
                (result.unsubmitted if job.status.state is JobState.NEW else result.followed).append(job)
            elif job_id in ended_remotely and ended_remotely[job_id].reason not in LOST:
                lost.append(end_event_from_status(entry_replica, ended_remotely[job_id]))
                result.changed[entry_replica.entry.id] = None
            elif not self._is_restarted and self._is_submitted(entry_replica):
                message = "its job was submitted, and cannot be found any more"
                lost.append(end_event(entry_replica, JobState.FAILED, reason="lost", message=message))
                result.changed[entry_replica.entry.id] = None
            else:
                del self.entry_replicas[job_id]
                result.unknown.append(entry_replica)
        self._journal.append(lost)
        return (
            [f"{len(in_submission)} jobs are still being submitted by an earlier process"]
            if in_submission
            else []
        )

    def _is_submitted(self, entry_replica: EntryReplica) -> bool:
        return self._journal.parts[entry_replica.entry.id][entry_replica.replica - 1].is_submitted

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
            entry_replica, error = self.entry_replicas[job.id], failed.get(job)
            if error is None:
                events.append(replica_event(entry_replica, is_submitted=True))
                continue
            if _is_transient(error):
                self._unsent[job.id] = job
                waiting.append(str(error))
                continue
            del self.jobs[job.id], self.entry_replicas[job.id]
            events.append(self._refusal_event(job, entry_replica, error, result))
            result.changed[entry_replica.entry.id] = None
        self._journal.append(events)
        if len(waiting) > 1:
            return [f"{waiting[0]}; {len(waiting)} jobs wait to be submitted"]
        return waiting

    @staticmethod
    def _refusal_event(
        job: Job, entry_replica: EntryReplica, error: JpsiError, result: SubmissionResult
    ) -> Event:
        """Return the event to journal for a job that was refused."""
        attributes = None if job.spec is None else job.spec.attributes
        needed = [Dependency.of(it) for it in (None if attributes is None else attributes.after) or ()]
        for it in needed:
            # the dependency has ended since the driver looked
            if isinstance(it.job, Job) and it.kind.is_met(it.job.status.state) is False:
                return end_event(entry_replica, JobState.CANCELED, reason=DEPENDENCY_FAILED)
        if needed and isinstance(error, InvalidJobException):
            # a batch system cannot wait for every kind of job, such as array elements: the driver waits then
            result.held.add(entry_replica.entry.id)
            return replica_event(entry_replica, job=None)
        return end_event(entry_replica, JobState.FAILED, reason="submit", message=str(error))

    def _cancel_unended(self) -> list[str]:
        """Cancel the jobs that are to end; return why that failed for now."""
        unended = [it for it in self._unended.values() if not it.status.final]
        self._unended = {}
        try:
            self._executor.cancel_many(unended)
        except BulkException as e:
            transient = {
                it: why for it, why in e.failed.items() if isinstance(why, SubmitException) and why.transient
            }
            self._unended = {it.id: it for it in transient}
            for why in dict.fromkeys(str(it) for job, it in e.failed.items() if job not in transient):
                self._report(why)
            return list(dict.fromkeys(map(str, transient.values())))[:1]
        return []


def _is_transient(error: JpsiError) -> bool:
    """Return True if a retry may succeed."""
    return isinstance(error, SubmitException) and error.transient
