"""Waits for processes and ends sessions: all that a job has started, even if the session's leader is gone.

`runs` and `orphans` use it, so that no process of a job outlives the job or its pilot.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from jpsi_engine import RunningProgram

log = logging.getLogger(__name__)

_POLL_INTERVAL = 0.02
# The time that a killed process may take to end, in seconds: the node's worker does nothing else meanwhile.
_KILL_TIMEOUT = 1.0

# The longest timeout of poll(2), in milliseconds.
_MAX_TIMEOUT = 2.0**31 - 1


class RunLostError(Exception):
    """A run has ended, or was killed, and its exit code is not known."""


def session_members(session: int) -> list[tuple[int, int]]:
    """Return pid and parent of a session's live processes; without /proc, its leader's process group."""
    try:
        names = os.listdir("/proc")  # noqa: PTH208  numbers, not paths
    except OSError:
        names = []
    if "self" not in names:
        return [(-session, 0)] if has_members(session) else []
    found = (read_stat(int(name)) for name in names if name.isdigit())
    return [(pid, parent) for pid, parent, it in filter(None, found) if it == session]


def has_members(session: int) -> bool:
    """Return True if the session's leading process group has members.

    It is cheap, and misses processes in other groups of the session.
    """
    try:
        os.killpg(session, 0)
    except (ProcessLookupError, PermissionError):
        # macOS denies the permission for a process that has ended and was not waited for
        return False
    return True


def end_session(session: int, delay: float, *, has_runner: bool = True, start: int = 0) -> None:
    """End a session: send TERM, and KILL after the delay; return when it is empty.

    The leader gets the signal first. If it is jpsi's runner, it so knows of the signal before it sees a child
    end, and passes the signal on to its children.

    Args:
        session: the pid of its leader.
        delay: the seconds.
        has_runner: True if the leader is jpsi's runner.
        start: the start time of the leader, as proc(5) counts it, if its pid may be reused; 0 if not.
    """
    # while processes of the session live, no other process gets the pid
    if start and _start_time(Path("/proc"), session) not in {start, None}:
        return
    _send(session, signal.SIGTERM)
    for pid, parent in session_members(session):
        if pid != session and not (has_runner and parent == session):
            _send(pid, signal.SIGTERM)
    deadline = time.monotonic() + delay
    while remaining := session_members(session):
        if time.monotonic() >= deadline:
            for pid, _ in remaining:
                _send(pid, signal.SIGKILL)
        time.sleep(_POLL_INTERVAL)


def end_marked(
    variables: Mapping[str, str],
    *,
    proc: Path = Path("/proc"),
    sleep: Callable[[float], None] = time.sleep,
    now: Callable[[], float] = time.monotonic,
) -> None:
    """Kill all processes that were started with all of these variables; none without /proc.

    Each is killed once, and so are those that it has started meanwhile. A process that has not ended after a
    second, such as one that waits for a file server, or that belongs to another user, is left, and a warning
    names it.

    Raises:
        ValueError: there are no variables; every process would match.
    """
    if not variables:
        raise ValueError("end_marked needs a variable that identifies the processes to kill")
    marks = {os.fsencode(f"{name}={value}") for name, value in variables.items()}
    killed: set[_Process] = set()
    refused: set[_Process] = set()
    deadline = now() + _KILL_TIMEOUT
    while remaining := _find_marked(proc, marks) - refused:
        refused |= {it for it in remaining - killed if not _kill(proc, it)}
        killed |= remaining
        if remaining <= refused or now() >= deadline:
            break
        sleep(_POLL_INTERVAL)
    if remaining := remaining | refused:
        marks_text = " ".join(f"{name}={value}" for name, value in variables.items())
        pids = ", ".join(str(it.pid) for it in sorted(remaining))
        log.warning("processes with %s did not end after SIGKILL, and are left running: %s", marks_text, pids)


class _Process(NamedTuple):
    """A process, identified by pid and start time, as a pid may be reused."""

    pid: int
    start: int


def _find_marked(proc: Path, marks: Collection[bytes]) -> set[_Process]:
    """Return the processes whose environment has all of these variables."""
    found = set()
    for path in proc.glob("[0-9]*"):
        # read the start time first: a process that gets the pid later is not the one to kill
        start = _start_time(proc, int(path.name))
        # of another user, or gone
        with contextlib.suppress(OSError):
            if start is not None and set(marks) <= set((path / "environ").read_bytes().split(b"\0")):
                found.add(_Process(int(path.name), start))
    return found


def _start_time(proc: Path, pid: int) -> int | None:
    """Return when a process was started, in ticks; None if there is no such process."""
    try:
        return int((proc / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None


def _kill(proc: Path, process: _Process) -> bool:
    """Kill this process, unless another one has its pid by now; False if this is not allowed."""
    try:
        pidfd = _open_pidfd(process.pid)
        try:
            if _start_time(proc, process.pid) != process.start:
                return True
            if pidfd is None:
                os.kill(process.pid, signal.SIGKILL)
            else:
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        finally:
            if pidfd is not None:
                os.close(pidfd)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return True


def _open_pidfd(pid: int) -> int | None:
    """Return a descriptor of a process; None where there are no pidfds.

    Raises:
        ProcessLookupError: there is no such process.
    """
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        raise
    except (AttributeError, OSError):
        # not Linux; Linux < 5.3 (ENOSYS), or a container that allows no new call (EPERM); no descriptors left
        return None


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def read_stat(pid: int) -> tuple[int, int, int] | None:
    """Return the pid, parent and session of a live process; None if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123  a third of the time, for every process
            state, parent, _, session, *_ = file.read().rpartition(b")")[2].split()
    except (OSError, ValueError):
        return None
    return None if state in {b"Z", b"X"} else (pid, int(parent), int(session))


def wait_for_exit(process: subprocess.Popen[bytes] | RunningProgram, seconds: float) -> bool:
    """Return True as soon as a process has ended, or False after so many seconds.

    `Popen.wait` with a timeout polls ever more rarely instead: it notices an end late by up to half the time
    that the process has run.
    """
    if not isinstance(process, subprocess.Popen):
        return process.wait(seconds)
    try:
        pidfd = os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        # not Linux, or before 5.3; or there are no more descriptors
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        return process.returncode is not None
    try:
        return _wait_until_readable(pidfd, seconds)
    finally:
        os.close(pidfd)


def _wait_until_readable(fd: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    deadline = time.monotonic() + seconds
    while (remaining := deadline - time.monotonic()) > 0:
        if poll.poll(min(remaining * 1000, _MAX_TIMEOUT)):
            return True
    return False
