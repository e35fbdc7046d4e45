"""The futures of calls."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from jpsi import Job, JobState

T = TypeVar("T")


class CallFuture(Future[T]):
    """The future of a call that a job makes. Unlike others it can be cancelled while the call runs."""

    def __init__(self, job: Job, on_cancel: Callable[[], None]) -> None:
        super().__init__()
        #: The job that makes the call, NEW until it has been submitted. Items of a `map` share jobs.
        self.job = job
        self._on_cancel = on_cancel
        self._once = threading.Lock()

    def cancel(self) -> bool:
        """Cancel the call and its job, waiting or running; False if the call has ended.

        The job ends a while later. Of calls that share a job, the others go on.
        """
        if not super().cancel():
            return False
        if self._once.acquire(blocking=False):
            # tells those who wait in `wait` and `as_completed`
            self.set_running_or_notify_cancel()
            self._on_cancel()
        return True

    def running(self) -> bool:
        """Return True while the job runs."""
        return not self.done() and self.job.status.state is JobState.ACTIVE

    def settle(self, result: Callable[[], T]) -> None:
        """Set the result, or the exception that `result` raises, unless the future was cancelled."""
        if not self._once.acquire(blocking=False):
            return
        if not self.set_running_or_notify_cancel():
            self._on_cancel()
            return
        try:
            value = result()
        except BaseException as e:  # noqa: BLE001  `sys.exit()` in the function as well
            self.set_exception(e)
            del e
        else:
            self.set_result(value)
