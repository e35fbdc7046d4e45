"""The engine for batch systems: it runs jobs by the command lines that an executor's hooks describe.

The hooks say which command to run and what its output means; this engine runs it. The engine writes the
intent of a job to the spool before it submits the job. A tag that the batch system carries marks the job, and
the job's script claims its attempt before it does anything else. So each job runs once, even if the client,
the connection or a machine fails on the way.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs

from jpsi import Streams
from jpsi.plugin import (
    Dependency,
    ExecutorHooks,
    FileTransport,
    JobSpec,
    JpsiError,
    Observation,
    Queue,
    SubmitContext,
    SubmitException,
)
from jpsi.plugin.engine import (
    SOME_TAG,
    Engine,
    EngineSetup,
    InterruptedSubmission,
    Outcomes,
    Preview,
    Recovered,
    Submission,
    dependencies,
    one_line,
    walltime_limit,
)
from jpsi_engine.array_expansion import array_problems, at_a_time
from jpsi_engine.host import check_way, convert_os_errors, is_on_network, reset_after_fork
from jpsi_engine.monitor import EventStream, JobMonitor, PollLoop, make_event_stream
from jpsi_engine.queue_limits import QUEUE_REASON, choose_queue
from jpsi_engine.runner import container_problems, resolve_streams, warning_problems
from jpsi_engine.scheduler import (
    Absences,
    Backend,
    JobView,
    NativeIds,
    PollInterval,
    QueuePoll,
    RetryLoop,
    SharedPoll,
    make_throttle,
    reused_native_ids,
)
from jpsi_engine.spool import (
    EVERY_FAILURE,
    UNNAMED,
    WORK_DIRECTORY,
    Intent,
    Spool,
    final_file,
    folder_name,
    read_requeue_codes,
    start_pruning,
    status_before,
    store_requeue_codes,
    work_directory,
)
from jpsi_engine.submission import (
    BulkSubmission,
    Control,
    DependencyStates,
    Handoff,
    Recovery,
    RunHost,
    SubmissionPipeline,
)
from jpsi_engine.verdict import is_refused, retry_problems, unverified_status

log = logging.getLogger(__name__)

_LOCAL_GRACE_SECONDS = 0.5
# How long the limits of queues count for further attempts of jobs.
_QUEUES_SECONDS = 60.0


class BatchEngine(Engine):
    """An engine that runs jobs through a batch system's commands."""

    is_bulk = True
    retries = True

    def __init__(self, setup: EngineSetup, hooks: ExecutorHooks) -> None:
        self._setup = setup
        self._backend = Backend(setup, hooks)
        self._config = self._backend.config
        self._run_host = make_run_host(setup)
        self._spool = self._run_host.spool
        self._handoff = Handoff(self._backend, self._run_host, _LOCAL_GRACE_SECONDS)
        self._reset_state()
        reset_after_fork(self, BatchEngine._reset_state)

    def _reset_state(self) -> None:
        """Set up empty state; after a fork, the jobs, threads and locks stay with the parent process."""
        self._pipeline = SubmissionPipeline(
            self._backend, self._run_host, self._handoff, self._setup, self._open_dependencies
        )
        self._retry_loop = RetryLoop(
            self, self._spool, self._setup, self._has_job, self._find_gone, self._renew, self._queues
        )
        self._queues_lock = threading.Lock()
        self._known_queues: Sequence[Queue] = ()
        self._queues_until = 0.0
        self._lock = threading.Lock()
        self._native_ids = NativeIds(self._backend, self._spool, self._run_host.refresh)
        self._opened: tuple[JobMonitor, PollLoop] | None = None
        # jobs that were attached to a malformed native id: `track` publishes the reason
        self._malformed: dict[str, str] = {}
        self._throttle = make_throttle(
            self._backend, SharedPoll(f"{self._spool.root}/quota"), self._followed, time.monotonic
        )
        shortest = self._config.shortest_interval.total_seconds()
        self._dependency_states = DependencyStates(self._backend, self._spool, self._native_ids, shortest)
        # what runs while there are jobs to follow: the poll loop, and threads that receive events
        self._receivers: Sequence[PollLoop | EventStream] = ()

    def offers(self) -> Mapping[str, Any]:
        """Return what the site's probe found; see `jpsi.plugin.engine.Engine`."""
        return self._backend.site.offers

    def record_site_policy(self) -> None:
        """Find out which exit codes are final, and keep that on disk; see `jpsi.plugin.engine.Engine`."""
        if read_requeue_codes(self._spool.root) is EVERY_FAILURE:
            monitor, _ = self._open()
            monitor.probe_site(time.monotonic)

    def problems(self, spec: JobSpec) -> list[str]:
        """Return the reasons why a spec cannot run at present; see `jpsi.plugin.engine.Engine`."""
        found = [*array_problems(spec), *self._run_host.problems(spec)]
        found += retry_problems(spec)
        if spec.attributes.retry and at_a_time(spec) is not None:
            found.append("attributes.retry: further attempts would not count for the limit of an array (%)")
        if spec.attributes.retry and not self._run_host.is_local:
            found += [
                f"{name}: with attributes.retry, jpsi stages no files to or from a remote host"
                for name in ("stage_in", "stage_out", "cleanup")
                if getattr(spec, name)
            ]
        return [*found, *warning_problems(spec, self._setup.config)]

    def choose_queue(
        self, spec: JobSpec, queues: Callable[[], Sequence[Queue]]
    ) -> tuple[JobSpec, Sequence[str]]:
        """Return a spec with a queue in place of `auto`; see `jpsi.plugin.engine.Engine`."""
        # without a limit of its own the job may take longer than any limit of a queue
        duration = walltime_limit(spec, self._config) or timedelta.max
        limited = attrs.evolve(spec, attributes=attrs.evolve(spec.attributes, duration=duration))
        name, why = choose_queue(limited, queues(), self._config.queue_order)
        if name is None:
            return spec, [f"attributes.queue_name: {why}"]
        attributes = attrs.evolve(spec.attributes, queue_name=name or None)
        attributes.custom_attributes = {**(attributes.custom_attributes or {}), QUEUE_REASON: why}
        return attrs.evolve(spec, attributes=attributes), ()

    def refused(self, spec: JobSpec) -> list[str]:
        """Return the reasons why a spec can never run; see `jpsi.plugin.engine.Engine`."""
        after, found = tuple(dependencies(spec)), [*container_problems(spec, self._config)]
        for native_id in (it.native_id for it in after if it.native_id):
            try:
                self._backend.canonical(native_id)
            except ValueError as e:
                found.append(f"attributes.after: {e}")
        context = SubmitContext(site=self._backend.site, job_id="", tag=SOME_TAG, after=after)
        try:
            self._backend.render(spec, context)
        except ValueError as e:
            found.append(str(e))
        return found

    # ------------------------------------------------------------------------------------- submission

    def submit(self, submission: Submission) -> str:
        """Submit one job; see `jpsi.plugin.engine.Engine`."""
        monitor, _ = self._open()
        with self._throttle.reserve_one(submission.job_id):
            accepted = self._pipeline.submit_jobs([submission])
            (job,) = accepted.jobs
            # Its folder holds nothing to read yet. Markers that other processes move into it are read once
            # the job has left the queue.
            job.is_read = True
            self._throttle.note_submitted(job)
            monitor.add(job)
        if accepted.interrupt is not None:
            raise InterruptedSubmission(job.native_id, accepted.interrupt)
        return job.native_id

    def submit_many(self, submissions: Sequence[Submission], report: Callable[[Outcomes], None]) -> None:
        """Submit many jobs; see `jpsi.plugin.engine.Engine`."""
        monitor, _ = self._open()
        BulkSubmission(self._backend, self._pipeline, self._throttle, monitor.add).submit(submissions, report)

    def give_up(self, job_ids: Collection[str] | None) -> None:
        """Stop waiting for quota for these jobs; see `jpsi.plugin.engine.Engine`."""
        self._throttle.cancel_waiting(job_ids)

    def preview(self, submission: Submission) -> Preview:
        """Return what would be submitted for a job; see `jpsi.plugin.engine.Engine`."""
        return self._pipeline.preview(submission)

    def _open_dependencies(self, spec: JobSpec) -> tuple[Dependency, ...]:
        with convert_os_errors(f"the jobs in {self._spool.root} cannot be read"):
            return self._dependency_states.open_dependencies(spec, self._open()[0])

    # ----------------------------------------------------------------------------------------- files

    def _open(self) -> tuple[JobMonitor, PollLoop]:
        with self._lock:
            if self._opened is None:
                with convert_os_errors(
                    f"the work directory {self._spool.root} cannot be used", self._spool.root
                ):
                    self._spool.open()
                self._opened = self._connect()
                start_pruning(self._spool, self._config, self._backend.is_conclusive, self._run_host.remove)
            return self._opened

    def _connect(self) -> tuple[JobMonitor, PollLoop]:
        """Connect what follows jobs: the monitor, its poll loop, and the threads that receive events."""
        is_shared, run_host = self._config.network_files, self._run_host
        if is_shared is None:
            is_shared = is_on_network(self._spool.events)
        monitor = self._make_monitor(is_slow=is_shared or not run_host.is_local)
        monitor.retried = self._retry_loop.add
        poll_loop = PollLoop(monitor, self._spool.events, is_announced=not is_shared)
        marker_source = run_host.connect(monitor, self._setup.staged)
        event_stream = None
        if self._backend.can_stream_events:
            event_stream = make_event_stream(self._backend, monitor, poll_loop)
        self._receivers = [it for it in (poll_loop, marker_source, event_stream) if it is not None]
        store_requeue_codes(self._spool.root, self._backend.requeue_exit_codes)
        return monitor, poll_loop

    def _make_monitor(self, *, is_slow: bool) -> JobMonitor:
        """Return the monitor; `is_slow` says that files of other machines may show late."""
        config = self._config
        timeout_seconds = config.grace.total_seconds()
        grace = timeout_seconds if is_slow else min(timeout_seconds, _LOCAL_GRACE_SECONDS)
        self._handoff.grace_seconds = grace
        poll_interval = PollInterval(
            config.shortest_interval.total_seconds(),
            config.longest_interval.total_seconds(),
            config.waiting_interval.total_seconds(),
            random.SystemRandom().random,  # the user's program may seed the default generator
        )
        return JobMonitor(
            self._backend,
            self._spool,
            grace=grace,
            timeout_seconds=timeout_seconds,
            is_local=self._run_host.is_local,
            publish=self._setup.publish,
            queue_poll=QueuePoll(self._backend, SharedPoll(self._spool.root), poll_interval),
            native_ids=self._native_ids,
            renamed=self._setup.renamed,
            # on a remote host, a marker may show late if no process was listening
            absences=Absences(self._spool.root, timeout_seconds) if self._run_host.is_local else None,
        )

    # -------------------------------------------------------------------------------------- following

    def track(self, job_id: str) -> None:
        """Follow a job; see `jpsi.plugin.engine.Engine`."""
        self.track_many([job_id])

    def track_many(self, job_ids: Sequence[str]) -> None:
        """Follow jobs; see `jpsi.plugin.engine.Engine`."""
        monitor, _ = self._open()
        for job_id in job_ids:
            message = self._malformed.pop(job_id, None)
            if message is not None:
                self._setup.publish(job_id, unverified_status(datetime.now(UTC), message))
        jobs = [job for job_id in job_ids if (job := monitor.get(job_id)) is not None]
        for job in jobs:
            # what was submitted just now as the first attempt has reached nothing
            is_new = job.is_read and job.attempt == 1
            reached = None if is_new else status_before(self._spool, job.job_id, job.attempt)
            if reached is not None:
                self._setup.publish(job.job_id, reached)
        if jobs:
            monitor.follow(jobs, time.monotonic())
            self._start_threads()

    def _start_threads(self) -> None:
        try:
            for it in self._receivers:
                it.start()
        except RuntimeError:
            # the batch system has the jobs; the next `track` tries again to start the threads
            log.warning("jpsi could not start a thread to follow jobs", exc_info=True)

    def note_deadline(self, seconds: float) -> None:
        """Poll more often for a while; see `jpsi.plugin.engine.Engine`."""
        if self._opened is not None:
            monitor, poll_loop = self._opened
            monitor.note_deadline(time.monotonic(), seconds)
            poll_loop.wake_if_due()

    def attach(self, job_id: str, native_id: str) -> str:
        """Bind a job to a job of the batch system; see `jpsi.plugin.engine.Engine`."""
        return self.attach_many({job_id: native_id})[job_id]

    def attach_many(self, native_ids: Mapping[str, str]) -> Mapping[str, str]:
        """Bind several jobs to jobs of the batch system; see `jpsi.plugin.engine.Engine`."""
        monitor, _ = self._open()
        named: dict[str, str] = {}
        for job_id, native_id in native_ids.items():
            try:
                named[job_id] = self._backend.canonical(native_id)
            except ValueError as e:
                self._malformed[job_id] = one_line(f"{native_id!r} cannot be the native id of a job: {e}")
        owners = self._owners(frozenset(named.values()))
        for job_id, native_id in named.items():
            own = owners.get(native_id)
            monitor.add(
                JobView(job_id, job_id, 0, native_id)
                if own is None
                else JobView(job_id, own.job_id, own.attempt, native_id, place=own.place)
            )
        return {**native_ids, **named}

    def _owners(self, native_ids: Collection[str]) -> Mapping[str, Intent]:
        """Return, by native id, the last attempts of the spool's jobs that own these native ids."""
        with convert_os_errors(f"the jobs in {self._spool.root} cannot be read"):
            own = self._native_ids.find_owners(native_ids)
            unknown = [native_id for native_id in native_ids if native_id not in own]
            if unknown and not self._run_host.is_local:
                # another machine may have submitted them
                self._run_host.import_other_jobs()
                own |= self._native_ids.find_owners(unknown)
            others = reused_native_ids(self._backend, self._spool, own)
        return {native_id: intent for native_id, intent in own.items() if native_id not in others}

    def recover(self) -> Sequence[Recovered]:
        """Find the jobs on disk that are not final; see `jpsi.plugin.engine.Engine`."""
        return self._recovery().recover()

    def recall(self, job_ids: Collection[str]) -> Sequence[Recovered]:
        """Find jobs on disk; see `jpsi.plugin.engine.Engine`."""
        return self._recovery().recall(job_ids)

    def _recovery(self) -> Recovery:
        monitor, _ = self._open()
        return Recovery(self._backend, self._run_host, self._handoff, self._native_ids, monitor)

    def native_ids(self) -> list[str]:
        """Return the native ids of the jobs that are not final and can be attached to."""
        return [job.native_id for job in self._followed() if job.is_attachable]

    def _followed(self) -> list[JobView]:
        return [] if self._opened is None else self._opened[0].all()

    def streams(self, job_id: str) -> Streams | None:
        """Return where the output of a job goes; None if jpsi did not submit the job."""
        job = None if self._opened is None else self._opened[0].get(job_id)
        spool_id = job_id if job is None else job.spool_id
        place = None if job is None else job.place
        if place is not None:
            content = self._spool.arrays.read_element(place)
        else:
            intent = self._spool.last_intent(spool_id)
            content = None if intent is None else intent.content
        return None if content is None else resolve_streams(content, self._spool.folder(spool_id))

    # --------------------------------------------------------------------------------------- requests

    def cancel(self, job_id: str) -> None:
        """Ask a job to end; see `jpsi.plugin.engine.Engine`."""
        for error in self.cancel_many([job_id]).values():
            raise error

    def cancel_many(self, job_ids: Sequence[str], *, unmet: str = "") -> Mapping[str, JpsiError]:
        """Ask jobs to end; see `jpsi.plugin.engine.Engine`."""
        monitor, _ = self._open()
        refused: dict[str, JpsiError] = {}
        jobs = []
        for job_id in job_ids:
            job = monitor.get(job_id)
            try:
                if job is None and not self._retry_loop.cancel(job_id):
                    # an attempt may have been made meanwhile
                    job = monitor.get(job_id)
                    if job is None and not self._spool.is_final(job_id, self._backend.is_conclusive):
                        msg = f"job {job_id} is followed by another process; "
                        raise SubmitException(f"{msg}attach to it or recover it to cancel it")
            except JpsiError as e:
                refused[job_id] = e
            if job is not None:
                jobs.append(job)
        refused |= self._control().cancel(jobs, unmet)
        again = [job.job_id for job in jobs if self._has_changed(job)]
        if again:
            # the attempt has ended meanwhile, and another follows
            refused = {job_id: it for job_id, it in refused.items() if job_id not in again}
            refused |= self.cancel_many(again, unmet=unmet)
        return refused

    def _has_changed(self, job: JobView) -> bool:
        """Return True if another attempt of a job follows, or is to follow, the one that was followed."""
        current = self._open()[0].get(job.job_id)
        return current is not job and (current is not None or job.job_id in self._retry_loop)

    def _has_job(self, job_id: str) -> bool:
        return self._open()[0].get(job_id) is not None

    def _renew(self, spec: JobSpec) -> None:
        """Prepare the spec of a further attempt: it is not held, and jpsi chooses a queue that it chose."""
        custom = spec.attributes.custom_attributes or {}
        custom.pop(self._backend.capabilities.hold_option, None)
        if custom.pop(QUEUE_REASON, None) is not None:
            spec.attributes.queue_name = spec.attributes.AUTO_QUEUE

    def _queues(self) -> Sequence[Queue]:
        """Return the queues; many jobs that are submitted again at the same time cause one query."""
        with self._queues_lock:
            # an outage may be over by now
            if not self._known_queues or time.monotonic() >= self._queues_until:
                self._known_queues = self._backend.queues()
                self._queues_until = time.monotonic() + _QUEUES_SECONDS
            return self._known_queues

    def _find_gone(self, intents: Sequence[Intent]) -> Collection[str]:
        """Return the jobs of attempts that the batch system does not have any more; cancel the others.

        A batch system may requeue a job after it has called it ended, as one whose node failed. Its runner
        finds the end, which therefore has to be where it looks before the batch system is asked.
        """
        if not self._run_host.share_files(
            [final_file(it.job_id, it.attempt) for it in intents], make_folders=True
        ):
            return ()
        jobs = []
        for it in intents:
            native_id = self._native_ids.own_id(it)
            if native_id is not None and not native_id.startswith(UNNAMED):
                jobs.append(JobView(it.job_id, it.job_id, it.attempt, native_id, place=it.place))
        seen = self._open()[0].query_now(jobs)
        live = [
            job
            for job in jobs
            if (shown := seen.get(job.job_id)) is not None and shown.exists and not shown.final
            if not is_refused(shown, job.owner_of(shown))
        ]
        if live:
            native_ids = {job.native_id: seen[job.job_id] for job in live}
            self._backend.cancel(list(native_ids), native_ids)
        return {it.job_id for it in intents}.difference(job.job_id for job in live)

    def _control(self) -> Control:
        return Control(self._backend, self._open()[0], self._start_threads, self._run_host.share_files)

    def hold(self, job_id: str) -> None:
        """Keep a pending job from starting; see `jpsi.plugin.engine.Engine`."""
        self._control().hold(self._get_job(job_id))

    def release(self, job_id: str) -> None:
        """Let a held job start; see `jpsi.plugin.engine.Engine`."""
        self._control().release(self._get_job(job_id))

    def info(self, job_id: str) -> Observation | None:
        """Return what the batch system shows of a job now; see `jpsi.plugin.engine.Engine`."""
        if job_id in self._retry_loop:
            return None
        job = self._get_job(job_id)
        return self._open()[0].info(job, time.monotonic, time.sleep)

    def _get_job(self, job_id: str) -> JobView:
        job = self._open()[0].get(job_id)
        if job is None and job_id in self._retry_loop:
            msg = f"job {job_id} waits for its next attempt, and is not in the queue until that is submitted"
            raise SubmitException(msg, transient=True)
        if job is None:
            raise SubmitException(f"job {job_id} has ended, or was never submitted here")
        return job


def make_run_host(setup: EngineSetup) -> RunHost:
    """Return the run host of an executor.

    Raises:
        ConfigError: other users can change a directory on the path to the work directory.
    """
    name, configured = folder_name(setup.executor, setup.target), setup.config.work_directory
    is_remote = isinstance(setup.transport, FileTransport)
    check_way(work_directory(None if is_remote else configured) / name, WORK_DIRECTORY)
    if isinstance(setup.transport, FileTransport):
        # imported late, as most programs have no remote jobs
        from jpsi_engine.remote import RemoteHost  # noqa: PLC0415

        return RemoteHost(Spool(work_directory(None) / name), setup.transport, setup.config)
    return RunHost(Spool(work_directory(configured) / name), setup.transport)
