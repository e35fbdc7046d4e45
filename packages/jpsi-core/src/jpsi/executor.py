"""The front that users submit jobs to, whatever executes them."""

from __future__ import annotations

import functools
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from jpsi.contract.protocols import EngineSetup, Streams, Submission
from jpsi.engine import notifier
from jpsi.engine.processes import ProcessEngine
from jpsi.job import Job, JobStatusCallback, StatusFunction, as_function
from jpsi.model.errors import InvalidJobException, PluginError, SubmitException
from jpsi.model.problems import problems, sound_part
from jpsi.model.resources import ResourceSpecV1
from jpsi.model.spec import JobSpec, copy_spec
from jpsi.model.states import JobState, JobStatus
from jpsi.registry.stack import executor_hooks, launcher_hooks

if TYPE_CHECKING:
    from packaging.version import Version

    from jpsi.contract.config import ExecutorConfig
    from jpsi.contract.hookspecs import LauncherHooks
    from jpsi.contract.protocols import Engine

_DEFAULT = "local"
_SINGLE = "single"
_SUBJECT = "the job"


class JobExecutor:
    """Submits jobs to one backend and follows them. All methods may be called from any thread.

    As a context manager it is closed at the end of the block: it takes no more jobs then; those that it
    has run on and are still followed.
    """

    def __init__(
        self,
        name: str | None = None,
        version_constraint: str | None = None,
        url: str | None = None,
        config: ExecutorConfig | None = None,
    ) -> None:
        """The same as `get_instance`; without a name, the default executor: `local`."""
        if url is not None:
            msg = f"no transport for {url!r}; without a url, jobs run on this machine or its cluster"
            raise PluginError(msg)
        candidate, hooks = executor_hooks(name or _DEFAULT, version_constraint)
        self._name = candidate.name
        self._version = candidate.version
        self._hooks = hooks
        self._launchers: dict[str, LauncherHooks] = {}
        self._lock = threading.Lock()
        self._jobs: dict[str, Job] = {}
        self._callback: StatusFunction | None = None
        self._lane = notifier.Lane()
        self._is_closed = False
        self._engine = self._make_engine(config)

    @classmethod
    def get_instance(
        cls,
        name: str,
        version_constraint: str | None = None,
        url: str | None = None,
        config: ExecutorConfig | None = None,
    ) -> Self:
        """An executor for the backend of this name.

        Args:
            name: the name of an installed executor; case does not matter.
            version_constraint: a PEP 440 specifier such as `">= 0.2"`; the highest version that fits is
                taken.
            url: where the backend is, if not on this machine.
            config: the executor's configuration; None is the default one.

        Raises:
            PluginError: no such executor is installed, or it cannot be loaded.
        """
        return cls(name, version_constraint, url, config)

    def _make_engine(self, config: ExecutorConfig | None) -> Engine:
        config_class = self._hooks.config_class()
        if config is not None and not isinstance(config, config_class):
            msg = f"the executor {self._name} is configured by {config_class.__name__}, not {config!r}"
            raise TypeError(msg)
        setup = EngineSetup(
            executor=self._name,
            version=self._version,
            config=config_class() if config is None else config,
            is_local=True,
            publish=self._take_news,
            process_engine=ProcessEngine,
        )
        engine = self._hooks.make_engine(setup=setup)
        if engine is None:
            msg = f"the executor {self._name} {self._version} offers no engine that this jpsi-core can use"
            raise PluginError(msg)
        return engine

    @property
    def name(self) -> str:
        """The executor's name, as its plugin is called."""
        return self._name

    @property
    def version(self) -> Version:
        """The version of the distribution that the executor came from."""
        from packaging.version import Version  # noqa: PLC0415  rarely asked for

        return Version(self._version)

    def submit(self, job: Job) -> None:
        """Hand a job to the backend; returns once the backend has accepted it.

        Raises:
            InvalidJobException: the job can never run here as it is. Nothing was submitted, the job is
                unchanged.
            SubmitException: the job did not reach the backend for another reason. It is still NEW and
                can be submitted again.
        """
        _check_job(job)
        if self._is_closed:
            msg = f"the executor {self._name} was closed and takes no more jobs"
            raise SubmitException(msg)
        attempt = job._take(self)  # noqa: SLF001  two halves of one thing
        try:
            submission = self._checked(job, attempt)
            self._know(job)
            native_id = self._engine.submit(submission)
        except BaseException:
            with self._lock:
                if self._jobs.get(job.id) is job:
                    del self._jobs[job.id]
            job._give_back(attempt)  # noqa: SLF001
            raise
        self._follow(job, native_id, attempt, JobStatus(JobState.QUEUED))

    def _know(self, job: Job) -> None:
        """Tell this job what the engine says about its id."""
        with self._lock:
            if self._jobs.setdefault(job.id, job) is not job:
                msg = f"job {job.id} was recovered twice, and the other one was submitted"
                raise SubmitException(msg)

    def _follow(self, job: Job, native_id: str, attempt: int, queued: JobStatus) -> None:
        job._bind(native_id, attempt)  # noqa: SLF001
        job._publish(queued)  # noqa: SLF001
        self._engine.track(job.id)

    def _checked(self, job: Job, attempt: int) -> Submission:
        if job.spec is None:
            msg = f"job {job.id} has no spec"
            raise InvalidJobException(msg)
        found = problems(job.spec)
        # What is wrong here is said together with what is wrong anywhere.
        spec = sound_part(job.spec) if found else copy_spec(job.spec)
        launcher, missing = self._launcher(spec)
        found += missing
        found += [problem for answer in self._hooks.check_spec(spec=spec) for problem in answer]
        found += self._engine.problems(spec)
        if launcher is not None:
            found += [problem for answer in launcher.check_spec(spec=spec) for problem in answer]
        if found or launcher is None:
            raise InvalidJobException.of(_SUBJECT, found)
        launch = launcher.launch(spec=spec)
        return Submission(job_id=job.id, attempt=attempt, spec=spec, launch=launch)

    def _launcher(self, spec: JobSpec) -> tuple[LauncherHooks | None, list[str]]:
        """The launcher for a spec, or what is wrong with the choice."""
        resources = spec.resources
        is_many = isinstance(resources, ResourceSpecV1) and resources.computed_process_count > 1
        name = spec.launcher
        if name is None:
            name = self._hooks.capabilities().default_launcher if is_many else _SINGLE
        try:
            if name not in self._launchers:
                self._launchers[name] = launcher_hooks(name)
        except PluginError as e:
            why = "" if spec.launcher is not None else f" ({_count(resources)} processes need it)"
            return None, [f"{e}{why}"]
        return self._launchers[name], []

    def cancel(self, job: Job) -> None:
        """Ask the backend to end a job; its status tells when it has.

        Raises:
            SubmitException: the job is not one of this executor's, or the request did not reach the
                backend.
        """
        if job.executor is not self:
            msg = f"job {job.id} was not submitted to this executor, {self._name}"
            raise SubmitException(msg)
        if not job.status.final:
            self._engine.cancel(job.id)

    def attach(self, job: Job, native_id: str) -> None:
        """Let a NEW job stand for one that the backend already has.

        Returns at once; what the backend says arrives as statuses. A job that it does not know becomes
        FAILED with the reason ATTACH_UNVERIFIED. The spec of the job is discarded.

        Raises:
            InvalidJobException: the job is not NEW.
        """
        _check_job(job)
        attempt = job._take(self)  # noqa: SLF001
        try:
            self._engine.attach(job.id, native_id)
        except BaseException:
            job._give_back(attempt)  # noqa: SLF001
            raise
        job.spec = None
        with self._lock:
            self._jobs[job.id] = job
        self._follow(job, native_id, attempt, JobStatus(JobState.QUEUED))

    def recover(self) -> Sequence[Job]:
        """The jobs of earlier processes that are not final on disk, followed again, oldest first.

        A job that never reached the backend comes back NEW with its id and can be submitted.

        Raises:
            SubmitException: the work directory cannot be read.
        """
        jobs = []
        for recovered in sorted(self._engine.recover(), key=lambda recovered: recovered.time):
            job = Job(recovered.spec)
            job._id = recovered.job_id  # noqa: SLF001
            job._attempt = recovered.attempt  # noqa: SLF001
            jobs.append(job)
            if recovered.native_id is not None:
                job._take(self)  # noqa: SLF001
                with self._lock:
                    self._jobs[job.id] = job
                queued = JobStatus(JobState.QUEUED, time=recovered.time)
                self._follow(job, recovered.native_id, recovered.attempt, queued)
        return jobs

    def list(self) -> list[str]:
        """The native ids of the jobs of this executor that are not final; each can be attached."""
        return self._engine.native_ids()

    def streams(self, job: Job) -> Streams | None:
        """Where the output of a job goes, or None if that is not known."""
        return self._engine.streams(job.id)

    def set_job_status_callback(self, callback: StatusFunction | JobStatusCallback | None) -> None:
        """Have `callback` called for every status of every job of this executor; None calls nobody.

        One call at a time; see also `Job.set_job_status_callback`.
        """
        self._callback = as_function(callback)

    def close(self) -> None:
        """Take no more jobs."""
        self._is_closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<JobExecutor {self._name} {self._version}>"

    def _take_news(self, job_id: str, status: JobStatus) -> None:
        """What the engine calls."""
        with self._lock:
            job = self._jobs.get(job_id)
        if job is not None and job._publish(status):  # noqa: SLF001
            with self._lock:
                self._jobs.pop(job_id, None)

    def _notify(self, job: Job, status: JobStatus) -> None:
        """Tell the executor's callback; called by the job under its lock."""
        callback = self._callback
        if callback is not None:
            notifier.shared().post(self._lane, functools.partial(self._deliver, callback, job, status))

    def _deliver(self, callback: StatusFunction, job: Job, status: JobStatus) -> None:
        if callback == self._callback:
            callback(job, status)


def _check_job(job: object) -> None:
    if not isinstance(job, Job):
        msg = f"a Job is needed, such as Job(spec), not {type(job).__name__}"
        raise TypeError(msg)


def _count(resources: object) -> int:
    return resources.computed_process_count if isinstance(resources, ResourceSpecV1) else 1
