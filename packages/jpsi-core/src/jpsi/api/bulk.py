"""The half of an executor that does with few requests what concerns many jobs."""

from __future__ import annotations

import abc
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from jpsi.api.validation import Known
from jpsi.concurrency import concurrently
from jpsi.contract import BulkEngine, InterruptedSubmission, Outcomes, PatientEngine, Submission
from jpsi.job import Job
from jpsi.model import BulkException, InvalidJobException, JobState, JobStatus, JpsiError, SubmitException

if TYPE_CHECKING:
    from jpsi.api.validation import Checking
    from jpsi.contract import Engine

#: Told what came of some jobs: why each was not submitted, or None for one that was.
Heard = Callable[[Mapping[Job, JpsiError | None]], None]

# How many jobs are submitted at a time by an engine that does not decide that itself.
_AT_A_TIME = 4


class Many(abc.ABC):
    """What `JobExecutor` does with many jobs at once; what it needs for that is in the other half."""

    _engine: Engine
    _checking: Checking
    _lock: threading.Lock
    _jobs: dict[str, Job]

    @abc.abstractmethod
    def _check_open(self) -> None:
        """SubmitException if the executor was closed."""

    @abc.abstractmethod
    def _check_own(self, job: Job) -> None:
        """SubmitException if a job is another executor's."""

    @abc.abstractmethod
    def _take(self, job: Job) -> int:
        """Reserve a job for this executor; returns the attempt's number."""

    @abc.abstractmethod
    def _know(self, job: Job, submission: Submission) -> None:
        """Tell this job what the engine says about its id."""

    @abc.abstractmethod
    def _drop(self, job: Job, attempt: int) -> None:
        """A submission came to nothing."""

    def submit_many(self, jobs: Iterable[Job], *, checks_first: bool = False) -> None:
        """Hand many jobs to the backend with few requests; returns once it has accepted them.

        Jobs that the backend sees no difference between become native arrays, where it has such; each keeps
        its own command, environment, streams, exit code, native id and cancel. Others are submitted
        concurrently. What is wrong with one job keeps no other from being submitted, unless `checks_first`
        is true: then nothing is submitted if any of the jobs can never run here as it is. What the backend
        itself refuses is known only later, and keeps no other from being submitted.

        Raises:
            BulkException: some jobs were not submitted; they are still NEW. It names them, each with what
                `submit` would have raised, and those that were submitted.
            ValueError: a job is given twice; nothing was submitted.
            SubmitException: the executor was closed; nothing was submitted.
        """
        self._submit_many(jobs, _to_nobody, checks_first=checks_first)

    def _submit_many(self, jobs: Iterable[Job], heard: Heard, *, checks_first: bool = False) -> None:
        """As `submit_many`, and tell of each job as soon as it is known what came of it."""
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
        """Those of the jobs that can be submitted; the request knows what is wrong with others."""
        checking, found = self._checking, list[Submission]()
        present = Known() if isinstance(self._engine, BulkEngine) else None
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

        if isinstance(engine, BulkEngine):
            engine.submit_many(submissions, told)
        else:
            jobs = [request.given[it.job_id] for it in submissions]
            concurrently(submissions, submit, _AT_A_TIME, lambda: self._give_up(jobs))

    def _bind(self, request: _Request, outcomes: Outcomes, *, is_submitted: bool = True) -> None:
        """Follow the jobs that the backend has; those that were not submitted are not known to be there."""
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
        engine = self._engine
        if len(job_ids) > 1 and isinstance(engine, BulkEngine):
            engine.track_many(job_ids)
        else:
            for job_id in job_ids:
                engine.track(job_id)

    def _fail(self, request: _Request, failed: Mapping[Job, JpsiError]) -> None:
        """Let jobs go that could not be submitted or attached, so that it can be tried again at once."""
        for job in failed:
            if job in request.taken:
                self._drop(job, request.taken.pop(job))
        request.fail(failed)

    def _give_up(self, jobs: Iterable[Job] | None) -> None:
        """Submit jobs no more that wait for room; None is all, now and later."""
        if isinstance(self._engine, PatientEngine):
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
        """Ask the backend with few requests to end jobs; final ones are passed over.

        Raises:
            BulkException: some jobs could not be asked for; it names them, each with what `cancel` would have
                raised.
            ValueError: a job is given twice; none was asked for.
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
        refused = self._cancelled(asked)
        request.fail({request.given[job_id]: why for job_id, why in refused.items()})
        request.check("cancelled")

    def _cancelled(self, job_ids: Sequence[str]) -> Mapping[str, JpsiError]:
        if isinstance(self._engine, BulkEngine):
            return self._engine.cancel_many(job_ids)
        refused: dict[str, JpsiError] = {}
        for job_id in job_ids:
            try:
                self._engine.cancel(job_id)
            except JpsiError as e:
                refused[job_id] = e
        return refused

    def attach_many(self, jobs: Iterable[tuple[Job, str]]) -> None:
        """Let NEW jobs stand for some that the backend has, each given with its native id; as `attach`.

        Raises:
            BulkException: some could not be attached; it names them, each with what `attach` would have
                raised.
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
            outcomes = self._attached({job.id: native_id for job, native_id in pairs if job in request.taken})
            for job in [request.given[name] for name, it in outcomes.items() if isinstance(it, str)]:
                job.spec = None
                with self._lock:
                    self._jobs[job.id] = job
            self._bind(request, outcomes, is_submitted=False)
        finally:
            self._drop_rest(request)
        request.check("attached")

    def _attached(self, native_ids: Mapping[str, str]) -> Outcomes:
        if isinstance(self._engine, BulkEngine):
            return self._engine.attach_many(native_ids)
        outcomes: dict[str, str | JpsiError] = {}
        for job_id, native_id in native_ids.items():
            try:
                outcomes[job_id] = self._engine.attach(job_id, native_id)
            except JpsiError as e:
                outcomes[job_id] = e
        return outcomes


