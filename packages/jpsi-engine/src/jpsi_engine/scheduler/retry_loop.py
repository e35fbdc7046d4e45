"""Submits jobs again whose attempts have ended with a record that another follows; see `spool.retries`.

Any client may do that, and several may try at the same time: the exclusive files of an attempt let one of
them make it, and the others follow it. A client that is killed leaves the record, from which the next client
goes on.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs

from jpsi import JobStatus
from jpsi.plugin import InvalidJobException, JobSpec, JpsiError, Queue, SubmitException
from jpsi.plugin.engine import Engine, EngineSetup, one_line
from jpsi_engine.host import convert_os_errors
from jpsi_engine.queue_limits import within_queue
from jpsi_engine.scheduler.submit_queue import SubmissionCancelled
from jpsi_engine.spool import (
    DAMAGE,
    RETRY_KEY,
    Intent,
    RetryCancelledError,
    Spool,
    decode_request,
    decode_status,
    encode_status,
    read_retry,
)
from jpsi_engine.verdict import Retry

log = logging.getLogger(__name__)

# The pause after a step that another process or the batch system holds up, which doubles up to the longest.
_PAUSE, _LONGEST_PAUSE = 0.5, 60.0
_WARNING_PAUSE = 8 * _PAUSE
# So often the loop looks whether another process has cancelled or submitted a job that is not due yet.
_LOOK_SECONDS = 5.0
# A step may wait for the batch system, or for room in a queue, and the other jobs must not wait for it.
_MOST_THREADS = 4


def _may_pass(error: SubmitException | InvalidJobException) -> bool:
    """Return True if what kept a job from being submitted may not last."""
    if isinstance(error, InvalidJobException):
        return False
    return error.transient or isinstance(error.__cause__, FileExistsError | SubmissionCancelled)


class _AtLimitError(Exception):
    """An attempt that could request no more than the one before."""


def _has_no_job(job_id: str) -> bool:  # noqa: ARG001  the default
    return False


def _is_gone(intent: Intent) -> bool:  # noqa: ARG001  the default
    return True


@attrs.define(slots=True, eq=False)
class _Pending:
    """A job that is to be submitted again."""

    #: When it is due, in seconds of the monotonic clock.
    due: float
    pause: float = _PAUSE
    is_cancelled: bool = False


@attrs.define(slots=True, eq=False)
class RetryLoop:
    """The jobs of one engine that are to be submitted again. Any thread may call its methods.

    Threads submit them once they are due; one of them waits for that, and the others end.
    """

    _engine: Engine
    _spool: Spool
    _setup: EngineSetup
    #: Returns True once the system has nothing of an attempt any more, and otherwise has it end.
    is_gone: Callable[[Intent], bool] = _is_gone
    #: Changes what was decided for the last attempt alone in the spec of the next one.
    renew: Callable[[JobSpec], None] = lambda _: None
    #: Returns True if the engine has a job that has not ended, even if it does not follow it yet.
    has_job: Callable[[str], bool] = _has_no_job
    #: Returns the queues of the batch system.
    queues: Callable[[], Sequence[Queue]] = tuple
    _changed: threading.Condition = attrs.field(init=False)
    _pending: dict[str, _Pending] = attrs.field(init=False)
    #: The jobs of which a thread takes a step now.
    _active: set[str] = attrs.field(init=False)
    _threads: int = attrs.field(init=False)
    #: True while a thread waits until a job is due.
    _is_watched: bool = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._reset()
        _loops.add(self)

    def _reset(self) -> None:
        """Empty the loop; after a fork, its jobs and its threads stay with the parent process."""
        self._changed = threading.Condition()
        self._pending = {}
        self._active = set()
        self._threads = 0
        self._is_watched = False

    def add(self, job_id: str, content: Mapping[str, Any]) -> None:
        """Submit a job again once that is due by the record of its last end."""
        retry = read_retry(content)
        wait = 0.0
        if retry is not None:
            # the clock of the machine that recorded the end may differ from this one
            wait = min((retry.not_before - datetime.now(UTC)).total_seconds(), retry.wait)
        with self._changed:
            earlier = self._pending.get(job_id)
            is_cancelled = earlier is not None and earlier.is_cancelled
            self._pending[job_id] = _Pending(time.monotonic() + wait, is_cancelled=is_cancelled)
            self._changed.notify_all()
            self._start_thread()

    def _start_thread(self) -> None:
        """Start a thread if none waits for the jobs that no thread submits, with the lock held."""
        if self._is_watched or self._threads >= _MOST_THREADS or self._active.issuperset(self._pending):
            return
        try:
            threading.Thread(target=self._run, name="jpsi-retries", daemon=True).start()
            self._threads += 1
        except RuntimeError:
            # a thread that runs, the next job that is added, or the next client goes on
            log.warning("jpsi could not start a thread to submit jobs again", exc_info=True)

    def cancel(self, job_id: str) -> bool:
        """Request the end of a job that is to be submitted again; return False if it is none.

        Raises:
            SubmitException: the request could not be recorded.
        """
        if job_id not in self:
            return False
        with convert_os_errors(f"job {job_id} could not be cancelled"):
            ended = self._spool.last_retried(job_id, self._spool.last_attempt(job_id) + 1)
            if ended is not None:
                self._spool.cancel_retry(job_id, ended[0])
        with self._changed:
            # the thread cancels an attempt that it is submitting now
            pending = self._pending.get(job_id)
            if pending is not None:
                pending.is_cancelled, pending.due = True, 0.0
                self._changed.notify_all()
        if pending is None:
            # an attempt was made meanwhile
            self._engine.cancel(job_id)
        # a submission that waits for the quota sees the request when it is repeated
        self._engine.give_up([job_id])
        return True

    def __contains__(self, job_id: str) -> bool:
        with self._changed:
            return job_id in self._pending

    def _run(self) -> None:
        while (due := self._next()) is not None:
            (job_id, pending), is_done = due, False
            why = "another process submits it, or its last attempt has not ended"
            try:
                is_done = self._step(job_id)
            except JpsiError as e:
                why = str(e)
                log.info("job %s could not be submitted again yet: %s", job_id, e)
            except Exception as e:
                why = repr(e)
                log.exception("job %s could not be submitted again yet", job_id)
            with self._changed:
                is_same = self._pending.get(job_id) is pending
                if is_done and is_same:
                    del self._pending[job_id]
                elif is_same:
                    if pending.pause == _WARNING_PAUSE:
                        msg = "job %s could not be submitted again so far; jpsi tries on: %s"
                        log.warning(msg, job_id, why)
                    pending.due = time.monotonic() + pending.pause
                    pending.pause = min(2 * pending.pause, _LONGEST_PAUSE)
            if is_done and pending.is_cancelled:
                self._cancel_followed(job_id)
            with self._changed:
                self._active.discard(job_id)
                # it may have been added again meanwhile
                self._changed.notify_all()

    def _next(self) -> tuple[str, _Pending] | None:
        """Wait until a job is due, and return it; None if the thread is to end.

        It is if no jobs are left, or another thread waits for them.
        """
        while True:
            with self._changed:
                waiting = {job_id: it for job_id, it in self._pending.items() if job_id not in self._active}
                if not waiting or self._is_watched:
                    self._threads -= 1
                    return None
                job_id = min(waiting, key=lambda it: waiting[it].due)
                wait = waiting[job_id].due - time.monotonic()
                if wait <= 0:
                    self._active.add(job_id)
                    # for the others
                    self._start_thread()
                    return job_id, waiting[job_id]
                self._is_watched = True
                self._changed.wait(min(wait, _LOOK_SECONDS))
                self._is_watched = False
            for name, pending in waiting.items():
                try:
                    if self._is_changed(name):
                        pending.due = 0.0
                except OSError as e:
                    log.debug("job %s: %s", name, e)

    def _is_changed(self, job_id: str) -> bool:
        """Return True if another process has cancelled a job, or made its next attempt."""
        ended = self._spool.pending_retry(job_id)
        return ended is None or self._spool.is_retry_cancelled(job_id, ended[0])

    def _cancel_followed(self, job_id: str) -> None:
        """Cancel the attempt that was made while its job was cancelled."""
        try:
            self._engine.cancel(job_id)
        except JpsiError as e:
            log.warning("job %s could not be cancelled: %s", job_id, e)

    def _step(self, job_id: str) -> bool:
        """Make the next attempt of a job, follow that of another process, or publish the end of the job.

        Returns False if that is to be tried again later.
        """
        last = self._spool.last_attempt(job_id)
        content = self._spool.read_final(job_id, last)
        if content is not None and not content.get(RETRY_KEY):
            self._setup.publish(job_id, decode_status(content))
            return True
        ended = self._spool.pending_retry(job_id)
        if ended is None:
            return self._follow(job_id)
        try:
            native_id = self._submit(job_id, last + 1, *ended)
        except RetryCancelledError:
            return self._step(job_id)
        if native_id is None:
            return False
        self._track(job_id, native_id, ended)
        return True

    def _follow(self, job_id: str) -> bool:
        """Follow the attempt that another process has made; return False if that is still under way."""
        if self.has_job(job_id):
            # it was made here, and an error came before it was followed, or recover() has found it
            self._engine.track(job_id)
            return True
        found = self._engine.recall([job_id])
        recovered = None if not isinstance(found, list) or not found else found[0]
        if recovered is None or recovered.native_id is None:
            return False
        ended = self._spool.last_retried(job_id, recovered.attempt)
        self._track(job_id, recovered.native_id, ended)
        return True

    def _track(self, job_id: str, native_id: str, ended: tuple[int, Mapping[str, Any]] | None) -> None:
        self._setup.renamed(job_id, native_id)
        # a client that has cancelled the job meanwhile may know nothing of this attempt
        if ended is not None and self._spool.is_retry_cancelled(job_id, ended[0]):
            self._cancel_followed(job_id)
        self._engine.track(job_id)

    def _submit(self, job_id: str, attempt: int, ended: int, content: Mapping[str, Any]) -> str | None:
        """Submit an attempt and return its native id; None if that is to be tried again later.

        Raises:
            RetryCancelledError: the job was cancelled before the attempt was made.
            JpsiError: it is to be tried again later, too.
        """
        if self._spool.is_retry_cancelled(job_id, ended):
            # without the quota, and without an answer of the batch system
            with self._recording_end(job_id):
                os.close(self._spool.reserve(job_id, attempt))
        intent, retry = self._spool.find_intent(job_id, ended), read_retry(content)
        make = self._setup.resubmission
        if intent is None or retry is None or make is None:
            self._end(job_id, attempt, ended, content, "the request of its last attempt cannot be read")
            return None
        if not self.is_gone(intent):
            log.info("job %s is not submitted again before the system has ended attempt %d", job_id, ended)
            return None
        spec, submission = None, None
        try:
            spec = self._next_spec(intent, retry, has_begun=content[RETRY_KEY]["started"] is not None)
            submission = make(job_id, attempt, spec)
            return self._engine.submit(submission)
        except (SubmitException, InvalidJobException) as e:
            if submission is not None:
                # an attempt of this number that is not revoked may run, and may be another client's
                is_refused = not _may_pass(e) and self._spool.is_revoked(job_id, attempt)
            else:
                # otherwise it cannot run at present
                is_refused = spec is not None and bool(self._engine.refused(spec))
            if not is_refused:
                raise
            why = str(e)
        except _AtLimitError as e:
            why = str(e)
        except DAMAGE as e:
            why = f"its request is damaged: {e!r}"
        # never a number that no client has seen free: another client may have made that attempt
        is_used = self._spool.is_revoked(job_id, attempt)
        self._end(job_id, attempt + 1 if is_used else attempt, ended, content, why)
        return None

    def _next_spec(self, intent: Intent, retry: Retry, *, has_begun: bool) -> JobSpec:
        """Return the spec of the attempt that follows the one of this intent.

        Clients may see different limits of the queue: the one that makes the attempt, or ends the job in its
        place, decides for all of them.

        Raises:
            _AtLimitError: it could request no more than the attempt before.
        """
        requested = decode_request(self._spool.folder(intent.job_id), intent.content)
        spec, why = retry.grown(requested, has_begun=has_begun), ""
        if retry.is_growing:
            spec, why = within_queue(spec, requested, self.queues)
        if why:
            raise _AtLimitError(why)
        # the program that submits it now may be in another directory
        spec = attrs.evolve(spec, directory=Path(intent.content["directory"]))
        self.renew(spec)
        return spec

    @staticmethod
    def _recording_end(job_id: str) -> contextlib.AbstractContextManager[None]:
        return convert_os_errors(f"the end of job {job_id} could not be recorded")

    def _end(self, job_id: str, attempt: int, ended: int, content: Mapping[str, Any], why: str) -> None:
        """End a job that cannot be submitted again, with the status of the attempt that has ended."""
        status = decode_status(content)
        message = f"{status.message or 'it failed'}; it could not be submitted again: {one_line(why)}"
        final: JobStatus = attrs.evolve(status, message=message)
        with self._recording_end(job_id):
            lock = self._spool.reserve(job_id, attempt)
            try:
                self._spool.end_between_attempts(job_id, attempt, ended, encode_status(final))
            finally:
                os.close(lock)


_loops: weakref.WeakSet[RetryLoop] = weakref.WeakSet()


def _after_fork() -> None:
    for loop in _loops:
        loop._reset()  # noqa: SLF001  the same module


os.register_at_fork(after_in_child=_after_fork)
