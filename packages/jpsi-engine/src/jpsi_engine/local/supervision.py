"""Follows the processes of one executor's jobs until they end.

It also ends jobs on a cancel and at their time limit: TERM first, and KILL after a delay.
"""

from __future__ import annotations

import functools
import logging
import os
import signal
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any

import attrs

from jpsi import JobStatus
from jpsi.plugin import Evidence, JobState, Reason
from jpsi.plugin.engine import TIME_SOURCE, timed
from jpsi_engine.host import ProcessId, seconds_since_start, session
from jpsi_engine.local import exits
from jpsi_engine.local.exits import Exit
from jpsi_engine.local.starter import ProgramEnd, StartedProgram
from jpsi_engine.runner import add_failure_details
from jpsi_engine.spool import RETRY_KEY, Spool, decode_status, encode_status, record_end, status_before
from jpsi_engine.verdict import CANCEL, TIMEOUT, Marker, ProcessEnd, Stop, has_exit_marker, judge_process

log = logging.getLogger(__name__)

_SESSION_POLL_SECONDS = 0.05
# Between two writes of the end of an attempt, if the disk is full.
_RECORD_SECONDS = 5.0


@attrs.define(slots=True, eq=False)
class SupervisedProcess:
    """A job that is not final, as this process follows it."""

    job_id: str
    #: The id in the spool; it differs from `job_id` for a job that was attached.
    spool_id: str
    #: 0 for a process that is no job of jpsi: it has no runner, and the spool has no files of it.
    attempt: int
    #: None if the native id names no process of the user on this machine.
    process: ProcessId | None
    #: True if this program started it.
    is_child: bool
    started: datetime
    #: Set if this program had the job's own program started, which tells of its end.
    program: StartedProgram | None = None
    #: The pid of the process that started its program, which leaves the markers before it collects that; None
    #: if a runner does.
    starter: int | None = None
    duration: timedelta | None = None
    stop: Stop | None = None
    #: True if this process has sent TERM. It sends TERM once, as some programs quit at once on a second one.
    is_ending: bool = False
    #: When that was, or when the end was first noticed; in seconds of the monotonic clock.
    ending_since: float | None = None
    #: Set when the process has ended; other processes of its session may still run.
    exit: ProcessEnd | None = None

    @property
    def has_runner(self) -> bool:
        """True if the process is a runner, which leaves markers."""
        return self.attempt > 0

    def is_uncollected(self) -> bool:
        """Return True if the process that started its program has yet to leave the markers of its end.

        If that is gone, the program has another parent. That may leave it a zombie for ever, as the first
        process of a container often does.
        """
        return self.starter is not None and self.process is not None and self.process.parent() == self.starter