def _withheld() -> SubmitException:
    return SubmitException("it was not submitted, as others cannot be")


def _to_nobody(_: Mapping[Job, JpsiError | None]) -> None:
    """Whoever asked hears of it in the end."""


class _Request:
    """One request about many jobs, and how far it has come."""

    def __init__(self, given: Mapping[str, Job], heard: Heard = _to_nobody) -> None:
        self.given = given
        self.heard = heard
        #: Jobs that are reserved for the executor, and not its own yet, with the numbers of their attempts.
        self.taken: dict[Job, int] = {}
        self.failed: dict[Job, JpsiError] = {}

    def fail(self, failed: Mapping[Job, JpsiError]) -> None:
        """Know why it could not be done for these jobs."""
        self.failed.update(failed)
        if failed:
            self.heard(failed)

    def check(self, what: str) -> None:
        """Say for which jobs it was done and for which not, if there are any of these."""
        error = not_done(what, {job: self.failed.get(job) for job in self.given.values()})
        if error is not None:
            raise error


def not_done(what: str, outcomes: Mapping[Job, BaseException | None]) -> BaseException | None:
    """What is raised if something, such as "submitted", could not be done for each of some jobs.

    Args:
        what: what it was.
        outcomes: why it was not done for each job; None if it was.
    """
    failed = {job: it for job, it in outcomes.items() if isinstance(it, JpsiError)}
    strange = [it for it in outcomes.values() if it is not None and not isinstance(it, JpsiError)]
    if strange:
        return strange[0]
    return BulkException.of(what, [job for job in outcomes if job not in failed], failed) if failed else None


def by_id(jobs: Iterable[Job]) -> dict[str, Job]:
    """The jobs by their ids; ValueError for one that is given twice, TypeError for what is no job."""
    given: dict[str, Job] = {}
    for job in jobs:
        check_job(job)
        if job.id in given:
            msg = f"job {job.id} is given twice"
            raise ValueError(msg)
        given[job.id] = job
    return given


def check_job(job: object) -> None:
    """TypeError for what is no job."""
    if not isinstance(job, Job):
        msg = f"a Job is needed, such as Job(spec), not {type(job).__name__}"
        raise TypeError(msg)
