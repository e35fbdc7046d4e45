"""Judges the jobs that one executor follows by all that is known of them, and publishes the statuses.

`JobMonitor` calls it after each scan for markers and each poll. It publishes each status once and in order,
and calls no job lost before the batch system has left it out of its answers for long enough.
"""

from __future__ import annotations

import contextlib
import json
import logging
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import attrs

from jpsi import JobStatus
from jpsi.plugin import Evidence, JobState, Observation
from jpsi_engine.runner import add_failure_details
from jpsi_engine.scheduler import Absence, Backend, JobView, is_final
from jpsi_engine.spool import RETRY_KEY, Spool, decode_status, encode_status, record_end
from jpsi_engine.verdict import Facts, Marker, Stop, active_status, is_conclusive, judge

log = logging.getLogger(__name__)

#: So many complete snapshots of the queue in a row must leave a job out before it counts as gone.
ANSWERS = 2
# The codes of all failures.
_ALL_CODES = range(1, 256)
# So long must the queue leave out a job that the accounting calls waiting or running.
_CONTRADICTED_SECONDS = 3600.0


@attrs.define(slots=True, eq=False)
class Outbox:
    """A queue of statuses to publish.

    Any thread may put statuses in while it holds its own lock, and empties the outbox after it has released
    it.
    """

    #: Called with a job id and a status, by one thread at a time: one of those that call `flush`.
    _publish: Callable[[str, JobStatus], None]
    _waiting: deque[tuple[str, JobStatus]] = attrs.field(factory=deque, init=False)
    #: No thread waits for this lock: one that finds it taken leaves the statuses to its holder.
    _emptying: threading.Lock = attrs.field(factory=threading.Lock, init=False)

    def put(self, job_id: str, status: JobStatus) -> None:
        """Add a status after all that were put in before."""
        self._waiting.append((job_id, status))

    def flush(self) -> None:
        """Publish all statuses that were put in, on this thread or the one that is publishing already."""
        # again after the release: another thread may have found the lock taken just before it
        while self._waiting and self._emptying.acquire(blocking=False):
            try:
                while self._waiting:
                    # Removed only after that: an interrupted thread leaves the status to the next, and a
                    # repeat does no harm.
                    job_id, status = self._waiting[0]
                    try:
                        self._publish(job_id, status)
                    except Exception:
                        log.exception("job %s: publishing the status %s failed", job_id, status)
                    self._waiting.popleft()
            finally:
                self._emptying.release()


