"""A run of a job of a fake batch system, simulated or real: its begin, its end, and requeues.

The scheduler (`machine`, `scheduler`) uses it. The script of a real run is a process in a session of its own.
A signal reaches every process of the session; when the script has ended, the rest of it is killed.
"""

from __future__ import annotations

import contextlib
import copy
import os
import shlex
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO

import attrs

from jpsi_engine import open_private
from jpsi_testing.fake.job import FakeJob, FakeState, Outcome


@attrs.define(slots=True, eq=False)
class Run:
    """A job that runs."""

    job: FakeJob
    #: Its processes; None for a simulated run.
    script: RunningScript | None
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
    return Run(job, start(job, file(), ended), None, 0, limit)


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


_SHELL = ["/bin/sh"]


@attrs.frozen(slots=True, eq=False)
class RunningScript:
    """The processes of one run of a job."""

    _process: subprocess.Popen[bytes]
    _thread: threading.Thread
    # Held while processes are signalled, and while the first one is reaped: its pid may be reused then.
    _lock: threading.Lock

    def send(self, number: int) -> None:
        """Signal every process of the session; ignore those that have ended."""
        with self._lock:
            if self._process.returncode is None:
                _send(self._process.pid, number)

    def join(self, timeout: float) -> None:
        """Wait until `ended` was called, at most this time in seconds."""
        if self._thread is not threading.current_thread():
            self._thread.join(timeout)


def start(job: FakeJob, file: Path, ended: Callable[[int], None]) -> RunningScript:
    """Start a job's script from `file`; on another thread, `ended` gets its exit code, or -n after signal n.

    The job's further files are written beside it.

    Raises:
        OSError: the directory, a stream or the interpreter does not exist.
    """
    _write(file, job.script)
    files = {name: file.with_name(f"{file.name}.{name}") for name in job.files}
    for name, path in files.items():
        _write(path, job.files[name])
    with _open(job, job.stdout) as stdout, _open(job, job.stderr) as stderr:
        process = subprocess.Popen(  # noqa: S603  running the submitted script is its purpose
            [*_interpreter(job.script), str(file), *job.arguments],
            cwd=job.directory,
            env={**job.environment, **{name: str(path) for name, path in files.items()}},
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            # two open files of one path would overwrite each other's output
            stderr=stdout if os.path.sameopenfile(stdout.fileno(), stderr.fileno()) else stderr,
            start_new_session=True,
        )
    lock = threading.Lock()
    thread = threading.Thread(
        target=_wait, args=(process, lock, ended), name=f"fake job {job.native_id}", daemon=True
    )
    running = RunningScript(process, thread, lock)
    thread.start()
    return running


def _write(path: Path, text: str) -> None:
    # whatever the umask, which is the job's
    fd = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    with os.fdopen(fd, "w", errors="surrogateescape") as file:
        file.write(text)


def _wait(process: subprocess.Popen[bytes], lock: threading.Lock, ended: Callable[[int], None]) -> None:
    # reap it only after the rest of the session is killed, so that its pid is not reused
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    with lock:
        _send(process.pid, signal.SIGKILL)
        code = process.wait()
    ended(code)


def _send(session: int, number: int) -> None:
    pids = _members(session)
    # stop all before the first is killed: a runner that sees its program end of KILL records that
    for each in (signal.SIGSTOP, number) if number == signal.SIGKILL else (number,):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, each)


def _interpreter(script: str) -> list[str]:
    first = script.partition("\n")[0]
    return (shlex.split(first[2:]) if first.startswith("#!") else []) or _SHELL


def _open(job: FakeJob, path: str | None) -> IO[bytes]:
    return Path(job.directory, os.devnull if path is None else path).open("wb")


def _members(leader: int) -> list[int]:
    """Return the processes of a session as they were started; without /proc, its leader's process group.

    Pids count up from that of the leader, and go on with the lowest ones after the highest.
    """
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208  names are enough
    except FileNotFoundError:
        return [-leader]
    return sorted((pid for pid in pids if _is_member(pid, leader)), key=lambda pid: (pid < leader, pid))


def _is_member(pid: int, leader: int) -> bool:
    try:
        return os.getsid(pid) == leader
    except OSError:
        return False
