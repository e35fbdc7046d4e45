"""The executor that users submit jobs to, whatever backend runs them."""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Self

import attrs

from jpsi import notifier
from jpsi.api import JobSubmitter, Observers, System, Validation, check_job
from jpsi.contract import EngineSetup, JobFiles, NotOffered, Output, Preview, Site, Stream, Streams
from jpsi.job import Job, JobStatusCallback, StatusFunction, as_function
from jpsi.layers import assemble, engine_hooks, open_transport
from jpsi.model import JobStatus, PluginError, SubmitException, TransportError, is_job_id

if TYPE_CHECKING:
    from packaging.version import Version

    from jpsi.contract import EngineHooks, ExecutorConfig, Observation, Submission, Transport
    from jpsi.model import JobSpec, StagingProgress

log = logging.getLogger(__name__)

Watcher = Callable[[Job, JobStatus], bool]
StagingFunction = Callable[[Job, "StagingProgress"], object]


class JobExecutor:
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
        self._assembly = assembly = assemble(name, version_constraint, url, config)
        self._lock = threading.Lock()
        self._callback: StatusFunction | None = None
        self._staging_callback: StagingFunction | None = None
        self._lane = notifier.Lane()
        self._watchers: tuple[Watcher, ...] = ()
        self._transport = self._local_transport()
        if assembly.url is not None:
            self._transport = open_transport(assembly.plugins, assembly.url, assembly.config, self._transport)
        setup = EngineSetup(
            executor=assembly.candidate.canonical,
            version=assembly.candidate.version,
            target=assembly.target,
            config=assembly.config,
            transport=self._transport,
            publish=self._publish_status,
            renamed=self._rename_job,
            staged=self._report_progress,
            resubmission=self._resubmission,
            process_engine=lambda setup: self._engine_hooks.process_engine(setup=setup),
        )
        own_engine = assembly.hooks.make_engine(setup=setup)
        if own_engine is None:
            assembly.check_batch()
            self._engine = self._engine_hooks.batch_engine(setup=setup, hooks=assembly.hooks)
        else:
            self._engine = own_engine
        self._system = System(
            name=self.name,
            hooks=assembly.hooks,
            transport=self._transport,
            site=lambda: Site(config=assembly.config, offers=self._engine.offers()),
            has_commands=own_engine is None,
        )
        self._validation = Validation(assembly, self._engine, self._system)
        self._observers = Observers(self.name, assembly.observers)
        self._submitter = JobSubmitter(self, self._engine, self._validation, self._observers)

    @classmethod
    def get_instance(
        cls,
        name: str,
        version_constraint: str | None = None,
        url: str | None = None,
        config: ExecutorConfig | None = None,
    ) -> Self:
        """Return an executor for the backend, or the configured target, of this name; case does not matter.

        Of several versions, the highest that satisfies the constraint is taken, a PEP 440 specifier such as
        `">= 0.2"`. A constraint, URL or configuration that is None is the configured one, if there is one;
        without a URL the backend is on this machine.

        Raises:
            PluginError: no such executor is installed, or it cannot be loaded, or an override that the site
                adds to it cannot be loaded.
            ConfigError: the configuration is wrong.
        """
        return cls(name, version_constraint, url, config)

    @functools.cached_property
    def _engine_hooks(self) -> EngineHooks:
        """The hooks of the installed engine distribution; PluginError if it is missing or broken."""
        return engine_hooks(self._assembly.plugins)

    def _local_transport(self) -> Transport:
        """Return the transport that runs commands on this machine."""
        try:
            hooks = self._engine_hooks
        except PluginError as e:
            return _NoTransport(str(e))
        return hooks.local_transport()

    @property
    def name(self) -> str:
        """The executor's name, which is the name of its plugin."""
        return self._assembly.candidate.name

    @property
    def version(self) -> Version:
        """The version of the distribution that the executor came from."""
        from packaging.version import Version  # noqa: PLC0415  rarely used

        return Version(self._assembly.candidate.version)

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
            SubmitException: the job did not reach the backend for another reason. It is still NEW.
        """
        self._submitter.submit(job)

    def submit_many(self, jobs: Iterable[Job], *, checks_first: bool = False) -> None:
        """Submit many jobs to the backend with few requests; returns once it has accepted them.

        Jobs that look alike to the backend become native arrays, if it has arrays; each job keeps its own
        command, environment, streams, exit code, native id and cancel. Other jobs are submitted several at a
        time, unless the engine starts one after the other.
        An invalid job keeps no other from being submitted, unless `checks_first` is true: then nothing is
        submitted if any of the jobs can never run on this backend as it is. Refusals by the backend itself
        come later, and keep no other job from being submitted.

        Raises:
            BulkException: some jobs were not submitted; they are still NEW. It names them, each with the
                error that `submit` would have raised, and the jobs that were submitted.
            ValueError: a job is given twice; nothing was submitted.
            SubmitException: the executor was closed; nothing was submitted.
        """
        self._submitter.submit_many(jobs, checks_first=checks_first)

    def preview(self, job: Job) -> Preview:
        """Return what `submit` would send: the script and the command. Nothing is written or sent.

        Raises:
            InvalidJobException: the job can never run on this backend as it is.
            SubmitException: the engine of this executor offers no preview.
        """
        check_job(job)
        preview = self._engine.preview(self._validation.submission(job, 1))
        if isinstance(preview, NotOffered):
            raise SubmitException(f"the executor {self.name} cannot show what it would submit")
        return preview

    def cancel(self, job: Job) -> None:
        """Request the end of a job; a later status reports it.

        Raises:
            SubmitException: the job is not one of this executor's, or the request did not reach the backend.
        """
        self._check_own(job)
        if not job.status.final:
            self._engine.cancel(job.id)

    def cancel_many(self, jobs: Iterable[Job], *, unmet: str = "") -> None:
        """Request the end of many jobs with few requests; final ones are skipped.

        With `unmet`, the statuses of batch jobs say by it which dependency was not met.

        Raises:
            BulkException: the request failed for some jobs; it has the error of each, as `cancel` raises it.
            ValueError: a job is given twice; nothing was requested.
        """
        self._submitter.cancel_many(jobs, unmet)

    def attach(self, job: Job, native_id: str | int) -> None:
        """Attach a NEW job to a job that the backend already has; a number counts as its text.

        Returns at once; the backend's reports arrive as statuses. The job stays NEW, and no callback is
        called, until the backend has confirmed that the native job exists. If the backend does not know it,
        the job becomes FAILED with the reason ATTACH_UNVERIFIED, and so does a job whose native id is
        malformed. The spec of the job is discarded.

        Raises:
            InvalidJobException: the job is not NEW.
            SubmitException: the files on disk cannot be read.
        """
        self._submitter.attach([(job, native_id)], only=job)

    def attach_many(self, jobs: Iterable[tuple[Job, str | int]]) -> None:
        """Attach NEW jobs to jobs that the backend has, each given with its native id; as `attach`.

        Raises:
            BulkException: some could not be attached; it names them, each with the error that `attach` would
                have raised.
            ValueError: a job is given twice; none was attached.
        """
        self._submitter.attach(jobs)

    def recover(self) -> Sequence[Job]:
        """Return the jobs of earlier processes that are not final on disk, oldest first; follow them again.

        A job that never reached the backend comes back NEW with its id and can be submitted. A job that
        another process is submitting at this moment is left out after 10 seconds, with a warning: call again
        for it. If the files are on a remote host, as with ssh, jobs of other machines are found as well.

        Raises:
            SubmitException: the work directory cannot be read, or this machine has no records and the remote
                host that holds the files cannot be reached.
        """
        return self._submitter.follow_recovered(self._engine.recover())

    def recall(self, job_ids: Iterable[str]) -> Sequence[Job]:
        """Return the jobs with these ids, oldest first, whichever process submitted them; follow them again.

        Other processes may follow them as well. A job that has ended is returned, too, and becomes final at
        once; a job that never reached the backend comes back NEW. Ids that are not on disk are left out, and
        so are jobs that another process is submitting now. `jpsi_engine.job_store` lists the jobs on disk.

        Raises:
            SubmitException: the work directory cannot be read, or this executor keeps no records there.
        """
        # text that is no valid id is not on disk, and must not be used as a file name
        wanted = [job_id for job_id in dict.fromkeys(job_ids) if is_job_id(job_id)]
        known = {job_id: job for job_id in wanted if (job := self._submitter.find(job_id)) is not None}
        found = self._engine.recall([job_id for job_id in wanted if job_id not in known])
        if isinstance(found, NotOffered):
            raise SubmitException(f"the executor {self.name} knows only the jobs that this process submitted")
        return [*known.values(), *self._submitter.follow_recovered(found)]

    def hold(self, job: Job) -> None:
        """Keep a QUEUED job from starting until it is released; its state does not change.

        Raises:
            SubmitException: the job is not one of this executor's, runs, or has ended; or the backend
                refused, does not offer holds, or could not be reached.
        """
        self._check_live(job)
        self._engine.hold(job.id)

    def release(self, job: Job) -> None:
        """Let a held job start; raises the errors of `hold`."""
        self._check_live(job)
        self._engine.release(job.id)

    def info(self, job: Job) -> Observation | None:
        """Return the backend's current view of a job: its word for the state, nodes, queue position.

        Returns None if the job has ended, or the backend does not mention it.

        Raises:
            SubmitException: the job is not one of this executor's, or the backend could not be reached.
        """
        self._check_own(job)
        return None if job.status.final else self._engine.info(job.id)

    def _check_own(self, job: Job) -> None:
        if job.executor is not self:
            raise self._submitter.foreign(job)

    def _check_live(self, job: Job) -> None:
        self._check_own(job)
        if job.status.final:
            raise SubmitException(f"job {job.id} has ended: it is {job.status.state}")

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
        return self._engine_hooks.open_files(transport=self._transport)

    def set_job_status_callback(self, callback: StatusFunction | JobStatusCallback | None) -> None:
        """Call `callback` for every status of every job of this executor; None removes the callback.

        The calls happen one at a time. `Job.wait` returns a status only after this callback has returned for
        it; see also `Job.set_job_status_callback`.
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

    def record_site_policy(self) -> None:
        """Record on disk how the site treats ended jobs, such as the exit codes after which it requeues them.

        A program that stays alive with its jobs records this by itself. A program that exits after submitting
        calls this method, so that a reader of the job store who does not query the batch system knows which
        failures are final. The site is queried unless its answer is on disk; if it gives none, it is skipped.

        Raises:
            SubmitException: the work directory cannot be used.
        """
        self._engine.record_site_policy()

    def close(self) -> None:
        """Accept no more jobs; a `submit` that waits for the quota raises SubmitException."""
        self._submitter.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<JobExecutor {self.name} {self.version}>"

    def _publish_status(self, job_id: str, status: JobStatus) -> None:
        """Publish a status; the engine calls this."""
        job = self._submitter.find(job_id)
        if job is not None and job._publish(status):  # noqa: SLF001
            self._submitter.forget(job_id)

    def _resubmission(self, job_id: str, attempt: int, spec: JobSpec) -> Submission:
        """Return the submission of another attempt of a job; the engine calls this."""
        job = Job(spec)
        job._id = job_id  # noqa: SLF001  internal to jpsi
        return self._validation.submission(job, attempt)

    def _rename_job(self, job_id: str, native_id: str) -> None:
        """Record a job's changed native id; the engine calls this."""
        job = self._submitter.find(job_id)
        if job is not None:
            job._rename(native_id)  # noqa: SLF001  internal to jpsi

    def _report_progress(self, job_id: str, progress: StagingProgress) -> None:
        """Pass on the progress of a staged file; the engine calls this."""
        callback, job = self._staging_callback, self._submitter.find(job_id)
        if callback is None or job is None:
            return
        try:
            callback(job, progress)
        except Exception:
            # an error of a callback must not stop the transfer
            log.exception("the staging callback of the executor %s failed for job %s", self.name, job_id)

    def _notify(self, job: Job, status: JobStatus, count: int, *, is_behind: bool) -> bool:
        """Pass a status to the executor's callback and the observers; the job calls this under its lock.

        Args:
            job: the job.
            status: the status.
            count: the number of its statuses up to this one.
            is_behind: True if the callback has not returned for an earlier one.

        Returns True if it notes later, at the job, that the callback has returned.
        """
        self._observers.notify(job.id, job.native_id, status)
        callback = self._callback
        is_posted = callback is not None or is_behind
        if is_posted:
            notifier.shared().post(self._lane, functools.partial(self._deliver, callback, job, status, count))
        for watcher in self._watchers:
            if not watcher(job, status):
                with self._lock:
                    self._watchers = tuple(it for it in self._watchers if it is not watcher)
        return is_posted

    def _deliver(self, callback: StatusFunction | None, job: Job, status: JobStatus, count: int) -> None:
        try:
            if callback is not None and callback == self._callback:
                callback(job, status)
        finally:
            job._note_executor_delivery(count)  # noqa: SLF001  internal to jpsi


@attrs.frozen(slots=True)
class _NoTransport:
    """A transport that refuses every command; a backend with an engine of its own needs none."""

    #: The reason, and what the user can do.
    message: str
    is_local: bool = True

    def run(self, *_: Any, **__: Any) -> NoReturn:  # noqa: ANN401  whatever the command is
        """Raise TransportError."""
        raise TransportError(self.message)

    def close(self) -> None:
        """Do nothing: the transport holds no resources."""
