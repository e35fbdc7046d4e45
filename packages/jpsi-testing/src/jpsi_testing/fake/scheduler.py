"""`FakeScheduler`: a batch system in one process, with methods for the fakes of commands and for tests."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Self

from jpsi_testing.fake.invocation import Call, Invocation
from jpsi_testing.fake.job import FakeJob, FakeState, job_with_reused_id, untag
from jpsi_testing.fake.machine import Machine
from jpsi_testing.fake.runs import job_at, requeue_job

# The default timeout of `wait_for`.
_TIMEOUT_SECONDS = 30.0


class FakeScheduler(Machine):
    """A batch system that starts jobs in the order of their submission while it has slots for them.

    Jobs run as real processes, unless an `Outcome` simulates them. With a `FakeClock` only the ends of real
    processes happen before the clock is advanced. Any thread may call its methods. Close it, or use it in a
    `with`, to end what still runs.

    >>> from jpsi_testing.fake import FakeClock, Outcome
    >>> clock = FakeClock()
    >>> scheduler = FakeScheduler(clock, outcome=Outcome(seconds=60, exit_code=7))
    >>> job = scheduler.submit(FakeJob(str(scheduler.next_number()), name="a"))
    >>> clock.advance(60)
    >>> job.state, job.exit_code
    (<FakeState.FAILED: 'failed'>, 7)
    """

    # For commands.

    def next_number(self) -> int:
        """Return a new number for a job's native id; no other job gets it, even if this one is refused."""
        with self.lock:
            self._number += 1
            return self._number

    def submit(self, job: FakeJob) -> FakeJob:
        """Queue a job, and return it.

        Raises:
            ValueError: there is a job of this native id already, or the scheduler is closed.
        """
        self.submit_all([job])
        return job

    def submit_all(self, jobs: Iterable[FakeJob]) -> None:
        """Queue jobs, as the elements of an array: all before any of them starts.

        Raises:
            ValueError: as for `submit`; those before it are in the queue.
        """
        with self.lock:
            self.settle()
            for job in jobs:
                if self._is_closed or job.native_id in self._known:
                    why = "the scheduler is closed" if self._is_closed else "a job has this native id already"
                    raise ValueError(f"job {job.native_id} cannot be submitted: {why}")
                job.submitted = self._timestamp
                self._jobs.append(job)
                self._known[job.native_id] = job
            self._start_timer()
            self.settle()

    def listed(self) -> list[FakeJob]:
        """Return the jobs that the queue lists: new ones after `lag`, ended ones for `keep`."""
        with self.lock:
            now = self.clock()
            return [
                job
                for job in self._known.values()
                if job.submitted + self.lag <= now and (job.ended is None or now < job.ended + self.keep)
            ]

    def accounted(self) -> list[FakeJob]:
        """Return the jobs in the accounting; none if there is no accounting.

        If a job has changed within `accounting_lag`, it is a copy in its earlier state.
        """
        with self.lock:
            cutoff = self.clock() - self.accounting_lag
            known = self._known.values() if self.accounting else ()
            return [job_at(cutoff, job) for job in known if job.submitted <= cutoff]

    def cancel(self, native_id: str) -> bool:
        """End a job; return False if no job was ended."""
        with self.lock:
            if self._is_cancel_ignored():
                return True
            return self._end(native_id, FakeState.CANCELLED)

    def cancel_all(self, native_ids: Iterable[str]) -> None:
        """End jobs in one request: all before any other starts."""
        with self.lock:
            obeyed = [native_id for native_id in native_ids if not self._is_cancel_ignored()]
            self._end_all(obeyed, FakeState.CANCELLED)

    def _is_cancel_ignored(self) -> bool:
        """Return True, and count it, if the next request to cancel a job has no effect."""
        is_ignored = self.ignored_cancels > 0
        self.ignored_cancels -= is_ignored
        return is_ignored

    def hold(self, native_id: str) -> bool:
        """Keep a pending job from starting; return False if there is none."""
        return self._change_state(native_id, FakeState.PENDING, FakeState.HELD)

    def release(self, native_id: str) -> bool:
        """Let a held job start; return False if there is none."""
        return self._change_state(native_id, FakeState.HELD, FakeState.PENDING)

    def signal(self, native_id: str, number: int) -> bool:
        """Signal the processes of a job; return False if it has none."""
        with self.lock:
            job = self._known.get(native_id)
            run = None if job is None else self._runs.get(job)
            if run is None or run.script is None:
                return False
            run.script.send(number)
            return True

    # Events of jobs, for tests.

    def requeue(self, native_id: str, delay: float = 0.0) -> bool:
        """Requeue a job, with TERM if it runs; return False if no such job has started."""
        with self.lock:
            job = self._known.get(native_id)
            if job is None or job.started is None:
                return False
            job.begin = self.clock() + delay
            if job.state.final:
                requeue_job(job)
                self.settle()
                return True
            return self._end(native_id, FakeState.PENDING)

    def restore(self, native_id: str, *, is_counted: bool = False) -> FakeJob:
        """Forget that a job has ended, or even begun, so that it starts again; return it.

        A controller does so if it was killed and restarts from an old state.

        Args:
            native_id: the job.
            is_counted: whether the job had begun in that state, so that this counts as a restart; otherwise
                it waits again as if it had never begun.

        Raises:
            KeyError: there is no such job.
            ValueError: it has not ended.
        """
        with self.lock:
            job = self.job(native_id)
            if not job.state.final:
                raise ValueError(f"job {native_id} has not ended")
            requeue_job(job, is_counted=is_counted)
            self.settle()
            return job

    def end_as(self, native_id: str, state: FakeState) -> bool:
        """Let the system end a job, such as for too much memory; return False if no job was ended."""
        return self._end(native_id, state)

    def fail_node(self, *, requeue: bool = False) -> list[FakeJob]:
        """Let the node fail under all running jobs; they end, or are requeued, and are returned."""
        with self.lock:
            lost = list(self._runs)
            for job in lost:
                job.why = "node"
                self._stop(self._runs[job], FakeState.PENDING if requeue else FakeState.NODE_FAIL, 0)
            self.settle()
            return lost

    def vanish(self, native_id: str, *, kill: bool = True) -> None:
        """Forget a job at once and without trace, in accounting too; kill its processes, or let them run on.

        Raises:
            KeyError: there is no such job.
        """
        with self.lock:
            run = self._runs.pop(self._known.pop(native_id), None)
            if run is not None and run.script is not None:
                self._detached_runs.append(run)
                if kill:
                    run.script.send(signal.SIGKILL)
            self.settle()

    def reuse_native_id(
        self, native_id: str, script: str = "#!/bin/sh\nexec sleep 300\n", *, kill: bool = True
    ) -> FakeJob:
        """Forget a job without trace, and give its native id to a foreign job, which is returned.

        A controller does so if it was killed before it recorded a job, and restarted. The foreign job runs
        `script`, was submitted now, and carries no tag.

        Args:
            native_id: the job.
            script: the script of the foreign job.
            kill: whether the processes of the job are killed; otherwise they run on.

        Raises:
            KeyError: there is no such job.
        """
        with self.lock:
            lost = self.job(native_id)
            self.vanish(native_id, kill=kill)
            return self.submit(job_with_reused_id(lost, script))

    def untag(self, native_id: str) -> None:
        """Remove the tag from a job, as if a user had changed the text that carried it.

        Raises:
            KeyError: there is no such job.
        """
        with self.lock:
            untag(self.job(native_id))

    # Queries, for tests.

    @property
    def jobs(self) -> list[FakeJob]:
        """All jobs that were ever submitted, in order, whatever listings show."""
        with self.lock:
            return list(self._jobs)

    def job(self, native_id: str) -> FakeJob:
        """Return the job of this id, even if no listing shows it.

        Raises:
            KeyError: there is no such job, or it has vanished.
        """
        return self._known[native_id]

    def wait_for(self, condition: Callable[[], object], timeout: float = _TIMEOUT_SECONDS) -> bool:
        """Wait until `condition` is true, checked after every change; return False after the timeout."""
        with self._changed:
            return bool(self._changed.wait_for(lambda: bool(condition()), timeout))

    def note(self, invocation: Invocation) -> None:
        """Log a call of a command."""
        with self.lock:
            self.log.append(Call(self.clock(), invocation))
            self._changed.notify_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _end(self, native_id: str, state: FakeState) -> bool:
        return self._end_all([native_id], state) > 0

    def _end_all(self, native_ids: Iterable[str], state: FakeState) -> int:
        """End jobs; return the number of jobs that could be ended."""
        count = 0
        with self.lock:
            self.settle()
            for job in map(self._known.get, native_ids):
                if job is None or job.state.final:
                    continue
                count += 1
                if job in self._runs:
                    self._stop(self._runs[job], state, self.kill_delay)
                else:
                    job.state, job.ended = state, self._timestamp
            if count:
                self.settle()
        return count

    def _change_state(self, native_id: str, old: FakeState, new: FakeState) -> bool:
        with self.lock:
            self.settle()
            job = self._known.get(native_id)
            if job is None or job.state is not old:
                return False
            job.state, job.why = new, "held" if new is FakeState.HELD else ""
            self.settle()
            return True
