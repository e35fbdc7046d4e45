"""Runs jobs on a node of a pilot: each is a session, ended when its time is up or when it is cancelled.

The worker of the engine `dask` uses it; with the engine `flux`, Flux itself runs the jobs.
"""

from __future__ import annotations

import functools
import json
import logging
import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from ..protocol import ALLOCATION, JOB_VARIABLE, LOG_VARIABLE, End, Task
from .node_log import NodeLog, requested_stops
from .sessions import RunLostError, end_marked, end_session, has_members, wait_for_exit

if TYPE_CHECKING:
    from jpsi_engine import RunningProgram

log = logging.getLogger(__name__)

#: The time that jobs have to end with the pilot, in seconds: a batch system waits for a few seconds only.
PILOT_DELAY = 1.5
_SIGNAL_BASE = 128
# The exit codes after signals that a batch system sends to all processes of a pilot, in any order. A run may
# end of one before the pilot gets it: the node then waits so many seconds for the pilot's own.
_PILOT_END_CODES = frozenset(_SIGNAL_BASE + it for it in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM))
_PILOT_END_TIMEOUT = 3.0
# The interval, in seconds, at which the node checks for stop requests of the next agent.
_STOP_CHECK_INTERVAL = 0.5


@attrs.define(slots=True)
class _Run:
    """A run that has not ended."""

    task: Task
    #: The positions of its GPUs.
    devices: Sequence[int]
    #: Its script, or the program of a job that needs no shell; None until it is started.
    _process: subprocess.Popen[bytes] | RunningProgram | None = None
    #: The reason why it is being ended; empty while it is not.
    why: str = ""
    #: The thread that ends it.
    end_thread: threading.Thread | None = None

    @property
    def is_started(self) -> bool:
        """True once it has a process."""
        return self._process is not None

    @property
    def process(self) -> subprocess.Popen[bytes] | RunningProgram:
        """The process of a run that is started."""
        assert self._process is not None  # noqa: S101  see is_started
        return self._process

    @process.setter
    def process(self, process: subprocess.Popen[bytes] | RunningProgram) -> None:
        self._process = process

    @property
    def has_ended(self) -> bool:
        """True if its end is known."""
        if isinstance(self.process, subprocess.Popen):
            return self.process.returncode is not None
        return self.process.has_ended


