"""The part of an executor that handles many jobs with few requests."""

from __future__ import annotations

import abc
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from jpsi.api.validation import KnownAnswers
from jpsi.concurrency import concurrently
from jpsi.contract import InterruptedSubmission, Outcomes, Submission
from jpsi.job import Job
from jpsi.model import BulkException, InvalidJobException, JobState, JobStatus, JpsiError, SubmitException

if TYPE_CHECKING:
    from jpsi.api.validation import Validation
    from jpsi.contract import Engine

#: Called with the outcomes of some jobs: the error of each, or None for a job that was submitted.
Heard = Callable[[Mapping[Job, JpsiError | None]], None]

# The number of concurrent submissions for an engine that does not decide that itself.
_AT_A_TIME = 4


class BulkOperations(abc.ABC):
    """The base of `JobExecutor` for requests about many jobs; `JobExecutor` has the abstract methods."""

    _engine: Engine
    _checking: Validation
    _lock: threading.Lock
    _jobs: dict[str, Job]

    @abc.abstractmethod
    def _check_open(self) -> None:
        """Raise SubmitException if the executor was closed."""

    @abc.abstractmethod
    def _check_own(self, job: Job) -> None:
        """Raise SubmitException if a job belongs to another executor."""

    @abc.abstractmethod
    def _take(self, job: Job) -> int:
        """Reserve a job for this executor, and return the attempt's number."""

    @abc.abstractmethod
    def _know(self, job: Job, submission: Submission) -> None:
        """Register a job, so that what the engine reports about its id reaches it."""

    @abc.abstractmethod
    def _drop(self, job: Job, attempt: int) -> None:
        """Forget a job whose submission failed."""

    def submit_many(self, jobs: Iterable[Job], *, checks_first: bool = False) -> None:
        """Submit many jobs to the backend with few requests; returns once it has accepted them.

        Jobs that look alike to the backend become native arrays, if it has arrays; each job keeps its own
        command, environment, streams, exit code, native id and cancel. Other jobs are submitted concurrently.
        An invalid job keeps no other from being submitted, unless `checks_first` is true: then nothing is
        submitted if any of the jobs can never run on this backend as it is. Refusals by the backend itself
        come later, and keep no other job from being submitted.

        Raises:
            BulkException: some jobs were not submitted; they are still NEW. It names them, each with the
                error that `submit` would have raised, and the jobs that were submitted.
            ValueError: a job is given twice; nothing was submitted.
            SubmitException: the executor was closed; nothing was submitted.
        """
        self._submit_many(jobs, _to_nobody, checks_first=checks_first)

    def _submit_many(self, jobs: Iterable[Job], heard: Heard, *, checks_first: bool = False) -> None:
        """Submit as `submit_many` does, and report each job as soon as its outcome is known."""
        given = by_id(jobs)
        self._check_open()
        request = _Request(given, heard)
        try:
            submissions = self._submissions(request)
            if checks_first and request.failed:
                self._fail(request, {request.given[it.job_id]: _withheld() for it in submissions})
            else:
                self._submit_all(submissions, request)
        finally:
            self._drop_rest(request)
        request.check("submitted")

    def _submissions(self, request: _Request) -> list[Submission]:
        """Return the submissions of the valid jobs; the request records the errors of the others."""
        checking, found = self._checking, list[Submission]()
        present = KnownAnswers() if self._engine.is_bulk else None
        for job in request.given.values():
            try:
                attempt = request.taken[job] = self._take(job)
                submission = checking.submission(job, attempt, present)
                self._know(job, submission)
            except JpsiError as e:
                self._fail(request, {job: e})
            else:
                found.append(submission)
        return found

    def _submit_all(self, submissions: Sequence[Submission], request: _Request) -> None:
        engine = self._engine

        def told(outcomes: Outcomes) -> None:
            self._bind(request, outcomes)

        def submit(submission: Submission) -> None:
            try:
                told({submission.job_id: engine.submit(submission)})
            except JpsiError as e:
                told({submission.job_id: e})
            except InterruptedSubmission as e:
                told({submission.job_id: e.native_id})
                raise e.interrupt from None

        if engine.is_bulk:
            engine.submit_many(submissions, told)
        else:
            jobs = [request.given[it.job_id] for it in submissions]
            concurrently(submissions, submit, _AT_A_TIME, lambda: self._give_up(jobs))

    def _bind(self, request: _Request, outcomes: Outcomes, *, is_submitted: bool = True) -> None:
        """Follow the jobs that the backend has; `is_submitted` is False for attached jobs, which stay NEW."""
        bound, queued = list[str](), JobStatus(JobState.QUEUED)
        failed: dict[Job, JpsiError] = {}
        try:
            for job_id, outcome in outcomes.items():
                job = request.given[job_id]
                if isinstance(outcome, JpsiError):
                    failed[job] = outcome
                else:
                    job._bind(outcome, request.taken[job])  # noqa: SLF001  two halves of one thing
                    del request.taken[job]
                    bound.append(job_id)
                    if is_submitted:
                        job._publish(queued)  # noqa: SLF001
        finally:
            self._track(bound)
        request.heard(dict.fromkeys(request.given[job_id] for job_id in bound))
        self._fail(request, failed)

    def _track(self, job_ids: Sequence[str]) -> None:
        if len(job_ids) == 1:
            self._engine.track(job_ids[0])
        elif job_ids:
            self._engine.track_many(job_ids)

    def _fail(self, request: _Request, failed: Mapping[Job, JpsiError]) -> None:
        """Release jobs that could not be submitted or attached, so that a retry is possible at once."""
        for job in failed:
            if job in request.taken:
                self._drop(job, request.taken.pop(job))
        request.fail(failed)

    def _give_up(self, jobs: Iterable[Job] | None) -> None:
        """Make submissions of these jobs fail that wait for the quota; None means all, now and later."""
        self._engine.give_up(None if jobs is None else [job.id for job in jobs])

    def _drop_rest(self, request: _Request) -> None:
        for job, attempt in request.taken.items():
            if job.executor is None:
                self._drop(job, attempt)
                if job not in request.failed:
                    request.failed[job] = SubmitException(
                        f"job {job.id}: nothing is known of what came of it"
                    )

    def cancel_many(self, jobs: Iterable[Job]) -> None:
        """Request the end of many jobs with few requests; final ones are skipped.

        Raises:
            BulkException: the request failed for some jobs; it names them, each with the error that `cancel`
                would have raised.
            ValueError: a job is given twice; nothing was requested.
        """
        request = _Request(by_id(jobs))
        asked = []
        for job in request.given.values():
            try:
                self._check_own(job)
            except SubmitException as e:
                request.failed[job] = e
            else:
                asked += [] if job.status.final else [job.id]
        refused = self._engine.cancel_many(asked)
        request.fail({request.given[job_id]: why for job_id, why in refused.items()})
        request.check("cancelled")

    def attach_many(self, jobs: Iterable[tuple[Job, str]]) -> None:
        """Attach NEW jobs to jobs that the backend has, each given with its native id; as `attach`.

        Raises:
            BulkException: some could not be attached; it names them, each with the error that `attach` would
                have raised.
            ValueError: a job is given twice; none was attached.
        """
        pairs = list(jobs)
        request = _Request(by_id(job for job, _ in pairs))
        for job in request.given.values():
            try:
                request.taken[job] = self._take(job)
            except InvalidJobException as e:
                request.failed[job] = e
        try:
            outcomes = self._engine.attach_many(
                {job.id: native_id for job, native_id in pairs if job in request.taken}
            )
            for job in [request.given[name] for name, it in outcomes.items() if isinstance(it, str)]:
                job.spec = None
                with self._lock:
                    self._jobs[job.id] = job
            self._bind(request, outcomes, is_submitted=False)
        finally:
            self._drop_rest(request)
        request.check("attached")


