"""The core of a fake batch system: starts and ends jobs, by free slots, time and ends of processes.

`FakeScheduler` extends it by the methods for commands and tests.
"""

from __future__ import annotations

import functools
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from jpsi_testing.fake.clock import FakeClock
from jpsi_testing.fake.faults import Faults
from jpsi_testing.fake.invocation import Log
from jpsi_testing.fake.job import FakeJob, FakeState, Outcome
from jpsi_testing.fake.runs import Run, begin, finish

# The seconds that `close` waits for each thread.
_TIMEOUT_SECONDS = 10.0


class Machine:
    """The jobs of a fake batch system and their changes of state; private methods are called under `lock`."""

    def __init__(  # noqa: PLR0913  the properties of a batch system, each by its name
        self,
        clock: Callable[[], float] | None = None,
        *,
        slots: int = 4,
        lag: float = 0.0,
        keep: float = 300.0,
        accounting: bool = True,
        accounting_lag: float = 0.0,
        kill_delay: float = 2.0,
        outcome: Outcome | None = None,
        outcomes: Mapping[str, Outcome] | None = None,
    ) -> None:
        #: Returns the time in seconds since 1970.
        self.clock = time.time if clock is None else clock
        #: The number of slots for jobs.
        self.slots = slots
        #: The time between TERM and KILL, in seconds.
        self.kill_delay = kill_delay
        #: The outcome of simulated jobs; None runs real processes.
        self.outcome = outcome
        #: The outcomes of jobs with these names.
        self.outcomes = dict(outcomes or {})
        #: The time for which listings do not show a new job, in seconds.
        self.lag = lag
        #: The time for which listings still show an ended job, in seconds.
        self.keep = keep
        #: True if there is accounting.
        self.accounting = accounting
        #: The time after which the accounting records a submission, a start or an end, in seconds.
        self.accounting_lag = accounting_lag
        #: The number of further requests to cancel a job that are accepted and forgotten.
        self.ignored_cancels = 0
        #: The faults of commands.
        self.faults = Faults()
        #: All calls of commands.
        self.log = Log()
        #: Held while anything changes, and while a command is answered.
        self.lock = threading.RLock()
        self._changed = threading.Condition(self.lock)
        self._wakeup = threading.Condition(self.lock)
        self._jobs: list[FakeJob] = []
        self._known: dict[str, FakeJob] = {}
        self._runs: dict[FakeJob, Run] = {}
        self._detached_runs: list[Run] = []
        self._timestamp = self.clock()
        self._folder: Path | None = None
        self._files = self._number = 0
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._is_settling = False
        if isinstance(clock, FakeClock):
            clock.on_advance(self.settle)

    def settle(self) -> None:
        """Let everything happen that is due by now, in the order of time."""
        with self.lock:
            self._settle()
            self._wakeup.notify_all()

    def close(self) -> None:
        """Kill all running processes, and take no more jobs; return when every process has ended."""
        with self.lock:
            self._is_closed = True
            running = [run for run in (*self._runs.values(), *self._detached_runs) if run.script is not None]
            self._wakeup.notify_all()
        for run in running:
            if run.script is not None:
                run.script.send(signal.SIGKILL)
                run.script.join(_TIMEOUT_SECONDS)
        if self._thread is not None:
            self._thread.join(_TIMEOUT_SECONDS)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _settle(self) -> None:
        if self._is_settling:
            return  # `blocked` has cancelled a job within this method
        self._is_settling = True
        try:
            self._process_due_events()
        finally:
            self._is_settling = False
        self._changed.notify_all()

    def _process_due_events(self) -> None:
        now = max(self.clock(), self._timestamp)
        while not self._is_closed:
            self._start_jobs()
            event_time = self._next_event_time()
            if event_time is None or event_time > now:
                break
            self._timestamp = max(self._timestamp, event_time)
            self._update_runs()
        self._timestamp = now
        if not self._is_closed:
            self._start_jobs()

    def _next_event_time(self) -> float | None:
        """Return the next time at which the clock alone changes something; None if there is none."""
        times = [time for run in self._runs.values() if (time := run.next_event_time()) is not None]
        times += [
            job.begin
            for job in self._known.values()
            if job.state is FakeState.PENDING and job.begin > self._timestamp
        ]
        return min(times, default=None)

    def _start_jobs(self) -> None:
        """Start jobs in the order of submission; one that lacks slots makes those behind it wait too."""
        free = self.slots - sum(job.slots for job in self._runs)
        is_full = False
        for job in [job for job in self._known.values() if job.state is FakeState.PENDING]:
            job.why = self._pending_reason(job, 0 if is_full else free)
            is_full = is_full or job.why == "resources"
            if not job.why:
                self._start(job)
                free -= job.slots if job in self._runs else 0

    def _pending_reason(self, job: FakeJob, free: int) -> str:
        if job.begin > self._timestamp:
            return "begin"
        blocked = None if job.blocked is None else job.blocked()
        if blocked is not None:
            return blocked
        # `blocked` may have cancelled the job, as a dependency that can never be satisfied does
        return "resources" if job.slots > free else ""

    def _start(self, job: FakeJob) -> None:
        if job.state is not FakeState.PENDING:
            return
        if job.starting is not None:
            job.starting(job)
        ended = functools.partial(self._on_end, job)
        try:
            run = begin(job, self._timestamp, self.outcomes.get(job.name, self.outcome), self._file, ended)
        except (OSError, ValueError) as e:
            job.why = f"launch failed: {e}"
            job.ended, job.state = self._timestamp, FakeState.FAILED
            return
        job.state = FakeState.RUNNING
        self._runs[job] = run

    def _file(self) -> Path:
        """Return a new path for the script of a run."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="jpsi-fake-"))
            # whatever the umask
            self._folder.chmod(0o700)
        self._files += 1
        return self._folder / f"script{self._files}"

    def _update_runs(self) -> None:
        """End, stop or kill the runs for which this is due now."""
        for job, run in list(self._runs.items()):
            if run.end is not None and run.end <= self._timestamp:
                self._finish(job, run.code)
            elif run.limit is not None and run.limit <= self._timestamp:
                self._stop(run, FakeState.TIMEOUT, self.kill_delay)
            elif run.kill is not None and run.kill <= self._timestamp and run.script is not None:
                run.kill = None
                run.script.send(signal.SIGKILL)

    def _stop(self, run: Run, ending: FakeState, kill_delay: float) -> None:
        if run.stop(self._timestamp, ending, kill_delay):
            self._finish(run.job, run.code)

    def _finish(self, job: FakeJob, code: int) -> None:
        del self._runs[job]
        finish(job, self._timestamp, code)

    def _on_end(self, job: FakeJob, code: int) -> None:
        """Record the end of a process; called on a thread of its own."""
        with self.lock:
            if job in self._runs:
                self._timestamp = max(self.clock(), self._timestamp)
                self._finish(job, code)
            self.settle()

    def _start_timer(self) -> None:
        """Start the thread that lets real time change the jobs."""
        if self._thread is None and not isinstance(self.clock, FakeClock):
            self._thread = threading.Thread(target=self._tick, name="fake batch system", daemon=True)
            self._thread.start()

    def _tick(self) -> None:
        with self.lock:
            while not self._is_closed:
                self._settle()
                event_time = self._next_event_time()
                self._wakeup.wait(None if event_time is None else max(0.0, event_time - self.clock()))
