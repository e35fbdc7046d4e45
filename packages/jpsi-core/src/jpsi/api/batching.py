"""Batches the submissions of an event loop's tasks to one executor into few requests for many jobs.

`jpsi.aio` uses it, as a request for each job would be slow. The first submission waits a moment for others;
those that arrive while a request is under way go into the next. A thread exists only while there are any.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from jpsi.api.submission import JobSubmitter
from jpsi.job import Job
from jpsi.model import InvalidJobException, SubmitException

if TYPE_CHECKING:
    # few programs use asyncio, whose import takes longer than that of this package
    import asyncio

    #: The error of a job that was not submitted; None if it was.
    Outcome = asyncio.Future[BaseException | None]

#: The time for which the first submission waits for others.
WINDOW_SECONDS = 0.01
# The time between attempts to withdraw a job, until its outcome is known.
_GIVE_UP_SECONDS = 0.5


class Batching:
    """The submissions of one event loop to one executor; to be used in that loop."""

    def __init__(self, submitter: JobSubmitter, loop: asyncio.AbstractEventLoop) -> None:
        self._submitter = submitter
        self._loop = loop
        # the jobs of the next request, and those of the request that is under way
        self._waiting: dict[Job, Outcome] = {}
        self._under_way: dict[Job, Outcome] = {}
        self._is_due = False
        # true until the request is over, which is later than the last outcome of its jobs
        self._is_busy = False

    @classmethod
    def of(cls, submitter: JobSubmitter, running: asyncio.AbstractEventLoop) -> Batching:
        """Return the batch of the running event loop; it exists while there are jobs to submit."""
        with _lock:
            for loop, other in [key for key in _all if key[0].is_closed()]:
                del _all[loop, other]
            key = running, submitter
            if key not in _all:
                _all[key] = cls(submitter, running)
            return _all[key]

    def put(self, job: Job) -> Outcome:
        """Add a job to the next request."""
        outcome: Outcome = self._loop.create_future()
        if job in self._waiting or job in self._under_way:
            outcome.set_result(InvalidJobException(f"job {job.id} is being submitted already"))
            return outcome
        self._waiting[job] = outcome
        if not self._is_due and not self._is_busy:
            self._is_due = True
            self._loop.call_later(WINDOW_SECONDS, self._send)
        return outcome

    def give_up(self, outcomes: Mapping[Job, Outcome]) -> None:
        """Withdraw these jobs, unless the backend is receiving them now; all have an outcome soon."""
        under_way = {}
        for job, outcome in outcomes.items():
            if self._waiting.get(job) is outcome:
                del self._waiting[job]
                outcome.set_result(SubmitException(f"the submission of job {job.id} was cancelled"))
            elif self._under_way.get(job) is outcome:
                under_way[job] = outcome
        self._forget()
        if under_way:
            self._submitter.give_up([job.id for job in under_way])
            # some jobs may only now begin to wait for the quota
            self._loop.call_later(_GIVE_UP_SECONDS, self.give_up, under_way)

    def _send(self) -> None:
        """Start a request with the jobs that were added."""
        self._is_due = False
        self._under_way, self._waiting = self._waiting, {}
        jobs = list(self._under_way)
        self._is_busy = bool(jobs)
        if not jobs:
            return
        try:
            # a daemon: while its jobs wait for the quota, it must not keep the program from ending
            threading.Thread(target=self._work, args=[jobs], name="jpsi-batching", daemon=True).start()
        except RuntimeError as e:
            self._end(SubmitException(f"jpsi could not start a thread to submit: {e}", e, transient=True))

    def _forget(self) -> None:
        """Drop the references to the loop and the executor if no job is left to submit."""
        key = self._loop, self._submitter
        with _lock:
            if not self._waiting and not self._under_way and _all.get(key) is self:
                del _all[key]

    def _work(self, jobs: Sequence[Job]) -> None:
        """Run the request, in the thread."""

        def report(outcomes: Mapping[Job, BaseException | None]) -> None:
            self._call_in_loop(lambda: self._settle(outcomes))

        end: BaseException | None = None
        try:
            self._submitter.submit_many(jobs, report)
        except BaseException as e:  # noqa: BLE001  raised by those who wait for their jobs
            end = e
        self._call_in_loop(lambda: self._end(end))

    def _call_in_loop(self, call: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop was closed, so that no task waits
            self._loop.call_soon_threadsafe(call)

    def _settle(self, outcomes: Mapping[Job, BaseException | None]) -> None:
        for job, outcome in outcomes.items():
            self._under_way.pop(job).set_result(outcome)
        self._forget()

    def _end(self, error: BaseException | None) -> None:
        """End the request: the jobs without an outcome get this one."""
        self._settle(dict.fromkeys(self._under_way, error))
        self._send()


_lock = threading.Lock()
_all: dict[tuple[asyncio.AbstractEventLoop, JobSubmitter], Batching] = {}