def _withheld() -> SubmitException:
    return SubmitException("it was not submitted, as others cannot be")


def _to_nobody(_: Mapping[Job, JpsiError | None]) -> None:
    """Ignore the outcomes; the caller gets them as a BulkException at the end."""


class _Request:
    """A request about many jobs, and its progress."""

    def __init__(self, given: Mapping[str, Job], heard: Heard = _to_nobody) -> None:
        self.given = given
        self.heard = heard
        #: Jobs that are reserved for the executor but not bound to it yet, with their attempts' numbers.
        self.taken: dict[Job, int] = {}
        self.failed: dict[Job, JpsiError] = {}

    def fail(self, failed: Mapping[Job, JpsiError]) -> None:
        """Record why the request failed for these jobs."""
        self.failed.update(failed)
        if failed:
            self.heard(failed)

    def check(self, what: str) -> None:
        """Raise if the request failed for any job."""
        error = not_done(what, {job: self.failed.get(job) for job in self.given.values()})
        if error is not None:
            raise error


def not_done(what: str, outcomes: Mapping[Job, BaseException | None]) -> BaseException | None:
    """Return the exception to raise if an action, such as "submitted", failed for some jobs, else None.

    Args:
        what: the action.
        outcomes: the error of each job; None for success.
    """
    failed = {job: it for job, it in outcomes.items() if isinstance(it, JpsiError)}
    strange = [it for it in outcomes.values() if it is not None and not isinstance(it, JpsiError)]
    if strange:
        return strange[0]
    return BulkException.of(what, [job for job in outcomes if job not in failed], failed) if failed else None


def by_id(jobs: Iterable[Job]) -> dict[str, Job]:
    """Return the jobs by their ids; ValueError for a repeated job, TypeError for a value that is no job."""
    given: dict[str, Job] = {}
    for job in jobs:
        check_job(job)
        if job.id in given:
            msg = f"job {job.id} is given twice"
            raise ValueError(msg)
        given[job.id] = job
    return given


def check_job(job: object) -> None:
    """Raise TypeError if the value is no job."""
    if not isinstance(job, Job):
        msg = f"a Job is needed, such as Job(spec), not {type(job).__name__}"
        raise TypeError(msg)
