"""Submits the jobs of an executor: checks them, hands them to its engine, and records the outcomes."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import attrs

from jpsi import notifier
from jpsi.api.validation import RequestCache, Validation
from jpsi.contract import Engine, ObserverHooks, Outcomes, Recovered, Submission
from jpsi.job import AnyExecutor, Job
from jpsi.model import (
    TIME_SOURCE,
    BulkException,
    JobSpec,
    JobState,
    JobStatus,
    JpsiError,
    SubmitException,
    copy_spec,
)

#: Called with the outcomes of some jobs: the error of each, or None for a job that was submitted.
Report = Callable[[Mapping[Job, JpsiError | None]], None]


@attrs.define(slots=True, eq=False)
class JobSubmitter:
    """The jobs that an executor has handed, or is handing, to its engine. Any thread may call its methods.

    Those that are public methods of `JobExecutor`, too, are described there.
    """

    _executor: AnyExecutor
    _engine: Engine
    _validation: Validation
    _observers: Observers
    #: The jobs about which the engine reports, by their ids.
    _jobs: dict[str, Job] = attrs.field(init=False, factory=dict)
    _lock: threading.Lock = attrs.field(init=False, factory=threading.Lock)
    _is_closed: bool = attrs.field(init=False, default=False)

    def submit(self, job: Job) -> None:
        """Submit one job, in the thread of the caller."""
        request = _Request(by_id([job]))
        self.check_open()
        with self._releasing(request):
            for submission in self._prepare(request):
                self._engine.submit_and_report(submission, functools.partial(self._record, request))
        request.check("submitted", job)

    def submit_many(
        self, jobs: Iterable[Job], report: Report = lambda _: None, *, checks_first: bool = False
    ) -> None:
        """Submit many jobs; `report` is called as soon as the outcome of some of them is known."""
        request = _Request(by_id(jobs), report)
        self.check_open()
        with self._releasing(request):
            submissions = self._prepare(request)
            ids = [it.job_id for it in submissions]
            if checks_first and request.failed:
                why = "jpsi did not submit it, because other jobs of the call cannot run"
                self._fail(request, {request.jobs[job_id]: SubmitException(why) for job_id in ids})
            else:
                self._engine.submit_many(submissions, functools.partial(self._record, request))
        request.check("submitted")

    def attach(self, jobs: Iterable[tuple[Job, str | int]], only: Job | None = None) -> None:
        """Attach NEW jobs, each given with its native id; the error of an `only` job is raised as it is."""
        pairs = [(job, _native_id_text(native_id)) for job, native_id in jobs]
        request = _Request(by_id(job for job, _ in pairs))
        with self._releasing(request):
            for job in request.jobs.values():
                try:
                    request.reserved[job] = job._reserve(self._executor)  # noqa: SLF001
                except JpsiError as e:
                    request.failed[job] = e
            free = {job.id: native_id for job, native_id in pairs if job in request.reserved}
            self._record(request, self._engine.attach_many(free), is_submitted=False)
        request.check("attached", only)

    def _prepare(self, request: _Request) -> list[Submission]:
        """Return the submissions of the valid jobs; the request records the errors of the others."""
        found: list[Submission] = []
        cache = RequestCache() if self._engine.is_bulk else None
        for job in request.jobs.values():
            try:
                attempt = request.reserved[job] = job._reserve(self._executor)  # noqa: SLF001  internal to jpsi
                submission = self._validation.submission(job, attempt, cache)
                self._register(job)
            except JpsiError as e:
                self._fail(request, {job: e})
            else:
                self._observers.add_job(job.id, submission.spec)
                found.append(submission)
        return found

    def _register(self, job: Job) -> None:
        with self._lock:
            if self._jobs.setdefault(job.id, job) is not job:
                msg = f"job {job.id} was recovered twice, and its other Job was submitted; use that one"
                raise SubmitException(msg)

    def _record(self, request: _Request, outcomes: Outcomes, *, is_submitted: bool = True) -> None:
        """Bind and follow the jobs that the backend has; release the others, so that a retry is possible.

        The outcomes are those of some jobs of the request. Attached jobs, not `is_submitted`, stay NEW.
        """
        bound, queued = list[str](), JobStatus(JobState.QUEUED, metadata={TIME_SOURCE: "observation"})
        failed: dict[Job, JpsiError] = {}
        try:
            for job_id, outcome in outcomes.items():
                job = request.jobs[job_id]
                if isinstance(outcome, JpsiError):
                    failed[job] = outcome
                    continue
                if not is_submitted:
                    # J/PSI 0: attach: a callback of the Job MUST NOT fire before the attachment is complete
                    job.spec = None
                    with self._lock:
                        self._jobs[job_id] = job
                job._bind(outcome, request.reserved[job])  # noqa: SLF001
                del request.reserved[job]
                bound.append(job_id)
                if is_submitted:
                    job._publish(queued)  # noqa: SLF001
        finally:
            self._track(bound)
        request.report(dict.fromkeys(request.jobs[job_id] for job_id in bound))
        self._fail(request, failed)

    def _track(self, job_ids: Sequence[str]) -> None:
        if job_ids:
            self._engine.track_many(job_ids)

    def _fail(self, request: _Request, failed: Mapping[Job, JpsiError]) -> None:
        for job in failed:
            if job in request.reserved:
                self._release(job, request.reserved.pop(job))
        request.failed.update(failed)
        if failed:
            request.report(failed)

    @contextlib.contextmanager
    def _releasing(self, request: _Request) -> Iterator[None]:
        """Release the jobs that have no outcome at the end of the block: the request was interrupted."""
        try:
            yield
        finally:
            for job, attempt in request.reserved.items():
                if job.executor is None:
                    self._release(job, attempt)
                    error = SubmitException(f"job {job.id}: it is not known whether it was submitted")
                    request.failed.setdefault(job, error)

    def _release(self, job: Job, attempt: int) -> None:
        with self._lock:
            if self._jobs.get(job.id) is job:
                del self._jobs[job.id]
                self._observers.forget_job(job.id)
        job._release(attempt)  # noqa: SLF001

    def cancel_many(self, jobs: Iterable[Job], unmet: str) -> None:
        """Request the end of many jobs."""
        request = _Request(by_id(jobs))
        own = {it.id: it for it in request.jobs.values() if it.executor is self._executor}
        request.failed.update({it: self.foreign(it) for it in request.jobs.values() if it.id not in own})
        running = [it for it, job in own.items() if not job.status.final]
        failed = self._engine.cancel_many(running, **({"unmet": unmet} if unmet else {}))
        request.failed.update({own[job_id]: e for job_id, e in failed.items()})
        request.check("cancelled")

    def foreign(self, job: Job) -> SubmitException:
        """Return the error of a request about a job of another executor."""
        return SubmitException(f"job {job.id} was not submitted to this executor, {self._executor.name}")

    def give_up(self, job_ids: Sequence[str] | None) -> None:
        """Make submissions of these jobs fail that wait for the quota; None means all, now and later."""
        self._engine.give_up(job_ids)

    def close(self) -> None:
        """Accept no more jobs; submissions that wait for the quota fail."""
        self._is_closed = True
        self.give_up(None)

    def check_open(self) -> None:
        """Raise SubmitException if the executor was closed."""
        if self._is_closed:
            raise SubmitException(f"the executor {self._executor.name} was closed and takes no more jobs")

    def follow_recovered(self, found: Iterable[Recovered]) -> list[Job]:
        """Follow jobs that the engine found on disk, and return them, oldest first.

        A job that another thread of this process is submitting is left out.
        """
        jobs, bound = [], []
        for recovered in sorted(found, key=lambda recovered: recovered.time):
            job = Job(recovered.spec)
            job._id = recovered.job_id  # noqa: SLF001
            job._attempt = recovered.attempt  # noqa: SLF001
            with self._lock:
                if job.id in self._jobs:
                    continue
                if recovered.native_id is not None:
                    self._jobs[job.id] = job
            jobs.append(job)
            if recovered.native_id is not None:
                job._reserve(self._executor)  # noqa: SLF001
                self._observers.add_job(job.id, recovered.spec)
                job._bind(recovered.native_id, recovered.attempt)  # noqa: SLF001
                job._publish(JobStatus(JobState.QUEUED, time=recovered.time))  # noqa: SLF001
                bound.append(job.id)
        self._track(bound)
        return jobs

    def find(self, job_id: str) -> Job | None:
        """Return the job with this id that has not ended; None if the engine does not have it."""
        with self._lock:
            return self._jobs.get(job_id)

    def forget(self, job_id: str) -> None:
        """Forget a job that has ended."""
        with self._lock:
            self._jobs.pop(job_id, None)


class Observers:
    """The observers of one executor; each receives the statuses in order, and none delays another."""

    def __init__(self, executor: str, observers: Sequence[ObserverHooks]) -> None:
        self._executor = executor
        self._observers = [(observer, notifier.Lane()) for observer in observers]
        self._specs: dict[str, JobSpec] = {}

    def add_job(self, job_id: str, spec: JobSpec) -> None:
        """Remember the spec of a job, which observers receive with its statuses."""
        if self._observers:
            # the observers of one job share a copy: they must not change the engine's spec
            self._specs[job_id] = copy_spec(spec)

    def forget_job(self, job_id: str) -> None:
        """Forget the spec of a job."""
        self._specs.pop(job_id, None)

    def notify(self, job_id: str, native_id: str | None, status: JobStatus) -> None:
        """Post a call of each observer to the notifier's threads."""
        spec = self._specs.get(job_id)
        for observer, lane in self._observers:
            call = functools.partial(
                observer.status_changed,
                executor=self._executor,
                job_id=job_id,
                native_id=native_id,
                spec=spec,
                status=status,
            )
            notifier.shared().post(lane, call)
        if status.final:
            self.forget_job(job_id)