@attrs.define(slots=False, eq=False)
class Publisher:
    """The jobs of one executor, with the verdicts on them. Methods may be called from any thread."""

    _backend: Backend
    #: The store of ends that no marker shows.
    _spool: Spool
    #: Seconds after which a marker that a job has left is certainly visible to this process.
    _grace: float = attrs.field(kw_only=True)
    #: Seconds for which the batch system must not mention a job before it counts as lost.
    _timeout_seconds: float = attrs.field(kw_only=True)
    #: True if the jobs leave their files where this process reads them, and not on a remote host.
    _is_local: bool = attrs.field(default=True, kw_only=True)
    #: Publishes a status of a job, by its id, one at a time and without a lock.
    _outbox: Outbox = attrs.field(kw_only=True, alias="publish", converter=Outbox)
    #: Returns how many of the seconds between two times count, where the jobs cannot be observed all the
    #: time.
    counted_seconds: Callable[[float, float], float] = attrs.field(
        default=lambda since, now: now - since, init=False
    )
    #: Called with a job that is to be submitted again, and the record of its end; under the lock of all jobs.
    retried: Callable[[str, Mapping[str, Any]], None] = attrs.field(default=lambda *_: None, init=False)
    #: Returns True if the end of a job must not be published before the caller calls `end`.
    is_held: Callable[[JobView, JobStatus], bool] = attrs.field(default=lambda *_: False, init=False)
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)
    _jobs: dict[str, JobView] = attrs.field(factory=dict, init=False)
    _session_lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)
    #: The last verdict on a job of which only the queue is known: the observation, the time, and the status.
    _last_verdict: tuple[Observation, float, JobStatus | None] | None = attrs.field(default=None, init=False)

    def add(self, job: JobView) -> None:
        """Register a job."""
        with self._lock:
            self._jobs[job.job_id] = job

    def add_found(self, job: JobView) -> None:
        """Register a job, unless it is registered already."""
        with self._lock:
            self._jobs.setdefault(job.job_id, job)

    def get(self, job_id: str) -> JobView | None:
        """Return the job with this id; None if it is final or was never registered."""
        with self._lock:
            return self._jobs.get(job_id)

    def all(self) -> list[JobView]:
        """Return every job that is not final."""
        with self._lock:
            return list(self._jobs.values())

    def has_followed(self) -> bool:
        """Return True if the statuses of any job are published; called once for each of many jobs."""
        with self._lock:
            return any(job.is_followed for job in self._jobs.values())

    @contextlib.contextmanager
    def session(self) -> Iterator[None]:
        """Hold the lock under which jobs are changed and judged; publish the verdicts after its release.

        One thread at a time holds it. The lock is not reentrant.
        """
        try:
            with self._session_lock:
                yield
        finally:
            self._outbox.flush()

    def read_folder(self, job: JobView, now: float) -> bool:
        """Read what the spool holds about a job, and judge it; return as `add_markers` does.

        Raises:
            OSError: the job's folder cannot be read.
        """
        if not job.has_runner:
            return False
        content = self._spool.read_final(job.spool_id, job.attempt)
        if content is not None:
            self._end(job, decode_status(content))
            return False
        job.stop = self._spool.find_stop(job.spool_id, job.attempt)
        markers = job.own_markers(
            self._spool.collect([job.spool_id], enter=lambda _: self.make_folder(job))[job.spool_id]
        )
        return bool(markers) and self.add_markers(job, markers, now)

    def add_markers(self, job: JobView, markers: Iterable[Marker], now: float) -> bool:
        """Add markers to a job and judge it; return True if only the batch system knows how it ended."""
        is_end = job.add_markers(markers, now)
        if is_end:
            # another process may have stopped it
            job.stop = job.stop or self._spool.find_stop(job.spool_id, job.attempt)
        self.judge(job, now)
        return is_end and not self.is_conclusive(job)

    def is_conclusive(self, job: JobView) -> bool:
        """Return True if the markers of a job say all that there is to know about how it ended."""
        return is_conclusive(job.markers, self._provisional_codes(job), job.stop)

    def _provisional_codes(self, job: JobView) -> Collection[int]:
        """Return the exit codes of a job after which the batch system may know more of its end."""
        if job.may_be_retried is None:
            job.may_be_retried = job.has_runner and self._spool.may_be_retried(job.spool_id, job.attempt)
        # a job may end by itself after the system has taken the memory of one of its processes
        return _ALL_CODES if job.may_be_retried else self._backend.requeue_exit_codes

    def judge(self, job: JobView, now: float) -> None:
        """Publish the status that follows from all that is known of a job."""
        status = self._status(job, now)
        job.needs_verdict = False
        if status is not None and status.final and self.is_held(job, status):
            status = active_status(job.markers)
        if status is not None and status.final:
            self._end(job, status)
        elif status is not None:
            self._outbox.put(job.job_id, status)

    def end(self, job: JobView, status: JobStatus) -> None:
        """Publish the end of a job that `is_held` had held back."""
        with self.session():
            self._end(job, status)

    def _status(self, job: JobView, now: float) -> JobStatus | None:
        """Return the status that follows from all that is known of a job.

        The verdict is reused for jobs of which the queue says the same and nothing else is known.
        """
        if job.queued is None or not job.is_only_queued:
            return judge(self._facts(job, now))
        last = self._last_verdict
        if last is None or last[0] is not job.queued or last[1] != now:
            self._last_verdict = last = job.queued, now, judge(self._facts(job, now))
        return last[2]

    def _facts(self, job: JobView, now: float) -> Facts:
        if is_final(job.queued) and job.ended_since is None:
            job.ended_since = now
        known, overdue = self.absence(job, now), self._overdue(job)
        absent_for, is_late = known.absent or 0.0, (known.unaccounted or 0.0) >= overdue
        return Facts(
            system=self._backend.name,
            now=datetime.now(UTC),
            has_runner=job.has_runner,
            markers=job.markers,
            requeue_exit_codes=self._provisional_codes(job),
            stop=job.stop,
            queued=job.queued,
            accounted=job.accounted,
            unmentioned=job.absent_since is not None,
            absent=known.answers >= ANSWERS,
            denied=job.is_denied and known.answers >= ANSWERS,
            foreign_job=job.foreign_job,
            unaccounted=_is_unaccounted(job, is_late, absent_for),
            settled=(known.over or 0.0) >= self._grace,
            overdue=absent_for >= overdue,
            dropped=(
                job.is_dropped
                and job.is_unaccounted
                and known.answers >= ANSWERS
                and absent_for >= self._grace
            ),
            is_traceless=self._is_traceless(job),
            timeout_seconds=overdue,
        )

    def _is_traceless(self, job: JobView) -> bool:
        """Return True if the batch system calls a job completed that has left nothing that a run leaves.

        PBS and Torque report exit code 0 as well for a job whose processes they do not find.
        """
        ends = (it for it in (job.queued, job.accounted) if it is not None and it.final)
        is_completed = next((it.state is JobState.COMPLETED for it in ends), False)
        if not is_completed or job.markers or not (job.has_runner and self._is_local):
            return False
        return not self._spool.has_run(job.spool_id, job.attempt)

    def absence(self, job: JobView, now: float) -> Absence:
        """Return how long a job has been missing, by what this process and earlier ones have seen."""

        def total(since: float | None, until: float, before: float | None) -> float | None:
            return None if since is None else self.counted_seconds(since, until) + (before or 0.0)

        earlier = job.earlier_absence
        return Absence(
            answers=job.absences and job.absences + earlier.answers,
            absent=total(job.absent_since, now, earlier.absent),
            # until its last answer, which may be old
            unaccounted=total(job.unaccounted_since, job.accounting_queried, earlier.unaccounted),
            over=total(job.ended_since, now, earlier.over),
        )

    def _overdue(self, job: JobView) -> float:
        """Return for how many seconds a job must be missing before it counts as lost."""
        overdue = max(self._grace, self._timeout_seconds)
        # a job that was attached has no runner whose marker may still be on its way
        visible = self._backend.capabilities.visible_within if job.is_unverified else None
        return overdue if visible is None else min(visible, overdue)

    def is_lost(self, job: JobView, now: float) -> bool:
        """Return True if a job would be judged lost, as the batch system has not mentioned it."""
        if self.absence(job, now).answers < ANSWERS:
            return False
        status = judge(self._facts(job, now))
        return status is not None and status.final and status.evidence is Evidence.ABSENCE

    def _end(self, job: JobView, status: JobStatus) -> None:
        """Publish the end of a job, or have it submitted again, as the record says that the spool holds.

        If it holds none, it is this end.
        """
        started = active_status(job.markers)
        try:
            content = self._record(job, status, started)
        except OSError as e:
            # without the record no attempt may follow; the job is judged again
            self._spool.retry_writer.failed(e)
            return
        # who has attached to a native id follows that alone
        is_retried = content is not None and bool(content.get(RETRY_KEY)) and job.job_id == job.spool_id
        with self._lock:
            if self._jobs.get(job.job_id) is not job:
                return
            if content is not None and is_retried:
                self.retried(job.job_id, content)
            del self._jobs[job.job_id]
        if started is not None:
            # the job was too quick to be observed running; its runner has noted when it began
            self._outbox.put(job.job_id, started)
        if is_retried:
            return
        if content is None:
            status = add_failure_details(self._spool, job.spool_id, job.attempt, status)
            self._write(job, status)
        self._outbox.put(job.job_id, status if content is None else decode_status(content))

    def _record(self, job: JobView, status: JobStatus, started: JobStatus | None) -> Mapping[str, Any] | None:
        """Return the record of the end of a job that the spool holds; None if there is none.

        If another attempt may follow, the record is written first.

        Raises:
            OSError: it could not be written.
        """
        if not job.has_runner:
            return None
        content = self._spool.read_final(job.spool_id, job.attempt)
        if content is not None or not self._spool.may_be_retried(job.spool_id, job.attempt):
            return content
        status = add_failure_details(self._spool, job.spool_id, job.attempt, status)
        began = None if started is None else started.time
        try:
            return record_end(self._spool, job.spool_id, job.attempt, status, began)
        except FileNotFoundError:
            log.warning("job %s is not submitted again: its folder was removed", job.job_id)
            return None

    def _write(self, job: JobView, status: JobStatus) -> None:
        # A process that does not know the site's requeue codes yet takes no failure from markers alone. The
        # check here assumes the same by passing every code.
        is_in_marker = status.evidence is Evidence.MARKER and is_conclusive(job.markers, range(1, 256))
        if not job.has_runner or (is_in_marker and job.stop is None):
            return
        try:
            content = encode_status(status)
            json.dumps(content)
        except (TypeError, ValueError):
            # details of a plugin that JSON cannot hold
            log.warning("job %s: its final status could not be recorded", job.job_id, exc_info=True)
            return

        def write() -> None:
            self.make_folder(job)
            self._spool.finish(job.spool_id, job.attempt, content)

        self._spool.retry_writer.write(f"the end of job {job.job_id}", write)

    def record_stop(self, job: JobView, stop: Stop) -> None:
        """Store in the spool that jpsi is about to end a job, before the batch system gets the cancel."""
        if not job.has_runner:
            job.stop = job.stop or stop
            return
        try:
            self.make_folder(job)
            stop = attrs.evolve(stop, is_late=self._has_exit_marker(job))
            job.stop = self._spool.stop(job.spool_id, job.attempt, stop)
        except FileNotFoundError:
            # The job's folder was removed; the job is ended all the same.
            job.stop = job.stop or stop

    def record_repeated_stop(self, job: JobView) -> None:
        """Store in the spool how often the cancel of a job was repeated; never raises."""
        if job.stop is None or not job.has_runner:
            return
        job.stop = attrs.evolve(job.stop, repeats=job.cancel_repeats)
        with contextlib.suppress(OSError):
            self._spool.replace_stop(job.spool_id, job.attempt, job.stop)

    def _has_exit_marker(self, job: JobView) -> bool:
        """Return True if a job has left an exit marker that is visible now."""
        found = [*self._spool.new_markers({job.spool_id}), *self._spool.consumed(job.spool_id)]
        return any(it.kind == "exit" and it.attempt == job.attempt for it in found)

    def make_folder(self, job: JobView) -> None:
        """Make the folder of an array element, which has none before it runs."""
        if job.place is not None:
            self._spool.adopt(job.spool_id, job.attempt, job.place)


def _is_unaccounted(job: JobView, is_late: bool, absent_for: float) -> bool:  # noqa: FBT001  one caller
    """Return True if the accounting will say nothing more of a job.

    A record that calls the job waiting or running is a sign of life. After an hour the queue outweighs it: if
    the accounting was down when the job ended, it may call it running for ever.
    """
    if job.is_unaccounted:
        # a job that jpsi did not submit leaves no marker that may still show
        return job.has_no_accounting or is_late or (job.is_denied and not job.has_runner)
    return job.accounted is not None and not job.accounted.final and absent_for >= _CONTRADICTED_SECONDS
