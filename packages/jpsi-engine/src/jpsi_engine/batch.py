"""The engine for batch systems: it runs jobs by the command lines that an executor's hooks describe.

The hooks say which command to run and what its output means; this engine runs it. The engine writes the
intent of a job to the spool before it submits the job. A tag that the batch system carries marks the job, and
the job's script claims its attempt before it does anything else. So each job runs once, even if the client,
the connection or a machine fails on the way.
"""

from __future__ import annotations

import contextlib
import logging
import os
import random
import threading
import time
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from jpsi import Streams
from jpsi.plugin import (
    Dependency,
    ExecutorHooks,
    FileTransport,
    JobSpec,
    JpsiError,
    Observation,
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
    serialization,
)
from jpsi_engine.host import check_way, is_on_network, is_transient
from jpsi_engine.monitor import EventStream, JobMonitor, PollLoop, Publisher, make_event_stream
from jpsi_engine.runner import resolve_streams
from jpsi_engine.scheduler import (
    Absences,
    Backend,
    JobView,
    NativeIds,
    PollInterval,
    QueuePoll,
    SharedPoll,
    find_intents,
    make_throttle,
    reused_native_ids,
    warn_of_damage,
)
from jpsi_engine.spool import (
    DAMAGE,
    EVERY_FAILURE,
    UNNAMED,
    UNREADABLE,
    WORK_DIRECTORY,
    ArrayMember,
    Intent,
    JobIntent,
    Spool,
    folder_name,
    prune,
    read_requeue_codes,
    store_requeue_codes,
    work_directory,
)
from jpsi_engine.spool import tag as tag_of
from jpsi_engine.submission import (
    ArrayElements,
    BulkSubmission,
    Control,
    DependencyStates,
    Handoff,
    LocalHost,
    MarkerSource,
    RunHost,
    SubmissionPipeline,
)
from jpsi_engine.verdict import is_conclusive, never_ran_status, unverified_status

log = logging.getLogger(__name__)

# How long to wait in all for submissions that other processes have under way. An orphaned submit command
# holds the lock until it ends, which may be never.
_JUDGE_SECONDS = 10.0
_LOCAL_GRACE_SECONDS = 0.5


class _BusyError(Exception):
    """Another process is submitting this job."""


