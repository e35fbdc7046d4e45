"""The front that users submit jobs to, whatever executes them."""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from jpsi import notifier
from jpsi.api import Checking, Many, NoTransport, Observing, System, check_job
from jpsi.contract import (
    EngineSetup,
    FileTransport,
    InquiringEngine,
    InterruptedSubmission,
    JobFiles,
    Output,
    Preview,
    PreviewingEngine,
    RecallingEngine,
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


class JobExecutor(Many):
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
        """The same as `get_instance`; without a name, the configured default executor, else `local`."""
        assembly = assemble(name, version_constraint, url, config)
        self._name = assembly.stack.candidate.name
        self._version = assembly.stack.candidate.version
        self._target = assembly.target
        self._hooks = assembly.stack.hooks
        self._config = assembly.config
        self._systems = systems(assembly.plugins)
        self._warned: set[str] = set()
        self._launchers = Launchers(assembly.plugins, self._capabilities)
        self._observing = Observing(self._name, assembly.stack.observers)
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
        self._checking = Checking(
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
        """An executor for the backend of this name.

        Args:
            name: the name of an installed executor, or of a target that is configured; case does not
                matter.
            version_constraint: a PEP 440 specifier such as `">= 0.2"`; the highest version that fits is
                taken. None is the configured one, if there is one.
            url: where the backend is, if not on this machine; None is where the target is.
            config: the executor's configuration; None is the configured one.

        Raises:
            PluginError: no such executor is installed, or it, or something that the site lays over it,
                cannot be loaded.
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
        """The executor's name, as its plugin is called."""
        return self._name

    @property
    def version(self) -> Version:
        """The version of the distribution that the executor came from."""
        from packaging.version import Version  # noqa: PLC0415  rarely asked for

        return Version(self._version)

    @property
    def system(self) -> System:
        """What can be found out about the batch system: its version, its queues, and whether it answers."""
        return self._system

    def submit(self, job: Job) -> None:
        """Hand a job to the backend; returns once the backend has accepted it.

        Where the configuration limits how many jobs there are, it waits until there is room for this one.

        Raises:
            InvalidJobException: the job can never run here as it is. Nothing was submitted, the job is
                unchanged.
            SubmitException: the job did not reach the backend for another reason. It is still NEW and
                can be submitted again.
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
        """What `submit` would come to: the script, and the command. Nothing is written or sent.

        Raises:
            InvalidJobException: the job can never run here as it is.
            SubmitException: what carries out the jobs of this executor does not tell.
        """
        check_job(job)
        submission = self._checking.submission(job, 1)
        if not isinstance(self._engine, PreviewingEngine):
            msg = f"the executor {self._name} does not tell what it would submit"
            raise SubmitException(msg)
        return self._engine.preview(submission)

    def _take(self, job: Job) -> int:
        return job._take(self)  # noqa: SLF001  two halves of one thing

    def _check_open(self) -> None:
        if self._is_closed:
            msg = f"the executor {self._name} was closed and takes no more jobs"
            raise SubmitException(msg)

    def _know(self, job: Job, submission: Submission) -> None:
        """Tell this job what the engine says about its id."""
        with self._lock:
            if self._jobs.setdefault(job.id, job) is not job:
                msg = f"job {job.id} was recovered twice, and the other one was submitted"
                raise SubmitException(msg)
        self._observing.know(job.id, submission.spec)

    def _drop(self, job: Job, attempt: int) -> None:
        """A submission came to nothing."""
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
        """Warn, once each, of what is probably a mistake and keeps no job from running."""
        custom = spec.attributes.custom_attributes
        for doubt in doubts(custom or (), self._systems, self._name):
            if doubt not in self._warned:
                self._warned.add(doubt)
                log.warning("%s", doubt)

    def _is_here(self, job: Job) -> bool:
        """Whether a job is one of the same batch system."""
        other = job.executor
        if other is None or other is self:
            return other is self
        mine, others = (self._name, self._target, self._config), (other._name, other._target, other._config)  # noqa: SLF001
        return mine == others

    def cancel(self, job: Job) -> None:
        """Ask the backend to end a job; its status tells when it has.

        Raises:
            SubmitException: the job is not one of this executor's, or the request did not reach the
                backend.
        """
        self._check_own(job)
        if not job.status.final:
            self._engine.cancel(job.id)

    def attach(self, job: Job, native_id: str) -> None:
        """Let a NEW job stand for one that the backend already has.

        Returns at once; what the backend says arrives as statuses. The job stays NEW, and no callback is
        called, until the backend has said that there is such a job. One that it does not know becomes FAILED
        with the reason ATTACH_UNVERIFIED, and so does a job whose native id cannot be one. The spec of the
        job is discarded.

        Raises:
            InvalidJobException: the job is not NEW.
            SubmitException: what is on disk cannot be read.
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
        """The jobs of earlier processes that are not final on disk, followed again, oldest first.

        A job that never reached the backend comes back NEW with its id and can be submitted. One that another
        process is submitting at this moment is left out after 10 seconds, with a warning: call again for it.
        Where files are elsewhere, as behind ssh, jobs are found that other machines have submitted.

        Raises:
            SubmitException: the work directory cannot be read, or nothing is known here and the place where
                files are cannot be reached.
        """
        return self._take_over(self._engine.recover())

    def recall(self, job_ids: Iterable[str]) -> Sequence[Job]:
        """The jobs with these ids, whichever process submitted them, followed from now on, oldest first.

        Other processes may follow them as well. A job that has ended comes back, too, and becomes final at
        once; one that never reached the backend comes back NEW. Ids that nothing on disk has are left out,
        and jobs that another process is submitting at this moment. `jpsi_engine.job_store` lists
        what is on disk.

        Raises:
            SubmitException: the work directory cannot be read, or this executor keeps nothing there.
        """
        # what cannot be an id is not on disk, and names no file there
        wanted = [job_id for job_id in dict.fromkeys(job_ids) if is_job_id(job_id)]
        with self._lock:
            known = [self._jobs[job_id] for job_id in wanted if job_id in self._jobs]
        if not isinstance(self._engine, RecallingEngine):
            msg = f"the executor {self._name} knows only the jobs that this process submitted"
            raise SubmitException(msg)
        have = {job.id for job in known}
        return known + self._take_over(self._engine.recall([it for it in wanted if it not in have]))

    def _take_over(self, found: Iterable[Recovered]) -> list[Job]:
        """Follow jobs that were found on disk."""
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
        """Whether a job that was found on disk is not one that another thread is submitting here."""
        with self._lock:
            if is_bound:
                return self._jobs.setdefault(job.id, job) is job
            return job.id not in self._jobs

    def hold(self, job: Job) -> None:
        """Keep a QUEUED job from starting until it is released; its state does not change.

        Raises:
            SubmitException: the job is not one of this executor's, runs, or has ended; the backend refused,
                does not offer that, or was not reached.
        """
        self._check_own(job)
        self._engine.hold(job.id)

    def release(self, job: Job) -> None:
        """Let a held job start; raises as `hold` does."""
        self._check_own(job)
        self._engine.release(job.id)

    def info(self, job: Job) -> Observation | None:
        """What the backend says about a job now: its own word for the state, nodes, queue position and so on.

        None if the backend does not mention it.

        Raises:
            SubmitException: the job is not one of this executor's, or has ended; the backend was not
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

        An id stands there once, whatever the number of `Job` objects that are attached to it.
        """
        return list(dict.fromkeys(self._engine.native_ids()))

    def streams(self, job: Job) -> Streams | None:
        """Where the output of a job goes, or None if that is not known."""
        return self._engine.streams(job.id)

    def output(self, job: Job, stream: Stream = "stdout") -> Output | None:
        """What a job writes to a stream, wherever that is; None if nobody knows where."""
        streams = self.streams(job)
        return None if streams is None else Output.of(self.files, streams, stream)

    @functools.cached_property
    def files(self) -> JobFiles:
        """The files of the machine where jobs run."""
        return self._carrier.hooks.open_files(transport=self._transport)

    def set_job_status_callback(self, callback: StatusFunction | JobStatusCallback | None) -> None:
        """Have `callback` called for every status of every job of this executor; None calls nobody.

        One call at a time; see also `Job.set_job_status_callback`.
        """
        self._callback = as_function(callback)

    def set_staging_callback(self, callback: StagingFunction | None) -> None:
        """Have `callback` called with how far the staged files of jobs are; None calls nobody.

        That is where files are elsewhere, as behind ssh: once a second for each file or directory that takes
        longer, and then when it is there. It is called by the thread that moves the file, which is the one
        that submits for what is staged in, and another for what is staged out; of several jobs at once. The
        file waits until it returns.
        """
        self._staging_callback = callback

    def _watch(self, watcher: Watcher) -> None:
        """Have `watcher` called for every status, until it returns False.

        It is called under the lock of the job, so that it must return at once and do nothing with the job.
        """
        with self._lock:
            self._watchers = (*self._watchers, watcher)

    def find_out(self) -> None:
        """See to it that files tell how jobs end here, such as after which exit codes a site runs them again.

        A program that stays with its jobs does so by itself. One that ends once it has submitted them calls
        this, so that whoever lists jobs without asking the batch system knows which failures are final. The
        site is asked once, and not again once that is on disk; one that does not answer is left alone.

        Raises:
            SubmitException: the work directory cannot be used.
        """
        if isinstance(self._engine, InquiringEngine):
            self._engine.find_out()

    def close(self) -> None:
        """Take no more jobs; a `submit` that waits for room raises that."""
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
        """What the engine calls."""
        with self._lock:
            job = self._jobs.get(job_id)
        if job is not None and job._publish(status):  # noqa: SLF001
            with self._lock:
                self._jobs.pop(job_id, None)

    def _take_native_id(self, job_id: str, native_id: str) -> None:
        """What the engine calls."""
        with self._lock:
            job = self._jobs.get(job_id)
        if job is not None:
            job._rename(native_id)  # noqa: SLF001  two halves of one thing

    def _take_progress(self, job_id: str, progress: StagingProgress) -> None:
        """What the engine calls."""
        callback = self._staging_callback
        with self._lock:
            job = self._jobs.get(job_id)
        if callback is None or job is None:
            return
        try:
            callback(job, progress)
        except Exception:
            # the fence of callbacks: the file goes on
            log.exception("the staging callback of the executor %s failed for job %s", self._name, job_id)

    def _notify(self, job: Job, status: JobStatus) -> None:
        """Tell the executor's callback and the observers; called by the job under its lock."""
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
    """The distribution that carries out jobs; a backend with an engine of its own works without any."""

    def __init__(self, plugins: Plugins) -> None:
        self._plugins = plugins

    @functools.cached_property
    def hooks(self) -> EngineHooks:
        """Its hooks; PluginError if there is none, or it is broken."""
        return engine_hooks(self._plugins)

    def local_transport(self) -> Transport:
        """Return what runs commands on this machine."""
        try:
            hooks = self.hooks
        except PluginError as e:
            # raised again to those who need it: a backend with an engine of its own does not
            return NoTransport(str(e))
        return hooks.local_transport()

    def process_engine(self, setup: EngineSetup) -> Engine:
        """Return the engine for processes of this machine."""
        return self.hooks.process_engine(setup=setup)
