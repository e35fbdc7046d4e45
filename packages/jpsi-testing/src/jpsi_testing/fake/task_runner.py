"""Starts the tasks of a fake command, in the process of that command, and waits for them.

The client imports it from its own directory, without the rest of jpsi, if the answer has tasks.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

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
    labelled: list[threading.Thread] = []
    running, codes = _start(command, launch, mask, labelled)

    def send(number: int, _frame: object = None) -> None:
        for pid in list(running):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill_at_end() -> None:
        wait_for_end()
        send(signal.SIGKILL)

    for number in _FORWARDED_SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, send)
    threading.Thread(target=kill_at_end, daemon=True).start()
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
    for thread in labelled:
        thread.join(_KILL_DELAY)
    return max(codes, default=0)


def _start(
    command: str, launch: dict[str, Any], mask: set[Any], labelled: list[threading.Thread]
) -> tuple[set[int], list[int]]:
    """Start all tasks; return the pids, and the exit codes of the tasks that did not start."""
    running: set[int] = set()
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
            label = f"{index}: ".encode()
            labelled.append(
                threading.Thread(target=_copy_lines, args=(reader, descriptor, label), daemon=True)
            )
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
    for thread in labelled:
        thread.start()
    return running, codes


def _copy_lines(reader: int, descriptor: int, label: bytes) -> None:
    """Copy the lines of a task to a stream of the command, each after the label."""
    with os.fdopen(reader, "rb") as stream:
        for line in stream:
            os.write(descriptor, label + line)


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
    timer = threading.Timer(seconds, send, [number])
    timer.daemon = True
    timer.start()


def _wait_all(running: set[int], code: int) -> int:
    while running:
        _wait(running, [])
    return code