class Runs:
    """The runs of one node; any thread may call its methods."""

    def __init__(self, agent_folder: Path, log: NodeLog) -> None:
        # it imports all of jpsi, of which the node supervisor needs nothing
        from .programs import Programs  # noqa: PLC0415

        self._programs = Programs(log)
        self._folder = agent_folder
        self._log = log
        self._lock = threading.Condition()
        self._devices = Devices(os.environ)
        self._runs: dict[str, _Run] = {}
        self._cancelled_before_begin: set[str] = set()
        # the GPUs of jobs whose scripts run on other nodes
        self._held: dict[str, Sequence[int]] = {}
        self._is_closed = False

    def run(self, task: Task) -> End:
        """Run a task to its end."""
        try:
            started = self._begin(task)
        except (OSError, ValueError, NoDeviceError) as e:
            return End(code=None, why="unable", message=f"the job could not be started on its node: {e}")
        if isinstance(started, End):
            return started
        try:
            end = self._wait_for_end(started)
        except Exception as e:
            # out of threads, or of memory: no process may run that no thread watches
            log.exception("the node could not monitor job %s, and killed it", task.native_id)
            _kill(started.process)
            end = End(code=None, why="lost", message=f"the node could not monitor the job: {e}")
        self._log.record_ended(task.native_id, task.restarts, end)
        self._forget(started)
        return end

    def _wait_for_end(self, run: _Run) -> End:
        """Wait for the end of a run, and end the processes that it leaves behind."""
        with self._lock:
            why = run.why
        if why:
            # it was asked to end while it was started
            self._end(run, why, PILOT_DELAY if why == "pilot" else run.task.kill_delay)
        if not wait_for_exit(run.process, run.task.seconds):
            self._end(run, "timeout", run.task.kill_delay)
        run.process.wait()
        code = run.process.returncode
        if code is None:
            msg = "the process that started its program was killed"
            raise RunLostError(msg)
        if run.end_thread is not None:
            run.end_thread.join()
        elif has_members(run.process.pid):
            # processes that the job has left behind have no resources any more
            _end_session(run.process, run.task.kill_delay)
        code = code if code >= 0 else _SIGNAL_BASE - code
        if code in _PILOT_END_CODES:
            with self._lock:
                self._lock.wait_for(lambda: run.why or self._is_closed, _PILOT_END_TIMEOUT)
        return End(code=code, why=run.why)

    def stop(self, native_id: str) -> None:
        """End the run of a job, also one that has not begun; return at once."""
        with self._lock:
            run = self._runs.get(native_id)
            if run is None:
                self._cancelled_before_begin.add(native_id)
        if run is not None:
            self._end(run, "cancel", run.task.kill_delay)

    def hold(self, native_id: str, gpus: int | None) -> Mapping[str, str]:
        """Reserve GPUs for a job whose script runs on another node; return the variables that name them.

        Args:
            native_id: the job.
            gpus: how many; None if the pilot has none to assign.

        Raises:
            NoDeviceError: not enough of them are free.
        """
        if gpus is None:
            return {}
        with self._lock:
            held = self._devices.reserve(gpus)
            self._held[native_id] = held
            return self._devices.variables(held)

    def release(self, native_id: str) -> None:
        """Free the GPUs of a job that is over, and end the processes that it has left on this node.

        It leaves processes if its launcher was killed. Processes that it has submitted as another job of
        Slurm carry its variable too, and go on.
        """
        if ALLOCATION in os.environ:
            end_marked({JOB_VARIABLE: native_id, ALLOCATION: os.environ[ALLOCATION]})
        with self._lock:
            self._devices.release(self._held.pop(native_id, ()))

    def close(self) -> None:
        """Begin no more runs, and let all that end from now on end because of the pilot."""
        with self._lock:
            self._is_closed = True
            for run in self._runs.values():
                run.why = run.why or "pilot"
            self._lock.notify_all()

    def end_all(self) -> None:
        """Close, and end all runs; return when the last has ended."""
        self.close()
        with self._lock:
            runs = list(self._runs.values())
        for run in runs:
            self._end(run, "pilot", PILOT_DELAY)
        self.drain()

    def drain(self) -> None:
        """Wait for the end of all runs and close; meanwhile end those that another agent requests to stop."""
        while not self._wait_until_empty():
            for native_id in requested_stops(self._log.folder):
                with self._lock:
                    is_running = native_id in self._runs
                if is_running:
                    self.stop(native_id)

    def _wait_until_empty(self) -> bool:
        """Close as soon as there is no run, and return True; return False after a short while."""
        with self._lock:
            is_empty = self._lock.wait_for(lambda: not self._runs, _STOP_CHECK_INTERVAL)
            # a run that another thread is about to begin would be lost when the process ends
            self._is_closed = self._is_closed or is_empty
            return is_empty

    def _begin(self, task: Task) -> _Run | End:
        with self._lock:
            if self._is_closed:
                return End(code=None, why="pilot")
            if task.native_id in self._cancelled_before_begin:
                self._cancelled_before_begin.discard(task.native_id)
                return End(code=None, why="cancel")
            devices = self._devices.reserve(task.gpus or 0)
            run = self._runs[task.native_id] = _Run(task, devices)
        # Without the lock: a file system that does not answer delays no script. Programs without a shell are
        # started one after the other.
        try:
            process = self._start(run)
        except RunLostError as e:
            end = End(code=None, why="lost", message=str(e))
            self._log.record_ended(task.native_id, task.restarts, end)
            self._forget(run)
            return end
        except BaseException:
            self._forget(run)
            raise
        with self._lock:
            run.process = process
        return run

    def _start(self, run: _Run) -> subprocess.Popen[bytes] | RunningProgram:
        """Start the session of a run, and record it in the log; end it again if the log cannot be written."""
        task = run.task
        device_variables = {} if task.gpus is None else self._devices.variables(run.devices)
        variables = {**task.variables, **device_variables, LOG_VARIABLE: str(self._log.path)}
        inherited = read_environment(self._folder / task.environment)
        self._log.record_beginning(task.native_id, task.restarts)
        program = self._programs.start(task, variables, inherited)
        own = {os.fsencode(name): os.fsencode(it) for name, it in variables.items()}
        process = program or _start_script(task, {**inherited, **own})
        try:
            start = 0 if program is None else program.start_time
            self._log.record_begun(task.native_id, task.restarts, process.pid, start)
        except OSError:
            # the supervisor, which ends the runs of a lost worker, would not know of it
            _kill(process)
            raise
        if program is not None:
            program.begin()
        return process

    def _forget(self, run: _Run) -> None:
        with self._lock:
            del self._runs[run.task.native_id]
            self._devices.release(run.devices)
            self._lock.notify_all()

    def _end(self, run: _Run, why: str, delay: float) -> None:
        """End a run for this reason, unless it has another reason already."""
        with self._lock:
            run.why = run.why or why
            if not run.is_started or run.end_thread is not None or run.has_ended:
                return
            _request_end(run.process)
            end_thread = threading.Thread(
                target=_end_session,
                args=(run.process, delay),
                name=f"end {run.task.native_id}",
            )
            end_thread.start()
            run.end_thread = end_thread