@attrs.define(eq=False)
class Supervisor:
    """The jobs of one executor that are not final. Methods may be called from any thread.

    Args:
        spool: the files of the jobs.
        kill_delay: the time from TERM to KILL.
        publish: called with the id and each status of a job.
        ended: called after the end of a job, or of an attempt that another follows.
        retried: called with a job that is to be submitted again, and the record of its end.
    """

    _spool: Spool
    _kill_delay: timedelta
    _publish: Callable[[str, JobStatus], None]
    _ended: Callable[[], None]
    #: Called with a job that is to be submitted again, and the record of its end; under the lock of all jobs.
    _retried: Callable[[str, Mapping[str, Any]], None] = lambda *_: None
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)
    _jobs: dict[str, SupervisedProcess] = attrs.field(factory=dict, init=False)

    @property
    def events(self) -> str:
        """The directory in which the jobs leave markers."""
        return self._spool.events

    def add(self, job: SupervisedProcess) -> None:
        """Register a job; nothing is published before `track`."""
        with self._lock:
            self._jobs[job.job_id] = job

    def get(self, job_id: str) -> SupervisedProcess | None:
        """Return the job with this id; None if it is final or was never registered."""
        with self._lock:
            return self._jobs.get(job_id)

    def all(self) -> list[SupervisedProcess]:
        """Return every job that is not final."""
        with self._lock:
            return list(self._jobs.values())

    def track(self, job: SupervisedProcess) -> None:
        """Publish the statuses of a job from now on."""
        if job.process is None:
            self._finish(job, _unverified())
            return
        is_own = job.is_child or job.program is not None
        if job.attempt > 1 or not is_own:
            reached = status_before(self._spool, job.job_id, job.attempt)
            if reached is not None:
                self._publish(job.job_id, reached)
        is_unknown = is_own or not job.has_runner
        known = None if is_unknown else self._spool.read_final(job.spool_id, job.attempt)
        if known is not None:
            self._finish(job, decode_status(known))
            return
        metadata = {TIME_SOURCE: "process"}
        running = JobStatus(JobState.ACTIVE, time=job.started, evidence=Evidence.PROCESS, metadata=metadata)
        self._publish(job.job_id, running)
        if job.duration:
            seconds = seconds_left(job, datetime.now(UTC))
            exits.shared_watch().call_later(seconds, _expire, weakref.ref(self), job.job_id)
        if not is_own:
            # the process that began to end it may have died
            job.stop = self._stop_on_disk(job)
            if job.stop is not None:
                self._end(job)
        if job.program is not None:
            job.program.follow(self, job)
        else:
            exits.shared_watch().watch(job.process, self, job, is_child=job.is_child)

    def stop(self, job: SupervisedProcess, why: str) -> None:
        """Record why a job is to end, CANCEL or TIMEOUT, and begin to end it."""
        has_term = False
        if job.stop is None:
            # Recorded before the first signal: a client that sees the end must know why the job was ended.
            stop = Stop(why, datetime.now(UTC))
            job.stop = self._record_stop(job, stop)
            # at the limit the program beside the job, or another client, may have been faster
            has_term = why == job.stop.why == TIMEOUT and job.stop.time < stop.time
        if why == CANCEL != job.stop.why and self._spool.may_be_retried(job.spool_id, job.attempt):
            # the record that counts is that of the limit, after which another attempt may follow
            self._spool.cancel_retry(job.spool_id, job.attempt)
        self._end(job, has_term=has_term)

    def _end(self, job: SupervisedProcess, *, has_term: bool = False) -> None:
        with self._lock:
            if job.is_ending:
                return
            job.is_ending = True
            job.ending_since = time.monotonic()
        # Scheduled first: even if the first signal cannot be sent, the second one follows.
        exits.shared_watch().call_later(self._kill_delay.total_seconds(), self._kill, job)
        if not has_term:
            self._signal(job, signal.SIGTERM)

    def _record_stop(self, job: SupervisedProcess, stop: Stop) -> Stop:
        if not job.has_runner:
            return stop
        try:
            return self._spool.stop(job.spool_id, job.attempt, stop)
        except OSError:
            log.warning("job %s: the request to end it could not be recorded", job.job_id, exc_info=True)
            return stop

    def _kill(self, job: SupervisedProcess) -> None:
        if self.get(job.job_id) is job:
            self._signal(job, signal.SIGKILL)

    @staticmethod
    def _signal(job: SupervisedProcess, number: signal.Signals) -> None:
        if job.process is None:
            return
        # The runner first, so that it knows of the signal before it sees its child end.
        if job.process.is_alive():
            _send(job.process.pid, number)
        if job.has_runner:
            for pid in session(job.process):
                if pid != job.process.pid:
                    _send(pid, number)

    def on_exits(self, exits_: list[Exit]) -> Iterable[SupervisedProcess]:
        """Publish the ends of jobs whose processes ended.

        Returns the jobs for which more must be known; the watch calls again for them.
        """
        # before the markers are read: its parent leaves them before it collects the process
        uncollected = {it.token.job_id for it in exits_ if it.token.is_uncollected()}
        # If the markers cannot be read, this raises, and the watch calls again.
        memory = {(it.token.spool_id, it.token.attempt): it.memory for it in exits_ if it.memory is not None}
        markers = self._collect([exit_.token for exit_ in exits_], memory=memory)
        now = datetime.now(UTC)
        undecided = []
        for exit_ in exits_:
            job: SupervisedProcess = exit_.token
            found = markers.get(job.spool_id, [])
            is_uncertain = exit_.wait_status is None and not has_exit_marker(found)
            may_tell_more = job.job_id in uncollected or (not exit_.is_last and job.stop is None)
            if is_uncertain and may_tell_more:
                undecided.append(job)
            else:
                job.exit = ProcessEnd(now, exit_.wait_status)
                self._conclude(job, found)
        return undecided

    def on_program_end(self, token: Any, end: ProgramEnd) -> None:  # noqa: ANN401  a job, as the watch does not know
        """Publish the end of a job whose program was started without a shell; any thread may call it."""
        job: SupervisedProcess = token
        job.exit = ProcessEnd(datetime.now(UTC), end.wait_status)
        markers = end.markers(job.spool_id, job.attempt)
        exits.shared_watch().call(functools.partial(self._conclude, job, markers))

    def on_markers(self, tokens: list[Any]) -> None:
        """Publish the markers that the runners of these jobs may have left."""
        followed: list[SupervisedProcess] = tokens
        jobs = [job for job in followed if self._jobs.get(job.job_id) == job]
        for spool_id, found in self._collect(jobs, only_new=True).items():
            for job in jobs:
                if job.spool_id == spool_id and found:
                    self._conclude(job, found)

    def _collect(
        self,
        jobs: list[SupervisedProcess],
        *,
        only_new: bool = False,
        memory: Mapping[tuple[str, int], int] = MappingProxyType({}),
    ) -> dict[str, list[Marker]]:
        by_id = {job.spool_id: job for job in jobs if job.has_runner}
        found = self._spool.collect(by_id, only_new=only_new, memory=memory)
        return {spool_id: _of_attempt(by_id[spool_id], found[spool_id]) for spool_id in found}

    def _conclude(self, job: SupervisedProcess, markers: list[Marker]) -> None:
        # A runner that another process signalled to end left a marker of the signal, or none at all.
        if job.stop is None and (not has_exit_marker(markers) or len(markers) > 1):
            job.stop = self._stop_on_disk(job)
        if job.stop is not None and job.has_runner:
            markers = _of_attempt(job, self._spool.consumed(job.spool_id))
        if job.exit is not None and self._has_leftover_processes(job, markers):
            # The job has ended when its whole session has: check again shortly.
            exits.shared_watch().call_later(_SESSION_POLL_SECONDS, self._conclude, job, markers)
            return
        status = judge_process(markers, job.stop, job.exit, has_runner=job.has_runner)
        if status is not None:
            self._finish(job, add_failure_details(self._spool, job.spool_id, job.attempt, status))

    def _stop_on_disk(self, job: SupervisedProcess) -> Stop | None:
        return self._spool.find_stop(job.spool_id, job.attempt) if job.has_runner else None

    def _has_leftover_processes(self, job: SupervisedProcess, markers: list[Marker]) -> bool:
        """Return True while processes are left of a job with a recorded stop, or whose runner was killed."""
        if not job.has_runner or (job.stop is None and has_exit_marker(markers)):
            return False  # background processes may outlive a job that ended by itself
        if job.process is None or not session(job.process):
            return False
        job.ending_since = time.monotonic() if job.ending_since is None else job.ending_since
        if job.stop is None or time.monotonic() - job.ending_since > self._kill_delay.total_seconds():
            self._signal(job, signal.SIGKILL)
        return True

    def _finish(self, job: SupervisedProcess, status: JobStatus) -> None:
        content: Mapping[str, Any] | None = None
        if job.has_runner and self._spool.may_be_retried(job.spool_id, job.attempt):
            try:
                content = self._spool.read_final(job.spool_id, job.attempt)
                content = content or record_end(
                    self._spool, job.spool_id, job.attempt, status, started=job.started
                )
                status = decode_status(content)
            except FileNotFoundError:
                log.warning("job %s is not submitted again: its folder was removed", job.job_id)
            except OSError as e:
                # without the record no attempt may follow
                self._spool.retry_writer.failed(e)
                exits.shared_watch().call_later(_RECORD_SECONDS, self._finish, job, status)
                return
        # who has attached to a process follows that alone
        is_retried = content is not None and bool(content.get(RETRY_KEY)) and job.job_id == job.spool_id
        with self._lock:
            if self._jobs.get(job.job_id) is not job:
                return
            if is_retried and content is not None:
                self._retried(job.job_id, content)
            del self._jobs[job.job_id]
        if is_retried:
            self._ended()
            return
        if TIME_SOURCE not in status.metadata:
            status = timed(status, "marker" if status.evidence is Evidence.MARKER else "observation")
        if (
            content is None
            and job.has_runner
            and (job.stop is not None or status.evidence is not Evidence.MARKER)
        ):
            content = encode_status(status)
            finish = functools.partial(self._spool.finish, job.spool_id, job.attempt, content)
            self._spool.retry_writer.write(f"the end of job {job.job_id}", finish)
        self._publish(job.job_id, status)
        self._ended()


