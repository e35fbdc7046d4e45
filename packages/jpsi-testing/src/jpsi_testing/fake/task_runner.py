"""Starts the tasks of a fake command, in the process of that command, and waits for them.

The client imports it from its own directory, without the rest of jpsi, if the answer has tasks. It has few
imports, as the modules `signal`, `threading` and `contextlib` would double the time of a start.
"""

from __future__ import annotations

import _thread
import os
import sys
import time

TYPE_CHECKING = False  # typing takes long to import
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
    from typing import Any
else:
    import _signal as signal

# The signals that the command passes on: those of srun(1) and mpirun(1), and those that batch systems send.
_FORWARDED_SIGNALS = (
    *(signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGALRM),
    *(signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU, signal.SIGCONT),
)
# Python ignores these signals, and every task would inherit that.
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
# The exit code after signal n is this plus n, as in a shell.
_SIGNAL_BASE = 128
# The time between TERM and KILL, in seconds, for the other tasks once one has failed.
_KILL_DELAY = 2.0


def run_tasks(command: str, launch: dict[str, Any], wait_for_end: Callable[[], object]) -> int:
    """Start the tasks of a launch and wait for them; return the exit code of the command.

    Args:
        command: its name.
        launch: the fields of a `TaskLaunch`.
        wait_for_end: returns once the fake batch system is gone, which kills the tasks.
    """
    # block signals until all tasks have been started, so that all get the same ones
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED_SIGNALS)
    running, codes, copies = _start(command, launch, mask)

    def send(number: int, _frame: object = None) -> None:
        for pid in list(running):
            _kill(pid, number)

    def kill_at_end() -> None:
        wait_for_end()
        send(signal.SIGKILL)

    for number in _FORWARDED_SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, send)
    _thread.start_new_thread(kill_at_end, ())
    if launch["warning"] is not None:
        number, seconds = launch["warning"]
        _start_timer(seconds, send, number)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    first = next(filter(None, codes), 0)
    while running:
        if first and launch["ends_on_failure"]:
            _end(send)
            return _wait_all(running, first)
        first = _wait(running, codes)
    for is_copied in copies:
        is_copied.acquire(timeout=_KILL_DELAY)
    return max(codes, default=0)


def _kill(pid: int, number: int) -> None:
    """Send a signal to a task, which may have ended."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _start(
    command: str, launch: dict[str, Any], mask: set[Any]
) -> tuple[set[int], list[int], list[_thread.LockType]]:
    """Start all tasks; return the pids, the exit codes of the tasks that did not start, and locks.

    Each lock is free once the lines of one stream have been copied.
    """
    running: set[int] = set()
    labelled: list[tuple[int, int, bytes]] = []
    codes: list[int] = []
    null = os.open(os.devnull, os.O_RDONLY)
    emptied: set[str] = set()
    for index, (argv, environment, stdout, stderr) in enumerate(launch["tasks"]):
        actions: list[Any] = [] if index == launch["stdin"] else [(os.POSIX_SPAWN_DUP2, null, 0)]
        actions += _output_actions(stdout, stderr, emptied)
        pipes = [os.pipe() for path in (stdout, stderr) if path is None] if launch["is_labelled"] else []
        free = [descriptor for descriptor, path in ((1, stdout), (2, stderr)) if path is None]
        for (reader, writer), descriptor in zip(pipes, free, strict=False):
            actions += [(os.POSIX_SPAWN_DUP2, writer, descriptor), (os.POSIX_SPAWN_CLOSE, writer)]
            labelled.append((reader, descriptor, f"{index}: ".encode()))
        try:
            pid = os.posix_spawnp(
                argv[0],
                argv,
                {**os.environ, **environment},
                file_actions=actions,
                setsigmask=mask,
                setsigdef=_IGNORED_BY_PYTHON,
            )
        except OSError as e:
            is_missing = isinstance(e, FileNotFoundError)
            codes.append(launch["not_found" if is_missing else "not_executable"])
            sys.stderr.write(f"{command}: error: {argv[0]}: {e.strerror}\n")
        else:
            running.add(pid)
        for _, writer in pipes:
            os.close(writer)
    os.close(null)
    return running, codes, [_start_copy(*stream) for stream in labelled]


def _start_copy(reader: int, descriptor: int, label: bytes) -> _thread.LockType:
    """Copy the lines of a task to a stream of the command, each after the label; return a lock until then."""
    is_copied = _thread.allocate_lock()
    is_copied.acquire()

    def copy_lines() -> None:
        try:
            with os.fdopen(reader, "rb") as stream:
                for line in stream:
                    os.write(descriptor, label + line)
        finally:
            is_copied.release()

    _thread.start_new_thread(copy_lines, ())
    return is_copied


def _output_actions(stdout: str | None, stderr: str | None, emptied: set[str]) -> list[Any]:
    """Return the actions that open the files of a task's streams; a file is emptied once."""
    found: list[Any] = []
    for descriptor, path in ((1, stdout), (2, stderr)):
        if path is not None:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | (0 if path in emptied else os.O_TRUNC)
            emptied.add(path)
            found.append((os.POSIX_SPAWN_OPEN, descriptor, path, flags, 0o666))
    return found


def _wait(running: set[int], codes: list[int]) -> int:
    """Wait for the end of one task; return its exit code."""
    # Forget it before it is reaped, so that no signal goes to another process with its pid.
    ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
    pid = ended.si_pid if ended is not None else 0
    is_task = pid in running
    running.discard(pid)
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    code = code if code >= 0 else _SIGNAL_BASE - code
    if is_task:
        codes.append(code)
    return code if is_task else 0


def _end(send: Callable[[int], None]) -> None:
    """End tasks: send TERM, and KILL after a delay."""
    send(signal.SIGTERM)
    _start_timer(_KILL_DELAY, send, signal.SIGKILL)


def _start_timer(seconds: float, send: Callable[[int], None], number: int) -> None:
    def send_later() -> None:
        time.sleep(seconds)
        send(number)

    _thread.start_new_thread(send_later, ())


def _wait_all(running: set[int], code: int) -> int:
    while running:
        _wait(running, [])
    return code