def _start_script(task: Task, environment: Mapping[bytes, bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603  the user's own script
        ["/bin/sh", "-c", task.script],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env=environment,
        start_new_session=True,
        umask=task.umask,
    )


def _kill(process: subprocess.Popen[bytes] | RunningProgram) -> None:
    """Kill a run, and wait for its end."""
    _request_end(process)
    _end_session(process, 0)
    process.wait()


def _end_session(process: subprocess.Popen[bytes] | RunningProgram, delay: float) -> None:
    if isinstance(process, subprocess.Popen):
        end_session(process.pid, delay)
    else:
        # it is collected before this process knows of its end
        end_session(process.pid, delay, has_runner=False, start=process.start_time)


def _request_end(process: subprocess.Popen[bytes] | RunningProgram) -> None:
    # a script gets the signal itself
    if not isinstance(process, subprocess.Popen):
        process.request_end()


@functools.lru_cache(maxsize=32)
def read_environment(path: Path) -> Mapping[bytes, bytes]:
    """Return the variables that the agent has stored; as JSON has no bytes, they are encoded in Latin-1."""
    stored: Mapping[str, str] = json.loads(path.read_text(encoding="utf-8"))
    return {name.encode("latin-1"): value.encode("latin-1") for name, value in stored.items()}


# CUDA's, ROCm's and Level Zero's.
_VARIABLES = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK")


class NoDeviceError(Exception):
    """A node has fewer free GPUs than a run needs."""


class Devices:
    """The GPUs of a node; the caller of its methods holds a lock."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Read from variables which GPUs the pilot may use; without them, only count GPUs.

        Args:
            environment: the environment of the pilot.
        """
        self._names = {
            name: [it.strip() for it in environment[name].split(",") if it.strip()]
            for name in _VARIABLES
            if name in environment
        }
        self._reserved: set[int] = set()

    def reserve(self, count: int) -> tuple[int, ...]:
        """Reserve so many free GPUs, and return their positions; the caller gives them back.

        Raises:
            NoDeviceError: not enough of them are free.
        """
        total = min(map(len, self._names.values()), default=len(self._reserved) + count)
        free = [it for it in range(total) if it not in self._reserved]
        if len(free) < count:
            msg = f"it needs {count} GPUs, and {len(free)} of the pilot's {total} on that node are free"
            raise NoDeviceError(msg)
        self._reserved.update(free[:count])
        return tuple(free[:count])

    def release(self, positions: Sequence[int]) -> None:
        """Free these GPUs."""
        self._reserved.difference_update(positions)

    def variables(self, positions: Sequence[int]) -> Mapping[str, str]:
        """Return the variables that show a run its own GPUs and no others.

        >>> Devices({"CUDA_VISIBLE_DEVICES": "GPU-a,GPU-b"}).variables([1])
        {'CUDA_VISIBLE_DEVICES': 'GPU-b'}
        >>> Devices({}).variables([0, 2])
        {'CUDA_VISIBLE_DEVICES': '0,2'}
        """
        if not self._names:
            return {_VARIABLES[0]: ",".join(map(str, positions))}
        return {name: ",".join(names[it] for it in positions) for name, names in self._names.items()}
