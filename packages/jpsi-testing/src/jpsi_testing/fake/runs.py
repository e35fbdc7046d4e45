"""A run of a job of a fake batch system, simulated or real: its begin, its end, and requeues.

The scheduler (`machine`, `scheduler`) uses it.
"""

from __future__ import annotations

import copy
import signal
from collections.abc import Callable
from pathlib import Path

import attrs

from jpsi_testing.fake import processes
from jpsi_testing.fake.job import FakeJob, FakeState, Outcome


@attrs.define(slots=True, eq=False)
class Run:
    """A job that runs."""

    job: FakeJob
    #: Its processes; None for a simulated run.
    script: processes.RunningScript | None
    #: When a simulated run ends, and its exit code.
    end: float | None
    code: int
    #: When its time limit is up.
    limit: float | None
    #: When processes that ignored TERM are killed.
    kill: float | None = None

    def next_event_time(self) -> float | None:
        """Return the next time at which the clock alone changes this run."""
        return min((time for time in (self.end, self.limit, self.kill) if time is not None), default=None)

    def stop(self, timestamp: float, ending: FakeState, kill_delay: float) -> bool:
        """Request its end; return True if it has ended already, as a simulated run does."""
        if self.job.ending is None or ending.final:
            self.job.ending = ending
        self.limit = None
        if self.script is None:
            self.code = -signal.SIGTERM
            return True
        if kill_delay <= 0:
            self.script.send(signal.SIGKILL)
        elif self.kill is None:
            self.kill = timestamp + kill_delay
            self.script.send(signal.SIGTERM)
            self.script.send(signal.SIGCONT)
        return False


def begin(
    job: FakeJob,
    timestamp: float,
    outcome: Outcome | None,
    file: Callable[[], Path],
    ended: Callable[[int], None],
) -> Run:
    """Start a job; without an outcome its script really runs, from a new file.

    Raises:
        OSError: the script cannot be started.
    """
    job.started = timestamp
    limit = None if job.time_limit is None else timestamp + job.time_limit
    if outcome is not None:
        return Run(job, None, timestamp + outcome.seconds, outcome.exit_code, limit)
    return Run(job, processes.start(job, file(), ended), None, 0, limit)


def finish(job: FakeJob, timestamp: float, code: int) -> None:
    """Record the end of a run in its job: the requested state, else that of the exit code."""
    job.ended = timestamp
    job.exit_code = code if code >= 0 else None
    job.signal = -code if code < 0 else None
    state, job.ending = job.ending, None
    if state is FakeState.PENDING:
        requeue_job(job)
    else:
        job.state = state or (FakeState.COMPLETED if code == 0 else FakeState.FAILED)


def requeue_job(job: FakeJob, *, is_counted: bool = True) -> None:
    """Requeue a job."""
    job.state = FakeState.PENDING
    job.restarts += is_counted
    job.started = job.ended = job.exit_code = job.signal = None


def job_at(timestamp: float, job: FakeJob) -> FakeJob:
    """Return the job as it was at a time: itself, or a copy that has not ended or not started."""
    has_ended = job.ended is not None and job.ended <= timestamp
    has_started = job.started is not None and job.started <= timestamp
    if has_ended or (job.ended is None and (has_started or job.started is None)):
        return job
    earlier = copy.copy(job)
    earlier.state = FakeState.RUNNING if has_started else FakeState.PENDING
    earlier.started = job.started if has_started else None
    earlier.ending = earlier.ended = earlier.exit_code = earlier.signal = None
    earlier.why = ""
    return earlier