@attrs.define(slots=True, eq=False)
class _Request:
    """A request about one or many jobs, and its progress."""

    jobs: Mapping[str, Job]
    report: Report = lambda _: None
    #: Jobs that are reserved for the executor but not bound to it yet, with their attempts' numbers.
    reserved: dict[Job, int] = attrs.field(init=False, factory=dict)
    failed: dict[Job, JpsiError] = attrs.field(init=False, factory=dict)

    def check(self, what: str, only: Job | None = None) -> None:
        """Raise if the request failed for any job: the error of the `only` job, if the caller gave one."""
        outcomes = {job: self.failed.get(job) for job in self.jobs.values()}
        error = failure(what, outcomes) if only is None else outcomes[only]
        if error is not None:
            raise error


def failure(what: str, outcomes: Mapping[Job, BaseException | None]) -> BaseException | None:
    """Return the exception to raise if an action, such as "submitted", failed for some jobs, else None."""
    failed = {job: it for job, it in outcomes.items() if isinstance(it, JpsiError)}
    others = [it for it in outcomes.values() if it is not None and not isinstance(it, JpsiError)]
    if others:
        return others[0]
    return BulkException.of(what, [job for job in outcomes if job not in failed], failed) if failed else None


def by_id(jobs: Iterable[Job]) -> dict[str, Job]:
    """Return the jobs by their ids; ValueError for a repeated job, TypeError for a value that is no job."""
    found: dict[str, Job] = {}
    for job in jobs:
        check_job(job)
        if job.id in found:
            raise ValueError(f"job {job.id} is given twice")
        found[job.id] = job
    return found


def _native_id_text(native_id: object) -> str:
    if isinstance(native_id, str) or type(native_id) is int:
        return str(native_id)
    raise TypeError(f"a native id is text, such as '4711', not {native_id!r}")


def check_job(job: object) -> None:
    """Raise TypeError if the value is no job."""
    if not isinstance(job, Job):
        raise TypeError(f"a Job is needed, such as Job(spec), not {type(job).__name__}")
