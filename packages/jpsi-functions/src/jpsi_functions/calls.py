"""The calls of one job, from their submission to their futures."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from jpsi import Job, JobState, JobStatus
from jpsi_engine import is_on_network

from .futures import CallFuture
from .records import Outcome, Records, job_ended
from .sessions import StoredCall

# The exit codes with which the worker ends if all calls have records.
_WORKER_CODES = (0, 1)
# A file of another host may take a minute to become visible here.
_POLL_SECONDS = 0.5
_MAX_POLLS = 120


@attrs.define(eq=False)
class Call:
    """The calls that one job makes, with their futures."""

    stored: StoredCall
    job: Job
    #: The name of the function, for messages.
    function: str
    futures: Sequence[CallFuture[Any]] = ()
    #: Sets the results of the futures from the outcomes of all calls.
    settle: Callable[[Sequence[Outcome]], None] = lambda _: None
    #: Gives the call another job and other files, from the pickles of a function and arguments.
    resume: Callable[[Call, bytes, bytes], None] = lambda *_: None

    @property
    def is_cancelled(self) -> bool:
        """True if all futures of the job were cancelled."""
        return all(future.cancelled() for future in self.futures)

    def end(
        self, status: JobStatus, sleep: Callable[[float], None] = time.sleep
    ) -> Callable[[], None] | None:
        """Return the function that sets the results of the futures, now that the job has ended.

        Returns None if the call has left a checkpoint instead, and another job has to be submitted for it.
        """
        records = self._read(status, sleep)
        if (
            records.continuation is not None
            and not self.is_cancelled
            and status.state is not JobState.CANCELED
        ):
            self.resume(self, *records.continuation)
            return None
        if status.state is JobState.CANCELED and (not records.is_whole or records.continuation is not None):
            return self.cancel
        ended = functools.partial(job_ended, self.function, self.job, status)
        outcomes = [records.outcome(position, ended) for position in range(self.stored.items)]
        return functools.partial(self.settle, outcomes)

    def cancel(self) -> None:
        """Cancel all futures."""
        for future in self.futures:
            future.cancel()

    def fail(self, error: BaseException) -> None:
        """Set an exception, the same for all futures."""
        for future in self.futures:
            future.settle(functools.partial(_raise, error))

    def _read(self, status: JobStatus, sleep: Callable[[float], None]) -> Records:
        folder = self.stored.folder
        left = _MAX_POLLS if status.exit_code in _WORKER_CODES else 0
        while left and not (folder / "result").exists() and is_on_network(str(folder)):
            left -= 1
            sleep(_POLL_SECONDS)
            os.listdir(folder)  # noqa: PTH208  has NFS read it again
        return Records.read(folder)


def _raise(error: BaseException) -> None:
    raise error
