"""Submits jobs again whose attempts have ended with a record that another follows; see `spool.retries`.

Any client may do that, and several may try at the same time: the exclusive files of an attempt let one of
them make it, and the others follow it. A client that is killed leaves the record, from which the next client
goes on.

Jobs that were submitted as one array, and are due at about the same time, are submitted again together. Which
these are does not matter to the others: each has its own record, and its own attempts.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs

from jpsi import JobStatus
from jpsi.plugin import InvalidJobException, JobSpec, JpsiError, Queue, SubmitException
from jpsi.plugin.engine import Engine, EngineSetup, Outcomes, Submission, one_line
from jpsi_engine.host import convert_os_errors, reset_after_fork
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
    read_first_array,
    read_retry,
)
from jpsi_engine.verdict import Retry

log = logging.getLogger(__name__)

# The pause after a step that another process or the batch system holds up, which doubles up to the longest.
_PAUSE, _LONGEST_PAUSE = 0.5, 60.0
_WARNING_PAUSE = 8 * _PAUSE
# So often the loop looks whether another process has cancelled or submitted a job that is not due yet.
_LOOK_SECONDS = 5.0
# So long does a job of an array that is due wait for others of its array; or that part of its own delay.
_GATHER_SECONDS, _GATHER_PART = 1.0, 0.25
# A step may wait for the batch system, or for room in a queue, and the other jobs must not wait for it.
_MOST_THREADS = 4


def _may_pass(error: JpsiError) -> bool:
    """Return True if what kept a job from being submitted may not last."""
    if isinstance(error, InvalidJobException):
        return False
    is_transient = isinstance(error, SubmitException) and error.transient
    return is_transient or isinstance(error.__cause__, FileExistsError | SubmissionCancelled)


class _AtLimitError(Exception):
    """An attempt that could request no more than the one before."""


def _all_gone(intents: Sequence[Intent]) -> Collection[str]:
    return {it.job_id for it in intents}


def _fail(error: JpsiError) -> bool:
    raise error


@attrs.define(slots=True, eq=False)
class _Pending:
    """A job that is to be submitted again."""

    #: When a step of it is due, in seconds of the monotonic clock.
    due: float
    #: When it may be submitted with others of its array.
    earliest: float
    #: The array of its first attempt; None for a job by itself.
    array: str | None = None
    pause: float = _PAUSE
    is_cancelled: bool = False


@attrs.frozen(slots=True)
class _Next:
    """The next attempt of a job."""

    attempt: int
    #: The attempt that it follows, with the record of its end and the decision in that.
    intent: Intent
    content: Mapping[str, Any]
    retry: Retry


@attrs.define(slots=True, eq=False)
class RetryLoop:
    """The jobs of one engine that are to be submitted again. Any thread may call its methods.

    Threads submit them once they are due; one of them waits for that, and the others end.
    """

    _engine: Engine
    _spool: Spool
    _setup: EngineSetup
    #: Returns True if the engine has a job that has not ended, even if it does not follow it yet.
    has_job: Callable[[str], bool]
    #: Returns the jobs of those attempts of which the system has nothing any more, and has the others end.
    find_gone: Callable[[Sequence[Intent]], Collection[str]] = _all_gone
    #: Changes what was decided for the last attempt alone in the spec of the next one.
    renew: Callable[[JobSpec], None] = lambda _: None
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
        reset_after_fork(self, RetryLoop._reset)

    def _reset(self) -> None:
        """Empty the loop; after a fork, its jobs and its threads stay with the parent process."""
        self._changed = threading.Condition()
        self._pending = {}
        self._active = set()
        self._threads = 0
        self._is_watched = False

    def add(self, job_id: str, content: Mapping[str, Any]) -> None:
        """Submit a job again once that is due by the record of its last end."""
        retry, array = read_retry(content), read_first_array(content.get(RETRY_KEY))
        wait, gather = 0.0, 0.0
        if retry is not None:
            # the clock of the machine that recorded the end may differ from this one
            wait = max(0.0, min((retry.not_before - datetime.now(UTC)).total_seconds(), retry.wait))
            gather = 0.0 if array is None else max(_GATHER_SECONDS, retry.wait * _GATHER_PART)
        earliest = time.monotonic() + wait
        with self._changed:
            earlier = self._pending.get(job_id)
            is_cancelled = earlier is not None and earlier.is_cancelled
            self._pending[job_id] = _Pending(earliest + gather, earliest, array, is_cancelled=is_cancelled)
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
        while left := self._next():

            def take(job_id: str, step: Callable[[], bool], left: dict[str, _Pending] = left) -> None:
                self._take(job_id, left.pop(job_id), step)

            if len(left) > 1:
                try:
                    self._submit_together(list(left), take)
                except Exception:
                    log.exception("jobs could not be submitted again together")
            for job_id in list(left):
                take(job_id, functools.partial(self._step, job_id))

    def _take(self, job_id: str, pending: _Pending, step: Callable[[], bool]) -> None:
        """Take a step of a job, which returns True if it was the last; otherwise it is taken again later."""
        is_done, why = False, "another process submits it, or its last attempt has not ended"
        try:
            is_done = step()
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

    def _next(self) -> dict[str, _Pending]:
        """Wait until a job is due, and return it with those that may be submitted with it.

        Returns none if the thread is to end: no jobs are left, or another thread waits for them.
        """
        while True:
            with self._changed:
                waiting = {job_id: it for job_id, it in self._pending.items() if job_id not in self._active}
                if not waiting or self._is_watched:
                    self._threads -= 1
                    return {}
                job_id = min(waiting, key=lambda it: waiting[it].due)
                now, first = time.monotonic(), waiting[job_id]
                wait = first.due - now
                if wait <= 0:
                    is_alone = first.array is None or first.is_cancelled
                    others = {} if is_alone else waiting
                    taken = {
                        name: it
                        for name, it in others.items()
                        if it.array == first.array and it.earliest <= now
                    }
                    taken[job_id] = first
                    self._active.update(taken)
                    # for the others
                    self._start_thread()
                    return taken
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

    def _submit_together(
        self, job_ids: Sequence[str], take: Callable[[str, Callable[[], bool]], None]
    ) -> None:
        """Make the next attempts of jobs with few submissions, one for those with the same requests.

        Args:
            job_ids: the jobs.
            take: called with each job that needs no step of its own any more, and the last part of its step.
                The others are cancelled, have ended, or their attempts are made by other processes, or cannot
                be made.
        """
        found = {job_id: self._find_next(job_id) for job_id in job_ids}
        due = {job_id: it for job_id, it in found.items() if it is not None}
        try:
            gone = self.find_gone([it.intent for it in due.values()])
        except JpsiError as e:
            for job_id in due:
                take(job_id, functools.partial(_fail, e))
            return
        submissions = [self._make_next(job_id, due[job_id]) for job_id in due if job_id in gone]

        def report(outcomes: Outcomes) -> None:
            for job_id, outcome in outcomes.items():
                take(job_id, functools.partial(self._conclude, job_id, due[job_id], outcome))

        self._engine.submit_many([it for it in submissions if it is not None], report)
        for job_id in due.keys() - set(gone):
            take(job_id, lambda: False)

    def _find_next(self, job_id: str) -> _Next | None:
        """Return the next attempt of a job; None if it has none, or a step of its own finds out more."""
        with contextlib.suppress(OSError):
            last, ended = self._spool.last_attempt(job_id), self._spool.pending_retry(job_id)
            if ended is None or self._spool.is_retry_cancelled(job_id, ended[0]):
                return None
            intent, retry = self._spool.find_intent(job_id, ended[0]), read_retry(ended[1])
            if intent is not None and retry is not None:
                return _Next(last + 1, intent, ended[1], retry)
        return None

    def _make_next(self, job_id: str, following: _Next) -> Submission | None:
        """Return the submission of an attempt; None if it cannot be made, or not now."""
        make, has_begun = self._setup.resubmission, following.content[RETRY_KEY]["started"] is not None
        try:
            spec = self._next_spec(following.intent, following.retry, has_begun=has_begun)
            return None if make is None else make(job_id, following.attempt, spec)
        except (JpsiError, _AtLimitError, *DAMAGE) as e:
            log.debug("job %s: %s", job_id, e)
            return None

    def _conclude(self, job_id: str, following: _Next, outcome: str | JpsiError) -> bool:
        """Follow an attempt that was submitted with others, or end the job if it was refused; see `_step`."""
        attempt, ended, content = following.attempt, following.intent.attempt, following.content
        if isinstance(outcome, str):
            self._track(job_id, outcome, (ended, content))
            return True
        if not _may_pass(outcome) and self._spool.is_revoked(job_id, attempt):
            if not isinstance(outcome, RetryCancelledError):
                self._end(job_id, attempt + 1, ended, content, str(outcome))
            return self._step(job_id)
        if not _may_pass(outcome):
            # a submission of its own makes an attempt of which it is certain that it is refused
            with self._changed:
                self._pending[job_id].array = None
        raise outcome

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
        if job_id not in self.find_gone([intent]):
            log.info("job %s is not submitted again before the system has ended attempt %d", job_id, ended)
            return None
        spec, submission = None, None
        try:
            spec = self._next_spec(intent, retry, has_begun=content[RETRY_KEY]["started"] is not None)
            submission = make(job_id, attempt, spec)
            return self._engine.submit(submission)
        except RetryCancelledError:
            raise
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