class BatchEngine(Engine):
    """An engine that runs jobs through a batch system's commands."""

    is_bulk = True

    def __init__(self, setup: EngineSetup, hooks: ExecutorHooks) -> None:
        self._setup = setup
        self._backend = Backend(setup, hooks)
        self._config = config = self._backend.config
        self._run_host = make_run_host(setup)
        self._spool = self._run_host.spool
        self._handoff = Handoff(self._backend, self._run_host, config)
        self._handoff.grace_seconds = _LOCAL_GRACE_SECONDS
        self._reset_state()
        _engines.add(self)

    def _reset_state(self) -> None:
        """Set up empty state; after a fork, the jobs, threads and locks stay with the parent process."""
        self._pipeline = SubmissionPipeline(
            self._backend, self._run_host, self._handoff, self._setup, self._open_dependencies
        )
        self._lock = threading.Lock()
        self._native_ids = NativeIds(self._backend, self._spool, self._run_host.refresh)
        self._array_elements = ArrayElements(self._backend, self._spool, self._handoff, self._native_ids)
        self._opened: tuple[JobMonitor, PollLoop] | None = None
        # jobs that were attached to a malformed native id: `track` publishes the reason
        self._malformed: dict[str, str] = {}
        self._throttle = make_throttle(
            self._backend, SharedPoll(f"{self._spool.root}/room"), self._followed, time.monotonic
        )
        shortest = self._config.shortest_interval.total_seconds()
        self._dependency_states = DependencyStates(self._backend, self._spool, self._native_ids, shortest)
        # what runs while there are jobs to follow: the poll loop, and threads that receive events
        self._receivers: Sequence[PollLoop | MarkerSource | EventStream] = ()

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
        return self._run_host.problems(spec)

    def refused(self, spec: JobSpec) -> list[str]:
        """Return the reasons why a spec can never run; see `jpsi.plugin.engine.Engine`."""
        after, found = tuple(dependencies(spec)), list[str]()
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
        job_id, attempt = submission.job_id, submission.attempt
        monitor, _ = self._open()
        with self._throttle.reserve_one(job_id):
            accepted = self._pipeline.submit_one(submission)
            # Its folder holds nothing to read yet. Markers that other processes move into it are read once
            # the job has left the queue.
            monitor.add(
                JobView(job_id, job_id, attempt, accepted.native_id, accepted_at=accepted.begun, is_read=True)
            )
        if accepted.interrupt is not None:
            raise InterruptedSubmission(accepted.native_id, accepted.interrupt)
        return accepted.native_id

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
        with self._convert_read_errors():
            return self._dependency_states.open_dependencies(spec, self._open()[0])

    # ----------------------------------------------------------------------------------------- files

    def _open(self) -> tuple[JobMonitor, PollLoop]:
        with self._lock:
            if self._opened is not None:
                return self._opened
            try:
                self._spool.open()
            except OSError as e:
                msg = f"the work directory {self._spool.root} cannot be used: {e}"
                raise SubmitException(msg, e, transient=is_transient(e)) from e
            config = self._config
            is_shared = config.network_files
            if is_shared is None:
                is_shared = is_on_network(self._spool.events)
            timeout_seconds = config.grace.total_seconds()
            is_slow = is_shared or not self._run_host.is_local
            self._handoff.grace_seconds = (
                timeout_seconds if is_slow else min(timeout_seconds, _LOCAL_GRACE_SECONDS)
            )
            poll_interval = PollInterval(
                config.shortest_interval.total_seconds(),
                config.longest_interval.total_seconds(),
                random.SystemRandom().random,  # the user's program may seed the default generator
            )
            publisher = Publisher(
                self._backend,
                self._spool,
                grace=self._handoff.grace_seconds,
                timeout_seconds=timeout_seconds,
                publish=self._setup.publish,
            )
            monitor = JobMonitor(
                self._backend,
                self._spool,
                poll_interval=poll_interval,
                queue_poll=QueuePoll(self._backend, SharedPoll(self._spool.root), poll_interval),
                publisher=publisher,
                native_ids=self._native_ids,
                renamed=self._setup.renamed,
                # on a remote host, a marker may show late if no process was listening
                absences=Absences(self._spool.root, max(self._handoff.grace_seconds, timeout_seconds))
                if self._run_host.is_local
                else None,
            )
            marker_source = self._run_host.marker_source(monitor)
            if marker_source is not None:
                publisher.counted_seconds = marker_source.counted_seconds
            if self._run_host.remote_staging is not None:
                # imported late, as most programs have no remote jobs
                from jpsi_engine.remote import StageOutLoop  # noqa: PLC0415

                stage_out_loop = StageOutLoop(
                    self._spool, self._run_host.remote_staging, publisher, self._setup.staged
                )
                publisher.is_held = stage_out_loop.must_wait
            poll_loop = PollLoop(monitor, self._spool.events, is_announced=not is_shared)
            store_requeue_codes(self._spool.root, self._backend.requeue_exit_codes)
            self._opened = monitor, poll_loop
            event_stream = (
                make_event_stream(self._backend, monitor, poll_loop)
                if self._backend.can_stream_events
                else None
            )
            self._receivers = [it for it in (poll_loop, marker_source, event_stream) if it is not None]
            threading.Thread(target=self._prune, name="jpsi-prune", daemon=True).start()
            return self._opened

    def _prune(self) -> None:
        config = self._config
        try:
            prune(
                self._spool,
                time.time(),
                config.keep_time.total_seconds(),
                config.keep_count,
                self._is_conclusive,
                removed=self._run_host.remove,
            )
        except OSError:
            log.warning("old jobs in %s could not be removed", self._spool.root, exc_info=True)
        except JpsiError as e:
            log.info("old jobs could not be removed from the remote host; a later run tries again: %s", e)

    def _is_conclusive(self, markers: list[Any]) -> bool:
        return is_conclusive(markers, self._backend.requeue_exit_codes)

    @contextlib.contextmanager
    def _convert_read_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as e:
            msg = f"the jobs in {self._spool.root} cannot be read: {e}"
            raise SubmitException(msg, e, transient=is_transient(e)) from e

    # -------------------------------------------------------------------------------------- following

    def track(self, job_id: str) -> None:
        """Follow a job; see `jpsi.plugin.engine.Engine`."""
        monitor, _ = self._open()
        self._publish_malformed([job_id])
        job = monitor.get(job_id)
        if job is not None:
            monitor.follow(job, time.monotonic())
            self._start_threads()

    def track_many(self, job_ids: Sequence[str]) -> None:
        """Follow jobs; see `jpsi.plugin.engine.Engine`."""
        monitor, _ = self._open()
        self._publish_malformed(job_ids)
        jobs = [job for job_id in job_ids if (job := monitor.get(job_id)) is not None]
        monitor.follow_all(jobs, time.monotonic())
        self._start_threads()

    def _start_threads(self) -> None:
        try:
            for it in self._receivers:
                it.start()
        except RuntimeError:
            # the batch system has the jobs; the next `track` tries again to start the threads
            log.warning("no thread could be started to follow jobs", exc_info=True)

    def attach(self, job_id: str, native_id: str) -> str:
        """Bind a job to a job of the batch system; see `jpsi.plugin.engine.Engine`."""
        return self._attach_all({job_id: native_id})[job_id]

    def attach_many(self, native_ids: Mapping[str, str]) -> Outcomes:
        """Bind several jobs to jobs of the batch system; see `jpsi.plugin.engine.Engine`."""
        return self._attach_all(native_ids)

    def _attach_all(self, native_ids: Mapping[str, str]) -> Mapping[str, str]:
        """Bind jobs to jobs of the batch system; return native ids as the batch system spells them."""
        monitor, _ = self._open()
        named: dict[str, str] = {}
        for job_id, native_id in native_ids.items():
            try:
                named[job_id] = self._backend.canonical(native_id)
            except ValueError as e:
                self._malformed[job_id] = one_line(f"{native_id!r} cannot be the native id of a job: {e}")
        own = self._owners(frozenset(named.values()))
        for job_id, native_id in named.items():
            _attach(monitor, job_id, native_id, own.get(native_id))
        return {**native_ids, **named}

    def _publish_malformed(self, job_ids: Iterable[str]) -> None:
        """Publish the failure of jobs that were attached to a malformed native id."""
        for job_id in job_ids:
            message = self._malformed.pop(job_id, None)
            if message is not None:
                self._setup.publish(job_id, unverified_status(datetime.now(UTC), message))

    def _owners(self, native_ids: Collection[str]) -> Mapping[str, Intent]:
        """Return, by native id, the last attempts of the spool's jobs that own these native ids."""
        with self._convert_read_errors():
            own = self._native_ids.find_owners(native_ids)
            strange = [native_id for native_id in native_ids if native_id not in own]
            if strange and not self._run_host.is_local:
                # another machine may have submitted them
                self._run_host.import_other_jobs()
                own |= self._native_ids.find_owners(strange)
            others = reused_native_ids(self._backend, self._spool, own)
        return {native_id: intent for native_id, intent in own.items() if native_id not in others}

    def recover(self) -> Sequence[Recovered]:
        """Find the jobs on disk that are not final; see `jpsi.plugin.engine.Engine`."""
        monitor, _ = self._open()
        mirror_error = self._import_other_jobs()
        with self._convert_read_errors():
            job_ids = self._spool.job_ids()
            unseen = self._take_markers_of_lost_attempts(job_ids)
        intents = self._open_intents(monitor, job_ids, unseen)
        unnamed = [it.job_id for it in intents if self._native_ids.for_intent(it) is None]
        if unnamed and self._run_host.refresh([f"jobs/{job_id}" for job_id in unnamed]):
            intents = [it for it in intents if it.job_id not in unnamed]
            intents += self._open_intents(monitor, unnamed, unseen)
        tags = self._find_by_tags(self._without_native_id(intents))
        found, busy = self._judge_each(intents, tags, 0.0)
        # Only now wait for locks, so that a busy job does not delay the others.
        more, busy = self._judge_each(busy, tags, _JUDGE_SECONDS)
        found += more
        if busy:
            names = ", ".join(intent.job_id for intent in busy)
            log.warning(
                "being submitted by other processes, and left out until recover() is called again: %s", names
            )
        with self._convert_read_errors():
            elements = self._array_elements.find_unfinished(
                lambda job_id: self._is_known(monitor, job_id), job_ids, _JUDGE_SECONDS
            )
        for it in elements:
            if not _is_followed(monitor, it.intent.job_id):
                try:
                    found.append(_recovered(it.intent, it.native_id))
                except DAMAGE as e:
                    warn_of_damage(self._spool, it.intent.job_id, e)
        places = {it.intent.job_id: it.intent.place for it in elements}
        chosen = list(self._without_ended(_deduplicate(found)))
        if mirror_error is not None:
            if not chosen:
                raise mirror_error
            msg = "%s: jobs of other machines are left out until recover() is called again: %s"
            log.warning(msg, self._backend.display_name, mirror_error)
        # Only now, so that after an earlier error the next call still finds all of them.
        for job in chosen:
            if job.native_id is not None:
                place = places.get(job.job_id)
                monitor.add_found(JobView(job.job_id, job.job_id, job.attempt, job.native_id, place=place))
        return chosen

    def _import_other_jobs(self) -> JpsiError | None:
        """Mirror the jobs that other machines have submitted; return the error if that fails."""
        try:
            with self._convert_read_errors():
                self._run_host.import_other_jobs()
        except JpsiError as e:
            return e
        return None

    def _take_markers_of_lost_attempts(self, job_ids: Collection[str]) -> frozenset[str]:
        """Move markers of attempts without other files to their jobs' folders; return the job ids."""
        last: dict[str, int] = {}
        found = set()
        for marker in self._spool.news(frozenset(job_ids)):
            if marker.job_id not in last:
                last[marker.job_id] = self._spool.last_attempt(marker.job_id)
            if marker.attempt > last[marker.job_id] and self._spool.consume(marker):
                found.add(marker.job_id)
        return frozenset(found)

    def _open_intents(
        self, monitor: JobMonitor, job_ids: Iterable[str], unseen: Collection[str] = ()
    ) -> list[Intent]:
        """Return the last attempts of single jobs that are not final and that this process does not follow.

        The jobs in `unseen` are returned even if they are final, since no client has seen their end yet.
        """
        intents = []
        for job_id in job_ids:
            try:
                is_known = (
                    _is_followed(monitor, job_id) if job_id in unseen else self._is_known(monitor, job_id)
                )
                is_left_out = is_known or self._spool.last_array_member(job_id) is not None
                intent = None if is_left_out else self._spool.last_intent(job_id)
            except (OSError, *DAMAGE) as e:
                warn_of_damage(self._spool, job_id, e)
                continue
            if intent is not None:
                intents.append(intent)
            elif not is_left_out:
                warn_of_damage(self._spool, job_id)
        return intents

    def recall(self, job_ids: Collection[str]) -> Sequence[Recovered]:
        """Find single jobs on disk; see `jpsi.plugin.engine.Engine`."""
        monitor, _ = self._open()
        with self._convert_read_errors():
            intents = find_intents(self._spool, [it for it in job_ids if not _is_followed(monitor, it)])
        alone = [intent for intent in intents if intent.place is None]
        tags = self._find_by_tags(self._without_native_id(alone))
        found, _ = self._judge_each(alone, tags, _JUDGE_SECONDS)
        found += self._recalled_elements([intent for intent in intents if intent.place is not None])
        places = {intent.job_id: intent.place for intent in intents}
        for job in found:
            if job.native_id is not None:
                place = places[job.job_id]
                monitor.add_found(JobView(job.job_id, job.job_id, job.attempt, job.native_id, place=place))
        return found

    def _recalled_elements(self, intents: Sequence[Intent]) -> Iterator[Recovered]:
        """Yield the array elements to recall, but none of an array that is being submitted."""
        names = {intent.place.array for intent in intents if intent.place is not None}
        with self._convert_read_errors():
            settled = self._array_elements.resolve_native_ids(
                self._array_elements.known_native_ids(names), _JUDGE_SECONDS
            )
        for intent in intents:
            place = intent.place
            if place is not None and place.array in settled:
                (found,) = self._array_elements.element_native_ids(
                    [intent.job_id], [place.index], settled[place.array]
                )
                try:
                    yield _recovered(intent, found)
                except DAMAGE as e:
                    warn_of_damage(self._spool, intent.job_id, e)

    def _without_ended(self, found: Iterable[Recovered]) -> Iterator[Recovered]:
        """Yield the jobs that were neither cancelled before they began nor given up."""
        for it in found:
            try:
                is_over = it.native_id is None and (
                    self._was_stopped(it.job_id, it.attempt) or self._spool.is_given_up(it.job_id, it.attempt)
                )
            except OSError as e:
                warn_of_damage(self._spool, it.job_id, e)
                continue
            if not is_over:
                yield it

    def _was_stopped(self, job_id: str, attempt: int) -> bool:
        """Return True if a job was cancelled before it began, and record that as its end."""
        if self._spool.read_stop(job_id, attempt) is None:
            return False
        self._spool.finish(job_id, attempt, serialization.encode_status(never_ran_status()))
        return True

    def _is_known(self, monitor: JobMonitor, job_id: str) -> bool:
        return _is_followed(monitor, job_id) or self._spool.is_final(job_id, self._is_conclusive)

    def _without_native_id(self, intents: Iterable[Intent]) -> list[Intent]:
        """Return the attempts for which the spool does not show whether the batch system has them."""
        return [
            intent
            for intent in intents
            if self._native_ids.for_intent(intent) is None
            and not self._spool.is_revoked(intent.job_id, intent.attempt)
        ]

    def _find_by_tags(self, intents: Sequence[Intent]) -> Mapping[str, str]:
        """Ask the batch system, by tag, for the native ids that a submitter died before recording."""
        if not intents:
            return {}
        return self._backend.find_by_tags([tag_of(intent.job_id, intent.attempt) for intent in intents]) or {}

    def _judge_each(
        self, intents: Sequence[Intent], tags: Mapping[str, str], timeout_seconds: float
    ) -> tuple[list[Recovered], list[Intent]]:
        """Return the recovered jobs, and the intents that another process still holds.

        Args:
            intents: the attempts to recover.
            tags: the native ids that the batch system has, by tag.
            timeout_seconds: how long, in seconds and in all, to wait for other processes.
        """
        found, busy = [], []
        deadline = time.monotonic() + timeout_seconds
        for intent in intents:
            try:
                found.append(self._recovered(intent, tags, deadline))
            except _BusyError:
                busy.append(intent)
            except (OSError, *DAMAGE) as e:
                warn_of_damage(self._spool, intent.job_id, e)
        return found, busy

    def _recovered(self, intent: Intent, tags: Mapping[str, str], deadline: float) -> Recovered:
        job_id, attempt = intent.job_id, intent.attempt
        known = self._native_ids.for_intent(intent)
        native_id = None if known == UNREADABLE else known
        if native_id is None and self._has_run(intent):
            # the monitor looks for the job by its tag until its end is known
            native_id = tags.get(tag_of(job_id, attempt)) or f"{UNNAMED}{job_id}"
        if native_id is None:
            with self._spool.hold_lock(intent, max(0.0, deadline - time.monotonic())) as may_judge:
                if not may_judge:
                    raise _BusyError
                native_id = self._resolve_native_id(job_id, attempt, tags)
        return _recovered(intent, native_id)

    def _has_run(self, intent: Intent) -> bool:
        """Return True if any file shows that an attempt has begun; jpsi never submits it again then."""
        new = [it.name for it in self._spool.news({intent.job_id}) if it.attempt == intent.attempt]
        return self._spool.has_run(intent.job_id, intent.attempt, new)

    def _resolve_native_id(self, job_id: str, attempt: int, tags: Mapping[str, str]) -> str | None:
        """Return the native id of an attempt that no process is submitting; None if it can never run.

        The caller holds the lock of the attempt's intent. Without a native id, the attempt is withdrawn.
        """
        intent = self._spool.last_intent(job_id)
        if intent is not None and intent.attempt == attempt and intent.native_id is not None:
            return intent.native_id
        if self._spool.is_revoked(job_id, attempt):
            # its runner finds the claim taken and exits, even if the batch system starts it
            return None
        job_attempt = JobIntent(self._spool, job_id, attempt)
        found = tags.get(job_attempt.tag) or (self._backend.find_by_tags([job_attempt.tag]) or {}).get(
            job_attempt.tag
        )
        if found is None:
            return self._handoff.withdraw(job_attempt)
        if self._handoff.is_revoked(job_attempt):
            return None
        try:
            self._spool.record_native_id(job_id, attempt, found)
        except OSError:
            # the next process that recovers the job finds it by its tag, too
            log.warning("job %s: its native id %s could not be recorded", job_id, found, exc_info=True)
        return found

    def native_ids(self) -> list[str]:
        """Return the native ids of the jobs that are not final and can be attached to."""
        return [job.native_id for job in self._followed() if job.is_attachable]

    def _followed(self) -> list[JobView]:
        return [] if self._opened is None else self._opened[0].all()

    def streams(self, job_id: str) -> Streams | None:
        """Return where the output of a job goes; None if jpsi did not submit the job."""
        job = None if self._opened is None else self._opened[0].get(job_id)
        spool_id = job_id if job is None else job.spool_id
        content = self._intent_content(spool_id, None if job is None else job.place)
        if content is None:
            return None
        return resolve_streams(content, self._spool.folder(spool_id))

    def _intent_content(self, job_id: str, place: ArrayMember | None) -> Mapping[str, Any] | None:
        """Return the recorded intent of a job or array element."""
        if place is not None:
            return self._spool.arrays.read_element(place)
        intent = self._spool.last_intent(job_id)
        return None if intent is None else intent.content

    # --------------------------------------------------------------------------------------- requests

    def cancel(self, job_id: str) -> None:
        """Ask a job to end; see `jpsi.plugin.engine.Engine`."""
        monitor, _ = self._open()
        job = monitor.get(job_id)
        if job is None and not self._spool.is_final(job_id, self._is_conclusive):
            msg = f"job {job_id} is followed by another process; attach to it or recover it to cancel it"
            raise SubmitException(msg)
        if job is None:
            return
        self._control().cancel(job)

    def cancel_many(self, job_ids: Sequence[str]) -> Mapping[str, JpsiError]:
        """Ask jobs to end; see `jpsi.plugin.engine.Engine`."""
        monitor, _ = self._open()
        refused: dict[str, JpsiError] = {}
        jobs = []
        for job_id in job_ids:
            job = monitor.get(job_id)
            try:
                if job is None:
                    self.cancel(job_id)
                else:
                    jobs.append(job)
            except JpsiError as e:
                refused[job_id] = e
        return refused | self._control().cancel_many(jobs)

    def _control(self) -> Control:
        return Control(self._backend, *self._open(), self._run_host.share_files)

    def hold(self, job_id: str) -> None:
        """Keep a pending job from starting; see `jpsi.plugin.engine.Engine`."""
        self._control().hold(self._get_job(job_id))

    def release(self, job_id: str) -> None:
        """Let a held job start; see `jpsi.plugin.engine.Engine`."""
        self._control().release(self._get_job(job_id))

    def info(self, job_id: str) -> Observation | None:
        """Return what the batch system shows of a job now; see `jpsi.plugin.engine.Engine`."""
        job = self._get_job(job_id)
        return self._open()[0].info(job, time.monotonic, time.sleep)

    def _get_job(self, job_id: str) -> JobView:
        job = self._open()[0].get(job_id)
        if job is None:
            msg = f"job {job_id} has ended, or was never submitted here"
            raise SubmitException(msg)
        return job


