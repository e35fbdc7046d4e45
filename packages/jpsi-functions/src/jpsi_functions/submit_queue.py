"""Submits the calls that wait, as few and large arrays as come together, and follows their jobs."""

from __future__ import annotations

import collections
import functools
import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future

from jpsi import BulkException, Job, JobExecutor, JobState, JobStatus, JpsiError
from jpsi.futures import as_future

from .calls import Call

log = logging.getLogger(__name__)

# How often it looks for a cancelled call whether its job was submitted.
_POLL_SECONDS = 0.1


class SubmitQueue:
    """The calls that have not ended: those that wait, and those whose jobs run. Any thread may use it.

    A thread submits what waits, and ends when nothing does. It is no daemon: a program that ends submits all
    calls first.
    """

    def __init__(self, executor: JobExecutor, max_jobs: int | None) -> None:
        """Make a queue that keeps no more than `max_jobs` jobs with the executor at a time."""
        self._executor = executor
        self._max_jobs = max_jobs
        self._changed = threading.Condition()
        self._waiting: collections.deque[Call] = collections.deque()
        # every call whose job has not ended
        self._live: dict[Call, None] = {}
        # those that have ended, with the thread that settles their futures
        self._settling: dict[Call, int] = {}
        # the threads that wait for the end of all
        self._waiters: set[int] = set()
        self._sent = 0
        self._unwanted: list[Call] = []
        self._is_submitting = False
        self._is_cancelling = False

    def put(self, calls: Iterable[Call]) -> None:
        """Have calls submitted; those of one call of this method become arrays."""
        with self._changed:
            calls = list(calls)
            self._waiting += calls
            self._live.update(dict.fromkeys(calls))
            self._start_submitting()

    def _start_submitting(self) -> None:
        self._changed.notify_all()
        if self._waiting and not self._is_submitting:
            self._is_submitting = True
            threading.Thread(target=self._submit_waiting, name="jpsi-functions-submit").start()

    def follow(self, call: Call) -> None:
        """Follow the job of a call, which has been submitted."""
        with self._changed:
            self._live[call] = None
            self._sent += 1
        self._await(call)

    def _await(self, call: Call) -> None:
        as_future(call.job).add_done_callback(functools.partial(self._end, call))
        if call.is_cancelled:
            self.cancel(call)

    def cancel(self, call: Call) -> None:
        """Take back a call whose futures were cancelled, or cancel its job."""
        _mark(call, "cancelled")
        with self._changed:
            if call in self._waiting:
                self._waiting.remove(call)
                self._forget(call)
            if call not in self._live:
                return
            self._unwanted.append(call)
            if not self._is_cancelling:
                self._is_cancelling = True
                threading.Thread(target=self._cancel_unwanted, name="jpsi-functions-cancel").start()

    def live(self) -> Sequence[Call]:
        """Return the calls whose jobs have not ended, in the order in which they were put."""
        with self._changed:
            return list(self._live)

    def wait(self) -> None:
        """Wait until all jobs have ended and all futures are settled.

        A callback of a future may call this, too. Nothing waits for the futures whose callbacks wait
        here, or else two of them would wait for each other.
        """
        for call in self.live():
            # its future calls back before it cancels the job
            if call.is_cancelled:
                self.cancel(call)
        own = threading.get_ident()
        with self._changed:
            self._waiters.add(own)
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._live and {*self._settling.values()} <= self._waiters)
            self._waiters.discard(own)

    def _submit_waiting(self) -> None:
        while calls := self._next():
            failed = self._submit([call.job for call in calls])
            refused: dict[Call, Callable[[], None]] = {}
            for call in calls:
                if call.job in failed:
                    _mark(call, "failed", str(failed[call.job]))
                    refused[call] = functools.partial(call.fail, failed[call.job])
                else:
                    self._await(call)
            if refused:
                # their callbacks may wait for calls that this thread has to submit
                threading.Thread(target=self._settle, args=[refused], name="jpsi-functions-refused").start()

    def _next(self) -> Sequence[Call]:
        """Return the calls to submit next, once there is room for them; none if no call waits."""
        with self._changed:
            while self._waiting:
                room = len(self._waiting) if self._max_jobs is None else self._max_jobs - self._sent
                calls = [self._waiting.popleft() for _ in range(min(room, len(self._waiting)))]
                if calls:
                    self._sent += len(calls)
                    return calls
                self._changed.wait()
            self._is_submitting = False
            return ()

    def _submit(self, jobs: Sequence[Job]) -> Mapping[Job, BaseException]:
        """Submit jobs; return the errors of those that were not submitted."""
        try:
            self._executor.submit_many(jobs)
        except BulkException as e:
            return e.failed
        except Exception as e:  # noqa: BLE001  the futures raise it
            return dict.fromkeys(jobs, e)
        return {}

    def _cancel_unwanted(self) -> None:
        while calls := self._next_unwanted():
            jobs = dict.fromkeys(it.job for it in calls if it.job.executor is not None)
            try:
                self._executor.cancel_many(jobs)
            except JpsiError as e:
                log.warning("the jobs of cancelled calls may go on: %s", e)
            with self._changed:
                # a quota may hold back the submission of the others for long
                self._unwanted += [it for it in calls if it.job not in jobs and it in self._live]
                if self._unwanted:
                    self._changed.wait(_POLL_SECONDS)

    def _next_unwanted(self) -> Sequence[Call]:
        with self._changed:
            calls, self._unwanted = self._unwanted, []
            self._is_cancelling = bool(calls)
            return calls

    def _end(self, call: Call, ended: Future[JobStatus]) -> None:
        try:
            settle = call.end(ended.result())
        except Exception as e:  # noqa: BLE001  or else a future would wait for ever
            settle = functools.partial(call.fail, e)
        if settle is not None:
            self._settle({call: settle})
            return
        with self._changed:
            self._sent -= 1
            self._waiting.append(call)
            self._start_submitting()

    def _settle(self, ended: Mapping[Call, Callable[[], None]]) -> None:
        """Forget calls whose jobs have ended, and settle their futures, whose callbacks may shut down."""
        with self._changed:
            self._sent -= len(ended)
            self._settling.update(dict.fromkeys(ended, threading.get_ident()))
            for call in ended:
                self._forget(call)
        for call, settle in ended.items():
            try:
                settle()
            finally:
                with self._changed:
                    del self._settling[call]
                    self._changed.notify_all()

    def _forget(self, call: Call) -> None:
        self._live.pop(call, None)
        self._changed.notify_all()


def _mark(call: Call, name: str, text: str = "") -> None:
    """Have a later `recover` know that a call is not to be made any more."""
    try:
        call.stored.mark(name, text)
    except OSError as e:
        log.warning("a later recover() may make the call of %s: %s", call.function, e)


def has_started(call: Call) -> bool:
    """Return True if the job of a call runs or has ended."""
    return call.job.status.state not in {JobState.NEW, JobState.QUEUED}