def seconds_left(job: SupervisedProcess, now: datetime) -> float:
    """Return for how many seconds a job with a duration may still run.

    The kernel's elapsed time counts, as the wall clock may have been set since the start. If the kernel has
    none, the wall clock is used; a clock that was set back gives at most the whole duration.
    """
    duration = 0.0 if job.duration is None else job.duration.total_seconds()
    passed = None if job.process is None else seconds_since_start(job.process)
    if passed is None:
        passed = (now - job.started).total_seconds()
    return min(max(0.0, duration - passed), duration)


def _expire(reference: weakref.ref[Supervisor], job_id: str) -> None:
    """End a job that has used up its duration, unless the job or its executor is gone already."""
    supervisor = reference()
    job = None if supervisor is None else supervisor.get(job_id)
    if supervisor is not None and job is not None:
        supervisor.stop(job, TIMEOUT)


def _of_attempt(job: SupervisedProcess, markers: list[Marker]) -> list[Marker]:
    return [marker for marker in markers if marker.attempt == job.attempt]


def _unverified() -> JobStatus:
    return JobStatus(
        JobState.FAILED,
        message="no process of this user has the native id that was attached to",
        reason=Reason.ATTACH_UNVERIFIED,
        evidence=Evidence.ABSENCE,
    )


def _send(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
    except PermissionError:
        log.warning("process %d belongs to another user and was not signalled", pid)
