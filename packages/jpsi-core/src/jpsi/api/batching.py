"""Combines what tasks of one event loop submit to one executor, one by one, into few requests for many jobs.

The first submission waits for others for a moment; those that come while a request is under way are in the
next one. One thread at a time works on them, whatever their number, and only while there are any.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence

from jpsi.api.bulk import Many
from jpsi.job import Job
from jpsi.model import InvalidJobException, SubmitException

#: How long the first submission waits for others.
WINDOW_SECONDS = 0.01
# How often a job is given up until it is clear what came of it.
_GIVE_UP_SECONDS = 0.5

#: Becomes why a job was not submitted; None if it was.
Outcome = asyncio.Future[BaseException | None]


class Combining:
    """The submissions of one event loop to one executor; to be used in that loop."""

    def __init__(self, executor: Many) -> None:
        self._executor = executor
        self._loop = asyncio.get_running_loop()
        # those of the next request, and those of the one that is under way
        self._waiting: dict[Job, Outcome] = {}
        self._under_way: dict[Job, Outcome] = {}
        self._is_due = False
        # until the request is over, which is later than the last that is heard of its jobs
        self._is_busy = False

    @classmethod
    def of(cls, executor: Many) -> Combining:
        """That of the running event loop; there is one while there is something to submit."""
        with _lock:
            for loop, other in [key for key in _all if key[0].is_closed()]:
                del _all[loop, other]
            key = asyncio.get_running_loop(), executor
            if key not in _all:
                _all[key] = cls(executor)
            return _all[key]

    def put(self, job: Job) -> Outcome:
        """Have a job submitted soon."""
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
        """Submit these jobs no more, unless the backend is being given them; all have an outcome soon."""
        under_way = {}
        for job, outcome in outcomes.items():
            if self._waiting.get(job) is outcome:
                del self._waiting[job]
                outcome.set_result(SubmitException(f"the submission of job {job.id} was given up"))
            elif self._under_way.get(job) is outcome:
                under_way[job] = outcome
        self._forget()
        if under_way:
            self._executor._give_up(under_way)  # noqa: SLF001  a door of it
            # some may have been about to wait only
            self._loop.call_later(_GIVE_UP_SECONDS, self.give_up, under_way)

    def _send(self) -> None:
        """Hand over what has gathered."""
        self._is_due = False
        self._under_way, self._waiting = self._waiting, {}
        jobs = list(self._under_way)
        self._is_busy = bool(jobs)
        if not jobs:
            return
        try:
            # a daemon: as long as there is no room for its jobs, it is not to keep the program from ending
            threading.Thread(target=self._work, args=[jobs], name="jpsi-combining", daemon=True).start()
        except RuntimeError as e:
            self._end(SubmitException(f"no thread could be started to submit jobs: {e}", e, transient=True))

    def _forget(self) -> None:
        """With nothing left to submit, hold on to neither the loop nor the executor."""
        key = self._loop, self._executor
        with _lock:
            if not self._waiting and not self._under_way and _all.get(key) is self:
                del _all[key]

    def _work(self, jobs: Sequence[Job]) -> None:
        """What the thread does."""

        def heard(outcomes: Mapping[Job, BaseException | None]) -> None:
            self._tell(lambda: self._settle(outcomes))

        end: BaseException | None = None
        try:
            self._executor._submit_many(jobs, heard)  # noqa: SLF001  a door of it
        except BaseException as e:  # noqa: BLE001  raised by those who wait for their jobs
            end = e
        self._tell(lambda: self._end(end))

    def _tell(self, call: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop was closed, so that nobody waits
            self._loop.call_soon_threadsafe(call)

    def _settle(self, outcomes: Mapping[Job, BaseException | None]) -> None:
        for job, outcome in outcomes.items():
            self._under_way.pop(job).set_result(outcome)
        self._forget()

    def _end(self, error: BaseException | None) -> None:
        """The request is over: nothing came of those jobs that it has said nothing of."""
        self._settle(dict.fromkeys(self._under_way, error))
        self._send()


_lock = threading.Lock()
_all: dict[tuple[asyncio.AbstractEventLoop, Many], Combining] = {}
