"""The jobs of a run: journals them, submits them, finds them again after a restart, and ends them.

What the batch system refuses for now, or does not answer, is retried with a backoff until it succeeds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence

import attrs

from jpsi import BulkException, Dependency, InvalidJobException, Job, JobState, JpsiError, SubmitException
from jpsi_engine import job_store

from ..run_store import DEPENDENCY_FAILED, LOST, Event, Journal, Place, end_event, end_event_of, replica_event
from .backoff import Backoff
from .executor import Executor

#: Called with a sentence for the user who watches the run.
Remark = Callable[[str], None]


@attrs.define(slots=True)
class SubmissionResult:
    """The results of submissions, for the driver."""

    #: Jobs of an earlier process that this process follows now.
    followed: list[Job] = attrs.field(factory=list)
    #: Jobs of an earlier process that it journaled and never submitted; they can be submitted as they are.
    unsubmitted: list[Job] = attrs.field(factory=list)
    #: Replicas whose jobs are in the journal only.
    unknown: list[Place] = attrs.field(factory=list)
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
        remark: Remark,
        clock: Callable[[], float] = time.monotonic,
        *,
        is_restarted: bool = False,
    ) -> None:
        """Submit the jobs of a run by an executor.

        Args:
            journal: of the run.
            executor: runs the jobs.
            remark: called with a sentence about each problem that the user should know, such as a retry.
            clock: returns seconds.
            is_restarted: True if earlier jobs were submitted in an earlier start of the allocation.
        """
        self._is_restarted = is_restarted
        self._journal = journal
        self._executor = executor
        self._remark = remark
        self._backoff = Backoff(clock)
        #: The replica that each job runs, by the job's id.
        self.places: dict[str, Place] = {}
        #: The jobs by their ids, including those that wait to be submitted.
        self.jobs: dict[str, Job] = {}
        self._sought: dict[str, Place] = {}
        self._unsent: dict[str, Job] = {}
        self._unended: dict[str, Job] = {}

    def seek(self, wanted: Mapping[str, Place]) -> SubmissionResult:
        """Find the jobs with these ids again, which an earlier process journaled."""
        self._sought = dict(wanted)
        self.places |= wanted
        return self.try_again()

    def add(self, job: Job, place: Place) -> None:
        """Remember which replica a job runs."""
        self.places[job.id] = place
        self.jobs[job.id] = job

    def submit(self, jobs: Sequence[Job]) -> SubmissionResult:
        """Journal jobs, then submit them, now or once the batch system accepts jobs again.

        Raises:
            JpsiError: the journal cannot be written.
        """
        news = SubmissionResult()
        self._journal.note([replica_event(self.places[it.id], job=it.id) for it in jobs], is_synced=True)
        self._unsent |= {it.id: it for it in jobs}
        if self._backoff.is_over:
            self._wait_after(self._send(news))
        return news

    def forget(self, job_id: str) -> None:
        """Forget a job that has ended."""
        del self.jobs[job_id], self.places[job_id]

    def end(self, jobs: Iterable[Job]) -> list[Place]:
        """Have `try_again` cancel jobs; return the replicas of those that were never submitted."""
        never = []
        for job in jobs:
            if job.executor is None:
                del self.jobs[job.id]
                self._unsent.pop(job.id, None)
                never.append(self.places.pop(job.id))
            elif not job.status.final:
                self._unended[job.id] = job
        return never

    def try_again(self) -> SubmissionResult:
        """Retry all that is left to do, unless the backoff has not ended."""
        news = SubmissionResult()
        if (self._sought or self._unsent or self._unended) and self._backoff.is_over:
            self._wait_after([*self._seek(news), *self._send(news), *self._end()])
        return news

    def _wait_after(self, problems: Sequence[str]) -> None:
        """Begin a pause if there were problems; otherwise reset the backoff."""
        if not problems:
            self._backoff.went_well()
            return
        seconds = self._backoff.failed()
        for problem in dict.fromkeys(problems):
            self._remark(f"{problem}; trying again in {seconds:.0f} s")

    def _seek(self, news: SubmissionResult) -> list[str]:
        """Find jobs again; return why that failed for some of them."""
        if not self._sought:
            return []
        try:
            found = {it.id: it for it in self._executor.recall(self._sought)}
            left = self._sought.keys() - found.keys()
            past = job_store.jobs(also=[self._journal.work]) if left else []
        except SubmitException as e:
            if not e.transient:
                raise
            return [f"it cannot be seen yet what an earlier process left: {e}"]
        # a submit command that outlived its process is still at work on these
        unclear = {it.id for it in past if it.id in left and not it.origin.is_elsewhere}
        elsewhere = {it.id: it.status for it in past if it.origin.is_elsewhere and it.status.final}
        self.jobs.update(found)
        sought, self._sought = self._sought, {}
        lost: list[Event] = []
        for job_id, place in sought.items():
            job = found.get(job_id)
            if job_id in unclear:
                self._sought[job_id] = place
            elif job is not None:
                (news.unsubmitted if job.status.state is JobState.NEW else news.followed).append(job)
            elif job_id in elsewhere and elsewhere[job_id].reason not in LOST:
                lost.append(end_event_of(place, elsewhere[job_id]))
                news.changed[place.entry.id] = None
            elif not self._is_restarted and self._is_submitted(place):
                message = "its job was submitted, and nothing is left of it"
                lost.append(end_event(place, JobState.FAILED, reason="lost", message=message))
                news.changed[place.entry.id] = None
            else:
                del self.places[job_id]
                news.unknown.append(place)
        self._journal.note(lost)
        return [f"{len(unclear)} jobs are still being submitted by an earlier process"] if unclear else []

    def _is_submitted(self, place: Place) -> bool:
        return self._journal.parts[place.entry.id][place.replica - 1].is_submitted

    def _send(self, news: SubmissionResult) -> list[str]:
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
            place, error = self.places[job.id], failed.get(job)
            if error is None:
                events.append(replica_event(place, is_submitted=True))
                continue
            if _is_transient(error):
                self._unsent[job.id] = job
                waiting.append(str(error))
                continue
            del self.jobs[job.id], self.places[job.id]
            events.append(self._refused(job, place, error, news))
            news.changed[place.entry.id] = None
        self._journal.note(events)
        if len(waiting) > 1:
            return [f"{waiting[0]}; {len(waiting)} jobs wait to be submitted"]
        return waiting

    @staticmethod
    def _refused(job: Job, place: Place, error: JpsiError, news: SubmissionResult) -> Event:
        """Return the event to journal for a job that was refused."""
        attributes = None if job.spec is None else job.spec.attributes
        needed = [Dependency.of(it) for it in (None if attributes is None else attributes.after) or ()]
        for it in needed:
            # the dependency has ended since the driver looked
            if isinstance(it.job, Job) and it.kind.is_met(it.job.status.state) is False:
                return end_event(place, JobState.CANCELED, reason=DEPENDENCY_FAILED)
        if needed and isinstance(error, InvalidJobException):
            # a batch system cannot wait for every kind of job, such as array elements: the driver waits then
            news.held.add(place.entry.id)
            return replica_event(place, job=None)
        return end_event(place, JobState.FAILED, reason="submit", message=str(error))

    def _end(self) -> list[str]:
        """Cancel the jobs that are to end; return why that failed for now."""
        live = [it for it in self._unended.values() if not it.status.final]
        self._unended = {}
        try:
            self._executor.cancel_many(live)
        except BulkException as e:
            later = {
                it: why for it, why in e.failed.items() if isinstance(why, SubmitException) and why.transient
            }
            self._unended = {it.id: it for it in later}
            for why in dict.fromkeys(str(it) for job, it in e.failed.items() if job not in later):
                self._remark(why)
            return list(dict.fromkeys(map(str, later.values())))[:1]
        return []


def _is_transient(error: JpsiError) -> bool:
    """Return True if a retry may succeed."""
    return isinstance(error, SubmitException) and error.transient
