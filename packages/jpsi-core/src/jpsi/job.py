"""The job as a user holds it: its spec, its statuses, and the callbacks and waits that follow them."""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import attrs

from jpsi import notifier
from jpsi.model import (
    TIME_SOURCE,
    InvalidJobException,
    JobSpec,
    JobState,
    JobStatus,
    JobUsage,
    SubmitException,
    UnreachableStateException,
    enriched,
    timed,
    transitions,
)

if TYPE_CHECKING:
    from jpsi.contract import Output, Stream, Streams

#: A `JobExecutor`: that class is in a higher layer than this module.
AnyExecutor = Any

#: The states that `wait` waits for if the caller gives none.
FINAL = frozenset(state for state in JobState if state.final)


@runtime_checkable
class JobStatusCallback(Protocol):
    """An object that receives status changes; a plain function with the same arguments serves as well."""

    def job_status_changed(self, job: Job, status: JobStatus) -> None:
        """Receive one status; called for each status in order, on a thread of jpsi.

        `job.status` may already be later than `status` when this is called.
        """


StatusFunction = Callable[["Job", JobStatus], None]
States = JobState | Iterable[JobState]


def _new_id() -> str:
    # a random UUID in the usual spelling; importing `uuid` would take longer than importing this whole module
    digits = os.urandom(16).hex()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"