def _recovered(intent: Intent, native_id: str | None) -> Recovered:
    return Recovered(
        job_id=intent.job_id,
        attempt=intent.attempt,
        spec=serialization.decode(intent.content["spec"]),
        native_id=native_id,
        time=datetime.fromisoformat(intent.content["time"]).astimezone(UTC),
    )


def _is_followed(monitor: JobMonitor, job_id: str) -> bool:
    """Return True if this process follows a job; after an interrupted submission it does not."""
    job = monitor.get(job_id)
    return job is not None and job.is_followed


def _deduplicate(found: Iterable[Recovered]) -> list[Recovered]:
    """Return one entry per job: the one that the batch system has, or else the last attempt.

    A job may occur twice, in its folder and in an array, if two processes submitted it at the same time.
    """
    chosen: dict[str, Recovered] = {}
    for it in found:
        known = chosen.get(it.job_id)
        if known is None or _rank(it) > _rank(known):
            chosen[it.job_id] = it
    return list(chosen.values())


def _rank(it: Recovered) -> tuple[bool, int]:
    return it.native_id is not None, it.attempt


def _attach(monitor: JobMonitor, job_id: str, native_id: str, own: Intent | None) -> None:
    if own is None:
        monitor.add(JobView(job_id, job_id, 0, native_id))
    else:
        monitor.add(JobView(job_id, own.job_id, own.attempt, native_id, place=own.place))


_engines: weakref.WeakSet[BatchEngine] = weakref.WeakSet()


def _after_fork() -> None:
    for engine in _engines:
        engine._reset_state()  # noqa: SLF001  the same module


os.register_at_fork(after_in_child=_after_fork)


def make_run_host(setup: EngineSetup) -> RunHost:
    """Return the run host of an executor.

    Raises:
        ConfigError: other users can change a directory on the path to the work directory.
    """
    name, configured = folder_name(setup.executor, setup.target), setup.config.work_directory
    is_far = isinstance(setup.transport, FileTransport)
    check_way(work_directory(None if is_far else configured) / name, WORK_DIRECTORY)
    if isinstance(setup.transport, FileTransport):
        # imported late, as most programs have no remote jobs
        from jpsi_engine.remote import RemoteHost  # noqa: PLC0415

        return RemoteHost(Spool(work_directory(None) / name), setup.transport, setup.config)
    return LocalHost(Spool(work_directory(configured) / name), setup.transport)
