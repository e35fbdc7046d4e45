"""The job as programs for psij hold it: a job of jpsi, once it is submitted."""

from __future__ import annotations

import abc
import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any

import jpsi

from .job_info import JobInfo
from .job_spec import JobSpec
from .job_state import JobState
from .job_status import JobStatus

#: A `JobExecutor`: that class is in a higher layer than this module.
AnyExecutor = Any

log = logging.getLogger(__name__)


class JobStatusCallback(abc.ABC):
    """An object that receives the statuses of jobs."""

    @abc.abstractmethod
    def job_status_changed(self, job: Job, job_status: JobStatus) -> None:
        """Receive one status; called on a thread of jpsi, for the statuses of one job in order."""


StatusFunction = Callable[["Job", JobStatus], object]
Callback = JobStatusCallback | StatusFunction


class Job:
    """A job, from before its submission until after its end. All methods may be called from any thread."""

    def __init__(self, spec: JobSpec | None = None) -> None:
        self.spec = spec
        self.executor: AnyExecutor = None
        #: The facts that `JobExecutor.info` found.
        self.current_info = JobInfo()
        self._id = str(uuid.uuid4())
        self._native_id: str | None = None
        self._status = JobStatus(JobState.NEW)
        # the statuses whose callbacks have returned
        self._statuses: list[JobStatus] = []
        self._condition = threading.Condition()
        self._callback: Callback | None = None
        # the thread that calls the callbacks
        self._caller: int | None = None
        self._jpsi_job: jpsi.Job | None = None

    @property
    def id(self) -> str:
        """A unique id, which no batch system knows."""
        return self._id

    @property
    def native_id(self) -> str | None:
        """The id that the batch system gave the job; None before its submission."""
        current = None if self._jpsi_job is None else self._jpsi_job.native_id
        return current or self._native_id

    @property
    def status(self) -> JobStatus:
        """The latest status."""
        return self._status

    @status.setter
    def status(self, status: JobStatus) -> None:
        self._status = status

    def set_job_status_callback(self, cb: Callback | None) -> None:
        """Call a function or a `JobStatusCallback` for every status from now on; None removes it."""
        self._callback = cb

    def cancel(self) -> None:
        """Request the end of the job; does nothing for a final job.

        Raises:
            SubmitException: the job was not submitted, or the request did not reach the batch system.
        """
        if self.status.final:
            return
        if self.executor is None:
            raise jpsi.SubmitException(f"job {self.id} was not submitted, so that there is nothing to cancel")
        self.executor.cancel(self)

    def wait(
        self, timeout: timedelta | None = None, target_states: JobState | Sequence[JobState] | None = None
    ) -> JobStatus | None:
        """Wait until the job is in one of the states, or beyond; the default is any final state.

        Return the first such status, once its callbacks have returned; None after the timeout.
        """
        targets = [target_states] if isinstance(target_states, JobState) else list(target_states or ())
        deadline = None if timeout is None else time.monotonic() + timeout.total_seconds()
        with self._condition:
            while True:
                # within a callback of this job, waiting for the callback would be a deadlock
                current = [self._status] if self._caller == threading.get_ident() else []
                for status in (*self._statuses, *current):
                    if status.final or any(
                        status.state is it or status.state.is_greater_than(it) for it in targets
                    ):
                        return status
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    return None
                self._condition.wait(None if left is None else min(left, threading.TIMEOUT_MAX))

    def _follow(self, executor: AnyExecutor, inner: jpsi.Job) -> None:
        """Take over the statuses of a job of jpsi, from now on."""
        self._jpsi_job = inner
        inner.set_job_status_callback(lambda _, status: self._receive(executor, status))

    def _receive(self, executor: AnyExecutor, report: jpsi.JobStatus) -> None:
        for status in self._with_phases(JobStatus.of(report)):
            self._caller = threading.get_ident()
            self._status = status
            for callback in (self._callback, executor.callback):
                _call(callback, self, status)
            with self._condition:
                self._caller = None
                self._statuses.append(status)
                self._condition.notify_all()

    def _with_phases(self, status: JobStatus) -> Iterator[JobStatus]:
        """Yield a status, and before it those of the phases of staging that came before it."""
        spec = self.spec or JobSpec()
        phases = []
        if status.state is JobState.ACTIVE and spec.stage_in:
            phases = [JobState.STAGE_IN]
        elif status.final and status.exit_code is not None:
            phases = [JobState.STAGE_OUT] * bool(spec.stage_out) + [JobState.CLEANUP] * bool(spec.cleanup)
        yield from (JobStatus(phase, status.time) for phase in phases)
        yield status

    def __str__(self) -> str:
        return (
            f"Job[id={self.id}, native_id={self.native_id}, executor={self.executor}, status={self.status}]"
        )


def _call(callback: Callback | None, job: Job, status: JobStatus) -> None:
    try:
        if isinstance(callback, JobStatusCallback):
            callback.job_status_changed(job, status)
        elif callback is not None:
            callback(job, status)
    except BaseException:
        # an error of a callback, SystemExit included, must not keep the others from being called
        log.exception("the status callback of job %s failed", job.id)


class FunctionJobStatusCallback(JobStatusCallback):
    """A callback that calls a function."""

    def __init__(self, fn: StatusFunction) -> None:
        self.fn = fn

    def job_status_changed(self, job: Job, job_status: JobStatus) -> None:
        """Call the function."""
        self.fn(job, job_status)