@attrs.define(slots=True, eq=False, repr=False)
class Job:
    """A job, from before its submission until after its end. All methods may be called from any thread."""

    #: The program to run and what it needs. Changes after `submit` have no effect.
    spec: JobSpec | None = None
    _id: str = attrs.field(init=False, factory=_new_id)
    _native_id: str | None = attrs.field(init=False, default=None)
    _executor: AnyExecutor = attrs.field(init=False, default=None)
    _is_bound: bool = attrs.field(init=False, default=False)
    # the number of submission attempts that have been recorded
    _attempt: int = attrs.field(init=False, default=0)
    _lock: threading.Lock = attrs.field(init=False, factory=threading.Lock)
    _condition: threading.Condition | None = attrs.field(init=False, default=None)
    _statuses: list[JobStatus] = attrs.field(init=False, factory=lambda: [JobStatus(JobState.NEW)])
    _callback: StatusFunction | None = attrs.field(init=False, default=None)
    _lane: notifier.Lane | None = attrs.field(init=False, default=None)
    # the number of statuses that need no callback any more: that of the job, and that of the executor
    _own_delivered: int = attrs.field(init=False, default=1)
    _executor_delivered: int = attrs.field(init=False, default=1)
    _watchers: tuple[Callable[[], None], ...] = attrs.field(init=False, default=())

    @property
    def id(self) -> str:
        """The id that jpsi gave the job: unique, and the same after `recover`."""
        return self._id

    @property
    def native_id(self) -> str | None:
        """The id that the batch system gave the job; None while the job is NEW.

        It changes if the job turns out to run under another id: a submit command whose outcome was unclear
        may have created two jobs.
        """
        return None if self.status.state is JobState.NEW else self._native_id

    @property
    def executor(self) -> AnyExecutor:
        """The `JobExecutor` that the job was submitted or attached to, or None."""
        return self._executor if self._is_bound else None

    @property
    def status(self) -> JobStatus:
        """The latest status; never goes back (J/PSI 0: Job.getStatus)."""
        return self._statuses[-1]

    @property
    def usage(self) -> JobUsage:
        """The time and memory that the job has used, as far as they were measured; nothing before its end."""
        return JobUsage.of(self._statuses)

    @property
    def streams(self) -> Streams | None:
        """The paths of the job's output; None before submission, or if they are not known."""
        return None if self.executor is None else self.executor.streams(self)

    def output(self, stream: Stream = "stdout") -> Output | None:
        """Return one output stream of the job; None before submission, or if its path is not known.

        The stream can be read while the job runs, also if the job's files are on a remote host.
        """
        return None if self.executor is None else self.executor.output(self, stream)

    def get_status(self) -> JobStatus:
        """Return the latest status, as `status` does."""
        return self.status

    def set_status_callback(self, callback: StatusFunction | JobStatusCallback | None) -> None:
        """Set the status callback, as `set_job_status_callback` does."""
        self.set_job_status_callback(callback)

    def set_job_status_callback(self, callback: StatusFunction | JobStatusCallback | None) -> None:
        """Call `callback` for every status from now on; None removes the callback.

        The calls for one job happen one at a time and in order. A callback may block, raise, submit other
        jobs and wait for them: this delays no other job.
        """
        function = as_function(callback)
        with self._lock:
            self._callback = function
            if self._lane is None:
                self._lane = notifier.Lane()

    def wait(
        self,
        *waited: float | timedelta | States | None,
        timeout: float | timedelta | None = None,
        target_states: States | None = None,
    ) -> JobStatus | None:
        """Wait until the job enters a state, or return at once if it has already passed through it.

        Returns once the callbacks for that status, of the job and of its executor, have returned. Inside a
        callback it does not wait for them, since that would be a deadlock.

        The arguments are a timeout, in seconds or as a timedelta, and states, in any order: `wait(60)`,
        `wait(JobState.ACTIVE, JobState.FAILED)`, `wait([JobState.ACTIVE], 60)`. The defaults are to wait for
        ever, and for any final state. The result is the status with which the job entered one of the states,
        or None if the timeout expired.

        Raises:
            UnreachableStateException: the caller gave states and the job can reach none of them any more.
        """
        limit, targets = parse_wait_arguments(waited, timeout, target_states)
        deadline = None if limit is None else time.monotonic() + limit
        self._note_deadline(limit)
        with self._lock:
            while (status := self._entered(targets)) is None:
                if self._condition is None:
                    self._condition = threading.Condition(self._lock)
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    return None
                self._condition.wait(None if left is None else min(left, threading.TIMEOUT_MAX))
            return status

    def _entered(self, targets: Collection[JobState]) -> JobStatus | None:
        """Return the status that ends a `wait`, None to wait on, or raise; called under the lock."""
        known = self._statuses if notifier.is_delivering() else self._delivered()
        for status in known:
            if status.state in targets:
                return status
        if targets is not FINAL and not any(state.is_greater_than(known[-1].state) for state in targets):
            names = " or ".join(sorted(state.value for state in targets))
            msg = f"job {self._id} is {known[-1].state} and cannot become {names} any more"
            raise UnreachableStateException(msg, known[-1])
        return None

    def cancel(self) -> None:
        """Request the end of the job; a later status reports it. Does nothing for a final job.

        Raises:
            SubmitException: the job was never submitted, or the request did not reach the backend.
        """
        executor = self.executor
        if executor is None:
            raise SubmitException(f"job {self._id} was not submitted, so that there is nothing to cancel")
        executor.cancel(self)

    def __str__(self) -> str:
        return f"job {self._id}"

    def __repr__(self) -> str:
        native = "" if self.native_id is None else f" native_id={self.native_id!r}"
        return f"<Job {self._id}{native} {self.status.state}>"

    # The following methods are for `jpsi.aio` and `jpsi.futures`.

    def _peek(self, targets: Collection[JobState]) -> JobStatus | None:
        """Return what `wait` would return with a timeout of zero, or raise as it does."""
        with self._lock:
            return self._entered(targets)

    def _note_deadline(self, limit: float | None) -> None:
        """Have the engine poll more often if a caller waits for so many seconds at most."""
        executor = self.executor
        if limit and executor is not None and not self.status.final:
            executor._engine.note_deadline(limit)  # noqa: SLF001

    def _delivered_statuses(self) -> Sequence[JobStatus]:
        """Return the statuses so far whose callbacks have returned."""
        with self._lock:
            return self._delivered()

    def _delivered(self) -> Sequence[JobStatus]:
        return self._statuses[: min(self._own_delivered, self._executor_delivered)]

    def _watch(self, watcher: Callable[[], None]) -> None:
        """Call `watcher` whenever the result of `wait` may have changed.

        The call happens under the lock of the job: the watcher must return at once and must not use the job.
        """
        with self._lock:
            self._watchers = (*self._watchers, watcher)

    def _unwatch(self, watcher: Callable[[], None]) -> None:
        with self._lock:
            self._watchers = tuple(it for it in self._watchers if it is not watcher)

    # The following methods are for the executor.

    def _reserve(self, executor: AnyExecutor) -> int:
        """Reserve the job for one submission or attachment, and return the attempt's number."""
        with self._lock:
            if self._executor is not None or self.status.state is not JobState.NEW:
                where = "" if self._executor is None else f" on {self._executor.name}"
                msg = f"job {self._id} was submitted already{where}: it is {self.status.state}, not NEW"
                if self.status.state is JobState.NEW:
                    msg = f"job {self._id} is being submitted or attached already{where}"
                raise InvalidJobException(msg)
            self._executor = executor
            return self._attempt + 1

    def _release(self, attempt: int) -> None:
        """Undo `_reserve` after a failed submission; the number of the attempt stays used."""
        with self._lock:
            self._executor = None
            self._attempt = attempt

    def _bind(self, native_id: str | None, attempt: int) -> None:
        """Record that the backend has the job."""
        with self._lock:
            self._native_id = native_id
            self._attempt = attempt
            self._is_bound = True

    def _rename(self, native_id: str) -> None:
        """Replace the native id by the one that the backend uses for the job."""
        with self._lock:
            self._native_id = native_id

    def _publish(self, report: JobStatus) -> bool:
        """Apply a status report to the job, and return True if the job is final."""
        if TIME_SOURCE not in report.metadata:
            report = timed(report, "observation")
        with self._lock:
            if self._statuses[-1].state is JobState.NEW and report.time < self._statuses[-1].time:
                # J/PSI 0: attach: the status of the job is discarded; the backend has had it for longer
                self._statuses[-1] = attrs.evolve(self._statuses[-1], time=report.time)
            self._statuses[-1] = enriched(self._statuses[-1], report)
            for status in transitions(self._statuses[-1], report):
                before = len(self._statuses)
                self._statuses.append(status)
                # a status comes behind those before it, though the callback was unset meanwhile
                if not self._notify_executor(status, is_behind=self._executor_delivered < before):
                    self._executor_delivered = before + 1
                if self._lane is not None and (self._callback is not None or self._own_delivered < before):
                    call = functools.partial(self._deliver, self._callback, status, before + 1)
                    notifier.shared().post(self._lane, call)
                else:
                    self._own_delivered = before + 1
            self._wake()
            return self._statuses[-1].final

    def _notify_executor(self, status: JobStatus, *, is_behind: bool) -> bool:
        """Pass the last status to the executor; return True if it notes later that its callback returned."""
        executor = self._executor
        return executor is not None and bool(
            executor._notify(self, status, len(self._statuses), is_behind=is_behind)  # noqa: SLF001  internal to jpsi
        )

    def _deliver(self, callback: StatusFunction | None, status: JobStatus, count: int) -> None:
        try:
            if callback is not None and callback == self._callback:
                callback(self, status)
        finally:
            with self._lock:
                self._own_delivered = count
                self._wake()

    def _note_executor_delivery(self, count: int) -> None:
        """Note that the executor's callback has returned for so many statuses."""
        with self._lock:
            self._executor_delivered = count
            self._wake()

    def _wake(self) -> None:
        if self._condition is not None:
            self._condition.notify_all()
        for watcher in self._watchers:
            watcher()


