"""The executor that users submit jobs to, whatever backend runs them."""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from jpsi import notifier
from jpsi.api import BulkOperations, NoTransport, Observers, System, Validation, check_job
from jpsi.contract import (
    EngineSetup,
    FileTransport,
    InterruptedSubmission,
    JobFiles,
    NotOffered,
    Output,
    Preview,
    Recovered,
    Site,
    Stream,
    Streams,
    Submission,
)
from jpsi.job import Job, JobStatusCallback, StatusFunction, as_function
from jpsi.launcher import Launchers
from jpsi.layers import Assembly, assemble, engine_hooks, open_transport
from jpsi.model import JobState, JobStatus, PluginError, SubmitException, is_job_id
from jpsi.registry import doubts, systems

if TYPE_CHECKING:
    from packaging.version import Version

    from jpsi.contract import Capabilities, Engine, EngineHooks, ExecutorConfig, Observation, Transport
    from jpsi.model import JobSpec, StagingProgress
    from jpsi.registry import Plugins

log = logging.getLogger(__name__)

Watcher = Callable[[Job, JobStatus], bool]
StagingFunction = Callable[[Job, "StagingProgress"], object]


class JobExecutor(BulkOperations):
    """An executor: submits jobs to one backend and follows them. Any thread may call its methods.

    As a context manager the executor is closed at the end of the block: it then accepts no more jobs; the
    jobs that it has run on and are still followed.
    """

    def __init__(
        self,
        name: str | None = None,
        version_constraint: str | None = None,
        url: str | None = None,
        config: ExecutorConfig | None = None,
    ) -> None:
        """Make an executor as `get_instance` does; no name means the configured default, else `local`."""
        assembly = assemble(name, version_constraint, url, config)
        self._name = assembly.stack.candidate.name
        self._version = assembly.stack.candidate.version
        self._target = assembly.target
        self._hooks = assembly.stack.hooks
        self._config = assembly.config
        self._systems = systems(assembly.plugins)
        self._warned: set[str] = set()
        self._launchers = Launchers(assembly.plugins, self._capabilities)
        self._observing = Observers(self._name, assembly.stack.observers)
        self._lock = threading.Lock()
        self._jobs: dict[str, Job] = {}
        self._callback: StatusFunction | None = None
        self._staging_callback: StagingFunction | None = None
        self._lane = notifier.Lane()
        self._watchers: tuple[Watcher, ...] = ()
        self._is_closed = False
        self._carrier = _Carrier(assembly.plugins)
        setup = self._setup(assembly)
        self._transport = setup.transport
        own_engine = self._hooks.make_engine(setup=setup)
        self._engine = self._batch_engine(assembly, setup) if own_engine is None else own_engine
        self._system = System(
            name=self._name,
            hooks=self._hooks,
            transport=setup.transport,
            site=lambda: self._site,
            has_commands=own_engine is None,
        )
        self._checking = Validation(
            name=self._name,
            hooks=self._hooks,
            engine=self._engine,
            site=lambda: self._site,
            defaults=assembly.defaults,
            launchers=self._launchers,
            is_here=self._is_here,
            warn=self._warn,
            has_policy=assembly.stack.has_policy,
            is_elsewhere=isinstance(setup.transport, FileTransport),
        )

    @classmethod
    def get_instance(
        cls,
        name: str,
        version_constraint: str | None = None,
        url: str | None = None,
        config: ExecutorConfig | None = None,
    ) -> Self:
        """Return an executor for the backend of this name.

        Args:
            name: the name of an installed executor, or of a configured target; case does not matter.
            version_constraint: a PEP 440 specifier such as `">= 0.2"`; the highest version that satisfies it
                is taken. None takes the configured constraint, if there is one.
            url: the address of the backend if it is not on this machine; None takes the target's URL.
            config: the executor's configuration; None takes the configured one.

        Raises:
            PluginError: no such executor is installed, or it cannot be loaded, or an override that the site
                adds to it cannot be loaded.
            ConfigError: the configuration is wrong.
        """
        return cls(name, version_constraint, url, config)

    def _setup(self, assembly: Assembly) -> EngineSetup:
        url, here = assembly.url, self._carrier.local_transport()
        return EngineSetup(
            executor=assembly.stack.candidate.canonical,
            version=self._version,
            target=assembly.target,
            config=assembly.config,
            transport=here if url is None else self._open(assembly, url, here),
            publish=self._take_news,
            renamed=self._take_native_id,
            staged=self._take_progress,
            process_engine=self._carrier.process_engine,
        )

    def _batch_engine(self, assembly: Assembly, setup: EngineSetup) -> Engine:
        assembly.stack.check_batch()
        return self._carrier.hooks.batch_engine(setup=setup, hooks=self._hooks)

    def _open(self, assembly: Assembly, url: str, here: Transport) -> Transport:
        return open_transport(assembly.plugins, url, assembly.config, here)

    def _capabilities(self) -> Capabilities:
        return self._hooks.capabilities(site=self._site)

    @property
    def _site(self) -> Site:
        return Site(config=self._config, offers=self._engine.offers())

    @property
    def name(self) -> str:
        """The executor's name, which is the name of its plugin."""
        return self._name

    @property
    def version(self) -> Version:
        """The version of the distribution that the executor came from."""
        from packaging.version import Version  # noqa: PLC0415  rarely asked for

        return Version(self._version)

    @property
    def system(self) -> System:
        """Access to facts about the batch system: its version, its queues, and whether it answers."""
        return self._system

    def submit(self, job: Job) -> None:
        """Submit a job to the backend; returns once the backend has accepted it.

        If the configuration limits the number of jobs, this call waits until the quota allows this one.

        Raises:
            InvalidJobException: the job can never run on this backend as it is. Nothing was submitted, the
                job is unchanged.
            SubmitException: the job did not reach the backend for another reason. It is still NEW and can be
                submitted again.
        """
        check_job(job)
        self._check_open()
        attempt = self._take(job)
        try:
            submission = self._checking.submission(job, attempt)
            self._know(job, submission)
            native_id = self._engine.submit(submission)
        except InterruptedSubmission as e:
            self._follow(job, e.native_id, attempt, JobStatus(JobState.QUEUED))
            raise e.interrupt from None
        except BaseException:
            self._drop(job, attempt)
            raise
        self._follow(job, native_id, attempt, JobStatus(JobState.QUEUED))

    def preview(self, job: Job) -> Preview:
        """Return what `submit` would send: the script and the command. Nothing is written or sent.

        Raises:
            InvalidJobException: the job can never run on this backend as it is.
            SubmitException: the engine of this executor offers no preview.
        """
        check_job(job)
        submission = self._checking.submission(job, 1)
        preview = self._engine.preview(submission)
        if isinstance(preview, NotOffered):
            msg = f"the executor {self._name} does not tell what it would submit"
            raise SubmitException(msg)
        return preview

    def _take(self, job: Job) -> int:
        return job._take(self)  # noqa: SLF001  two halves of one thing

    def _check_open(self) -> None:
        if self._is_closed:
            msg = f"the executor {self._name} was closed and takes no more jobs"
            raise SubmitException(msg)

    def _know(self, job: Job, submission: Submission) -> None:
        """Register a job, so that what the engine reports about its id reaches it."""
        with self._lock:
            if self._jobs.setdefault(job.id, job) is not job:
                msg = f"job {job.id} was recovered twice, and the other one was submitted"
                raise SubmitException(msg)
        self._observing.know(job.id, submission.spec)

    def _drop(self, job: Job, attempt: int) -> None:
        """Forget a job whose submission failed."""
        with self._lock:
            if self._jobs.get(job.id) is job:
                del self._jobs[job.id]
                self._observing.forget(job.id)
        job._give_back(attempt)  # noqa: SLF001

    def _follow(self, job: Job, native_id: str, attempt: int, queued: JobStatus) -> None:
        job._bind(native_id, attempt)  # noqa: SLF001
        job._publish(queued)  # noqa: SLF001
        self._engine.track(job.id)

    def _warn(self, spec: JobSpec) -> None:
        """Warn, once each, about a probable mistake that does not keep the job from running."""
        custom = spec.attributes.custom_attributes
        for doubt in doubts(custom or (), self._systems, self._name):
            if doubt not in self._warned:
                self._warned.add(doubt)
                log.warning("%s", doubt)

    def _is_here(self, job: Job) -> bool:
        """Return True if the other job belongs to the same batch system as this executor."""
        other = job.executor
        if other is None or other is self:
            return other is self
        mine, others = (self._name, self._target, self._config), (other._name, other._target, other._config)  # noqa: SLF001
        return mine == others

    def cancel(self, job: Job) -> None:
        """Request the end of a job; a later status reports it.

        Raises:
            SubmitException: the job is not one of this executor's, or the request did not reach the backend.
        """
        self._check_own(job)
        if not job.status.final:
            self._engine.cancel(job.id)

    def attach(self, job: Job, native_id: str) -> None:
        """Attach a NEW job to a job that the backend already has.

        Returns at once; the backend's reports arrive as statuses. The job stays NEW, and no callback is
        called, until the backend has confirmed that the native job exists. If the backend does not know it,
        the job becomes FAILED with the reason ATTACH_UNVERIFIED, and so does a job whose native id is
        malformed. The spec of the job is discarded.

        Raises:
            InvalidJobException: the job is not NEW.
            SubmitException: the files on disk cannot be read.
        """
        check_job(job)
        attempt = job._take(self)  # noqa: SLF001
        try:
            native_id = self._engine.attach(job.id, native_id)
        except BaseException:
            job._give_back(attempt)  # noqa: SLF001
            raise
        job.spec = None
        with self._lock:
            self._jobs[job.id] = job
        # J/PSI 0: attach: a callback registered on the Job MUST NOT fire before the attachment is complete
        job._bind(native_id, attempt)  # noqa: SLF001
        self._engine.track(job.id)

    def recover(self) -> Sequence[Job]:
        """Return the jobs of earlier processes that are not final on disk, oldest first; follow them again.

        A job that never reached the backend comes back NEW with its id and can be submitted. A job that
        another process is submitting at this moment is left out after 10 seconds, with a warning: call again
        for it. If the files are on a remote host, as with ssh, jobs that other machines submitted are found
        as well.

        Raises:
            SubmitException: the work directory cannot be read, or this machine has no records and the remote
                host that holds the files cannot be reached.
        """
        return self._take_over(self._engine.recover())

    def recall(self, job_ids: Iterable[str]) -> Sequence[Job]:
        """Return the jobs with these ids, oldest first, whichever process submitted them; follow them again.

        Other processes may follow them as well. A job that has ended is returned, too, and becomes final at
        once; a job that never reached the backend comes back NEW. Ids that are not on disk are left out, and
        so are jobs that another process is submitting at this moment. `jpsi_engine.job_store` lists the jobs
        on disk.

        Raises:
            SubmitException: the work directory cannot be read, or this executor keeps no records there.
        """
        # text that is no valid id is not on disk, and must not be used as a file name
        wanted = [job_id for job_id in dict.fromkeys(job_ids) if is_job_id(job_id)]
        with self._lock:
            known = [self._jobs[job_id] for job_id in wanted if job_id in self._jobs]
        have = {job.id for job in known}
        found = self._engine.recall([it for it in wanted if it not in have])
        if isinstance(found, NotOffered):
            msg = f"the executor {self._name} knows only the jobs that this process submitted"
            raise SubmitException(msg)
        return known + self._take_over(found)

    def _take_over(self, found: Iterable[Recovered]) -> list[Job]:
        """Follow jobs that the engine found on disk, and return them, oldest first."""
        jobs, bound = [], []
        for recovered in sorted(found, key=lambda recovered: recovered.time):
            job = Job(recovered.spec)
            job._id = recovered.job_id  # noqa: SLF001
            job._attempt = recovered.attempt  # noqa: SLF001
            if not self._is_new(job, is_bound=recovered.native_id is not None):
                continue
            jobs.append(job)
            if recovered.native_id is not None:
                job._take(self)  # noqa: SLF001
                self._observing.know(job.id, recovered.spec)
                job._bind(recovered.native_id, recovered.attempt)  # noqa: SLF001
                job._publish(JobStatus(JobState.QUEUED, time=recovered.time))  # noqa: SLF001
                bound.append(job.id)
        self._track(bound)
        return jobs

    def _is_new(self, job: Job, *, is_bound: bool) -> bool:
        """Return True unless another thread of this process is submitting the job that was found on disk."""
        with self._lock:
            if is_bound:
                return self._jobs.setdefault(job.id, job) is job
            return job.id not in self._jobs

    def hold(self, job: Job) -> None:
        """Keep a QUEUED job from starting until it is released; its state does not change.

        Raises:
            SubmitException: the job is not one of this executor's, runs, or has ended; or the backend
                refused, does not offer holds, or could not be reached.
        """
        self._check_own(job)
        self._engine.hold(job.id)

    def release(self, job: Job) -> None:
        """Let a held job start; raises the errors of `hold`."""
        self._check_own(job)
        self._engine.release(job.id)

    def info(self, job: Job) -> Observation | None:
        """Return the backend's current view of a job: its word for the state, nodes, queue position.

        Returns None if the backend does not mention the job.

        Raises:
            SubmitException: the job is not one of this executor's, or has ended; or the backend could not be
                reached.
        """
        self._check_own(job)
        return self._engine.info(job.id)

    def _check_own(self, job: Job) -> None:
        if job.executor is not self:
            msg = f"job {job.id} was not submitted to this executor, {self._name}"
            raise SubmitException(msg)

    def list(self) -> list[str]:
        """Return the native ids of the jobs of this executor that are not final; each can be attached.

        Each id occurs once, however many `Job` objects are attached to it.
        """
        return list(dict.fromkeys(self._engine.native_ids()))

    def streams(self, job: Job) -> Streams | None:
        """Return the paths of a job's output, or None if they are not known."""
        return self._engine.streams(job.id)

    def output(self, job: Job, stream: Stream = "stdout") -> Output | None:
        """Return one output stream of a job, local or remote; None if its path is not known."""
        streams = self.streams(job)
        return None if streams is None else Output.of(self.files, streams, stream)

    @functools.cached_property
    def files(self) -> JobFiles:
        """The files of the machine where the jobs run."""
        return self._carrier.hooks.open_files(transport=self._transport)

    def set_job_status_callback(self, callback: StatusFunction | JobStatusCallback | None) -> None:
        """Call `callback` for every status of every job of this executor; None removes the callback.

        The calls happen one at a time; see also `Job.set_job_status_callback`.
        """
        self._callback = as_function(callback)

    def set_staging_callback(self, callback: StagingFunction | None) -> None:
        """Call `callback` with the progress of files that are staged; None removes the callback.

        Progress is reported if the job's files are on a remote host, as with ssh: once a second for each file
        or directory that takes longer than that, and once when it has arrived. The thread that transfers the
        file makes the call: for stage in it is the submitting thread, for stage out another one. Several jobs
        may report at the same time. The transfer waits until the callback returns.
        """
        self._staging_callback = callback

    def _watch(self, watcher: Watcher) -> None:
        """Call `watcher` for every status, until it returns False.

        The call happens under the lock of the job: the watcher must return at once and must not use the job.
        """
        with self._lock:
            self._watchers = (*self._watchers, watcher)

    def find_out(self) -> None:
        """Record on disk how the site treats ended jobs, such as the exit codes after which it requeues them.

        A program that stays alive with its jobs records this by itself. A program that exits after submitting
        calls this method, so that a reader of the job store who does not query the batch system knows which
        failures are final. The site is queried once, and not again once the answer is on disk; a site that
        does not answer is skipped.

        Raises:
            SubmitException: the work directory cannot be used.
        """
        self._engine.find_out()

    def close(self) -> None:
        """Accept no more jobs; a `submit` that waits for the quota raises SubmitException."""
        self._is_closed = True
        self._give_up(None)

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
        """Publish a status; the engine calls this."""
        with self._lock:
            job = self._jobs.get(job_id)
        if job is not None and job._publish(status):  # noqa: SLF001
            with self._lock:
                self._jobs.pop(job_id, None)

    def _take_native_id(self, job_id: str, native_id: str) -> None:
        """Record a job's changed native id; the engine calls this."""
        with self._lock:
            job = self._jobs.get(job_id)
        if job is not None:
            job._rename(native_id)  # noqa: SLF001  two halves of one thing

    def _take_progress(self, job_id: str, progress: StagingProgress) -> None:
        """Pass on the progress of a staged file; the engine calls this."""
        callback = self._staging_callback
        with self._lock:
            job = self._jobs.get(job_id)
        if callback is None or job is None:
            return
        try:
            callback(job, progress)
        except Exception:
            # an error of a callback must not stop the transfer
            log.exception("the staging callback of the executor %s failed for job %s", self._name, job_id)

    def _notify(self, job: Job, status: JobStatus) -> None:
        """Pass a status to the executor's callback and the observers; the job calls this under its lock."""
        self._observing.tell(job.id, job.native_id, status)
        callback = self._callback
        if callback is not None:
            notifier.shared().post(self._lane, functools.partial(self._deliver, callback, job, status))
        for watcher in self._watchers:
            if not watcher(job, status):
                with self._lock:
                    self._watchers = tuple(it for it in self._watchers if it is not watcher)

    def _deliver(self, callback: StatusFunction, job: Job, status: JobStatus) -> None:
        if callback == self._callback:
            callback(job, status)


class _Carrier:
    """The installed engine distribution; a backend with an engine of its own works without it."""

    def __init__(self, plugins: Plugins) -> None:
        self._plugins = plugins

    @functools.cached_property
    def hooks(self) -> EngineHooks:
        """The hooks of the engine; PluginError if it is missing or broken."""
        return engine_hooks(self._plugins)

    def local_transport(self) -> Transport:
        """Return the transport that runs commands on this machine."""
        try:
            hooks = self.hooks
        except PluginError as e:
            # raised once a command is to be run: a backend with an engine of its own runs none
            return NoTransport(str(e))
        return hooks.local_transport()

    def process_engine(self, setup: EngineSetup) -> Engine:
        """Return the engine for processes of this machine."""
        return self.hooks.process_engine(setup=setup)
