"""Stage out of remote jobs: copies their output files to this machine before their ends are published.

The monitor checks here if the end of a job must wait for its stage out, so that a program that sees a job end
finds its output files.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import threading
import time
import weakref
from collections import Counter, deque
from collections.abc import Callable

import attrs

from jpsi import JobStatus, StagingProgress, TransferError
from jpsi.plugin import JpsiError
from jpsi.plugin.engine import serialization
from jpsi_engine.host import ReentrantEvent, RemoteTimeoutError, exists, hold_lock, write
from jpsi_engine.monitor import Publisher
from jpsi_engine.remote.staging_transfer import StagingTransfer
from jpsi_engine.runner import MAX_DETAIL_BYTES, add_failure_details, staging
from jpsi_engine.scheduler import JobView
from jpsi_engine.spool import Spool, encode_status
from jpsi_engine.transfer import RemoteTransfer, pending_transfers, plan, record_path
from jpsi_engine.verdict import ALSO, STAGE_IN, STAGE_OUT, add_staging_outcome, failed_staging_phase

log = logging.getLogger(__name__)

# The number of jobs whose files are transferred at a time.
_AT_A_TIME = 2
# The shortest and the longest wait after a lost connection, or while another process gets the same files.
_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 10.0
# How often to try a transfer whose error may be temporary, such as a full disk.
_TRIES = 3
# How long to retry a file that does not answer while the remote host does. A file that comes from a tape, or
# from a file server that restarts, takes less.
_STALL_SECONDS = 3600.0


@attrs.define(slots=True)
class _TransferState:
    """The progress of the stage out of one job in this process."""

    #: The number of failures of each transfer, by its number.
    failures: Counter[int] = attrs.field(factory=Counter)
    #: The number of bytes of each file that are on this machine, by its path.
    reached: dict[str, int] = attrs.field(factory=dict)
    #: The start of the time without progress, in seconds of the monotonic clock; None if there is progress.
    stalled_since: float | None = None


@attrs.define(slots=True, eq=False)
class StageOutLoop:
    """Stage out on threads of its own, which end with this object. Any thread may call its methods.

    While the file `get.<n>` exists in the folder of a job, some of its files are still missing on this
    machine. The process that holds the lock on `get.<n>` gets them. After a lost connection it retries
    without limit; for a file that does not answer, it retries for an hour.

    Args:
        spool: the jobs.
        remote_staging: transfers files.
        publisher: knows the jobs, and publishes their ends; it holds this object.
        staged: called with a job id and the progress of one of the job's files.
        wait: waits for so many seconds, or until the event is set.
    """

    _spool: Spool
    _remote_staging: StagingTransfer
    _publisher: weakref.ref[Publisher]
    _staged: Callable[[str, StagingProgress], None]
    wait: Callable[[ReentrantEvent, float], object] = ReentrantEvent.wait
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)
    # the jobs whose stage out is pending
    _transfer_states: dict[str, _TransferState] = attrs.field(factory=dict, init=False)
    _queue: deque[tuple[JobView, JobStatus]] = attrs.field(factory=deque, init=False)
    _threads: int = attrs.field(default=0, init=False)
    _closed: ReentrantEvent = attrs.field(factory=ReentrantEvent, init=False)

    def __attrs_post_init__(self) -> None:
        # not at exit of the program: a stage out would be retried without a pause
        weakref.finalize(self, self._closed.set).atexit = False

    def must_wait(self, job: JobView, status: JobStatus) -> bool:
        """Return True if the end of a job must wait for its stage out; `publisher` publishes it afterwards.

        Args:
            job: the job.
            status: the end of the job, apart from the outcome of the stage-out.
        """
        if not job.has_runner or not exists(self._spool.stage_out_files.path(job.spool_id, job.attempt)):
            return False
        with self._lock:
            if job.job_id not in self._transfer_states:
                self._transfer_states[job.job_id] = _TransferState()
                self._queue.append((job, status))
            self._begin()
        return True

    def _begin(self) -> None:
        if not self._queue or self._threads >= _AT_A_TIME:
            return
        work = threading.Thread(
            target=_run_loop, args=(weakref.ref(self), self._closed), name="jpsi-stage-out", daemon=True
        )
        # if no thread can be started, the next call of `must_wait` for the job tries again
        with contextlib.suppress(RuntimeError):
            work.start()
            self._threads += 1

    def next_job(self) -> tuple[JobView, JobStatus] | None:
        """Return the job whose stage out is next; None if the calling thread is not needed any more."""
        with self._lock:
            if self._queue:
                return self._queue.popleft()
            self._threads -= 1
            return None

    def stage_out(self, job: JobView, status: JobStatus) -> bool:
        """Do the stage out of a job and publish its end; return False if the caller must try again later."""
        publisher = self._publisher()
        if publisher is None:
            return True
        if publisher.get(job.job_id) is job:
            try:
                path = self._spool.stage_out_files.path(job.spool_id, job.attempt)
                with hold_lock(path, 0.0) as is_held:
                    if is_held is False:
                        return False  # another process works on it
                    # without the file, another process has completed it
                    if is_held and exists(path):
                        status = self._finish_transfers(job, status)
            except JpsiError as e:
                log.info("the stage out of job %s failed, and jpsi retries it: %s", job.job_id, e)
                self._spool.stage_out_files.write_progress(job.spool_id, job.attempt, str(e))
                if not isinstance(e, RemoteTimeoutError):
                    # with the connection lost, no file can answer
                    self._transfer_states[job.job_id].stalled_since = None
                return False
            publisher.end(job, status)
        with self._lock:
            self._transfer_states.pop(job.job_id, None)
        return True

    def _finish_transfers(self, job: JobView, status: JobStatus) -> JobStatus:
        """Finish the stage out and record the outcome; return the status with which the job ends."""
        spool, job_id, attempt = self._spool, job.spool_id, job.attempt
        errors = self._get_files(job)
        staging_log = self._staging_log(job, status)
        if staging_log or errors:
            parts = [staging_log.decode(errors="replace").strip(), *errors]
            text = "\n".join(it for it in parts if it)
            write(staging.log_file(spool.folder(job_id), attempt), text.encode())
        if errors:
            status = add_staging_outcome(status, f"{ALSO}{STAGE_OUT}")
            # the staged files stay on the remote host, which may have the only copy
            spool.finish(job_id, attempt, encode_status(add_failure_details(spool, job_id, attempt, status)))
        else:
            self._remove(job_id)
        spool.stage_out_files.clear_pending(job_id, attempt)
        return status

    def _remove(self, job_id: str) -> None:
        """Remove the staged files of a job and of those noted earlier.

        If that fails, the job is noted, and its files are removed with those of a later job.
        """
        job_ids = [*self._spool.jobs_with_unneeded_files(), job_id]
        if self._remote_staging.remove(job_ids):
            self._spool.clear_unneeded_files(job_ids)
        else:
            self._spool.mark_staged_files_unneeded(job_id)

    def _get_files(self, job: JobView) -> list[str]:
        """Get the files that are missing on this machine; return the errors of those that cannot be got."""
        spool, job_id, attempt = self._spool, job.spool_id, job.attempt
        intent = spool.last_intent(job_id)
        if intent is None or intent.attempt != attempt:
            return []
        planned = self._remote_staging.plan_transfers(
            plan(serialization.decode(intent.content["spec"])), job_id, attempt
        )
        gets = pending_transfers(planned.gets, spool.names(job_id), attempt)
        sources, errors = self._remote_staging.find_sources(gets), []
        for get in (it for it in gets if it.number in sources):
            try:
                report = functools.partial(self._report_progress, job)
                self._remote_staging.get(get, report, is_directory=sources[get.number])
            except (TransferError, RemoteTimeoutError) as e:
                if self._should_retry(job, get, e):
                    raise
                errors.append(f"{e}; it is still in {get.remote_path}, where jobs run")
            else:
                write(record_path(spool.folder(job_id), attempt, get.number), b"")
        return errors

    def _report_progress(self, job: JobView, progress: StagingProgress) -> None:
        self._spool.stage_out_files.write_progress(job.spool_id, job.attempt, str(progress))
        self._staged(job.job_id, progress)
        state = self._transfer_states[job.job_id]
        if progress.done > state.reached.get(progress.path, 0):
            state.reached[progress.path] = progress.done
            state.stalled_since = None

    def _should_retry(self, job: JobView, get: RemoteTransfer, error: JpsiError) -> bool:
        now, state = time.monotonic(), self._transfer_states[job.job_id]
        if isinstance(error, TransferError):
            state.failures[get.number] += error.transient
            return error.transient and state.failures[get.number] < _TRIES
        # The remote host has just answered another request, so the connection is not lost, and the file may
        # still answer.
        if state.stalled_since is None:
            state.stalled_since = now
            log.warning("the stage out of job %s failed, and jpsi retries it: %s", job.job_id, error)
        return now - state.stalled_since < _STALL_SECONDS

    def _staging_log(self, job: JobView, status: JobStatus) -> bytes:
        """Return the output of the remote staging commands if that explains a failure."""
        if status.metadata.get("phase") != STAGE_IN and not failed_staging_phase(status):
            return b""
        name = staging.log_file("", job.attempt).removeprefix("/")
        return self._remote_staging.read_tail(job.spool_id, name, MAX_DETAIL_BYTES)


def _run_loop(reference: weakref.ref[StageOutLoop], closed: ReentrantEvent) -> None:
    """Do one stage out after the other until there are none left."""
    while (loop := reference()) is not None and (found := loop.next_job()) is not None:
        job, status = found
        pause, wait = _FIRST_PAUSE_SECONDS, loop.wait
        while loop is not None and not _stage_out_safely(loop, job, status):
            del loop
            wait(closed, pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
            loop = reference()


def _stage_out_safely(loop: StageOutLoop, job: JobView, status: JobStatus) -> bool:
    try:
        return loop.stage_out(job, status)
    except OSError as e:
        log.warning("job %s: its files cannot be written on this machine: %s", job.job_id, e)
    except Exception:
        # the fence of a round: the job is retried, and meanwhile the files of other jobs are got
        log.exception("job %s: its stage out failed", job.job_id)
    return False