def as_function(callback: StatusFunction | JobStatusCallback | None) -> StatusFunction | None:
    """Return the function to call for a callback that a user registered."""
    if isinstance(callback, JobStatusCallback):
        return callback.job_status_changed
    if callback is not None and not callable(callback):
        raise TypeError(f"a status callback is a function or a JobStatusCallback, not {callback!r}")
    return callback


def parse_wait_arguments(
    waited: Iterable[float | timedelta | States | None],
    timeout: float | timedelta | None = None,
    target_states: States | None = None,
) -> tuple[float | None, Collection[JobState]]:
    """Return the timeout in seconds and the target states that the arguments of `Job.wait` denote."""
    values = [it for it in (*waited, timeout) if it is not None]
    times = [it for it in values if isinstance(it, int | float | timedelta) and not isinstance(it, bool)]
    if len(times) > 1:
        raise TypeError(f"wait() takes one timeout, not {', '.join(map(str, times))}")
    states = [it for it in (*values, target_states) if it is not None and it not in times]
    targets = frozenset[JobState]().union(*map(_states, states)) if states else FINAL
    return seconds(times[0] if times else None), targets


def _states(states: object) -> frozenset[JobState]:
    found = [states] if isinstance(states, JobState) else states
    if isinstance(found, Iterable) and not isinstance(found, str):
        found = list(found)
        if found and all(isinstance(state, JobState) for state in found):
            return frozenset(found)
    raise TypeError(f"wait() takes a timeout and one or more JobState, not {states!r}")


def seconds(timeout: float | timedelta | None) -> float | None:
    """Convert a timeout to seconds; None means for ever."""
    return timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
