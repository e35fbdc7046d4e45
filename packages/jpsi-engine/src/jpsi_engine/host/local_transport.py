"""Runs commands as processes of this machine: to their end, or long-lived ones whose lines are read."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import select
import signal
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, BinaryIO, TypeVar, cast

from jpsi.plugin import BytesResult, Command, CommandResult, TransportError
from jpsi_engine.host.child_environment import child_environment
from jpsi_engine.host.files import is_transient
from jpsi_engine.host.pidfd import open_pidfd

# The children of a killed command may keep its output open.
_DRAIN_SECONDS = 1.0
# A command that has closed its output is about to end.
_EXIT_WAIT_MS = 20
# A killed process is gone at once, unless it is blocked in the kernel.
_REAP_SECONDS = 1.0

P = TypeVar("P", bound=subprocess.Popen[bytes])


class LocalTransport:
    """The transport that runs commands as processes of this machine; implements `jpsi.plugin.Transport`."""

    is_local = True

    def run(
        self, command: Command, keep: int | None = None, ready: Callable[[], None] | None = None
    ) -> CommandResult:
        """Run a command; see `jpsi.plugin.Transport`.

        The command runs in a session of its own. Signals from this program's terminal (Ctrl-C, a closed
        window) do not reach it, and at a timeout all its processes are killed.
        """
        return self._run(command, _encode_input(command), keep, ready).decoded

    def exchange(self, command: Command, data: bytes = b"") -> BytesResult:
        """Run a command that reads and prints bytes; see `jpsi.plugin.BytesTransport`."""
        return self._run(command, data)

    def _run(
        self,
        command: Command,
        data: bytes | None,
        keep: int | None = None,
        ready: Callable[[], None] | None = None,
    ) -> BytesResult:
        if ready is not None and data is None:
            ready()
        # without `with`, which waits: a child that the kernel cannot kill must not block the caller
        process = _start(
            _Process,
            command,
            stdin=subprocess.DEVNULL if data is None else subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment_for(command),
            pass_fds=() if keep is None else (keep,),
        )
        try:
            if ready is not None and data is not None:
                ready()
            result = _communicate(process, command, data)
        except BaseException:
            _kill(process)
            raise
        if process.was_reaped and not result.timed_out:
            msg = (
                f"the exit code of {command.argv[0]} is lost: this program ignores SIGCHLD, or waits for "
                "processes that it did not start"
            )
            raise TransportError(msg, transient=True, may_have_run=True)
        return result

    def open(self, command: Command) -> ProcessLines:
        """Start a command whose output is read line by line; see `jpsi.plugin.LineTransport`."""
        return ProcessLines(command)

    def close(self) -> None:
        """Do nothing: a local transport holds no connection."""


class ProcessLines:
    """The output lines of one process; implements `jpsi.plugin.Lines`.

    The process runs in a session of its own; `close` kills the whole session.
    """

    def __init__(self, command: Command) -> None:
        data = _encode_input(command) or b""
        self._process = _start(
            subprocess.Popen,
            command,
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_environment_for(command),
        )
        self._owner = os.getpid()
        self._lock = threading.Lock()
        with contextlib.suppress(OSError), cast("BinaryIO", self._process.stdin) as stdin:
            stdin.write(data)

    def __iter__(self) -> Iterator[str]:
        """Yield the lines, without their ends, until the process closes its output."""
        try:
            with cast("BinaryIO", self._process.stdout) as stdout:
                for line in stdout:
                    yield line.decode(errors="replace").rstrip("\n")
        finally:
            self.close()
            if os.getpid() == self._owner:
                with self._lock, contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(_REAP_SECONDS)

    def close(self) -> None:
        """Kill the process and its children; does nothing in a forked child.

        The thread that reads the lines waits for the end of the process. The garbage collector may call this
        method, in any thread at any time, so it never waits and takes no lock that is held.
        """
        if os.getpid() == self._owner and self._lock.acquire(blocking=False):
            try:
                if self._process.poll() is None:
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.killpg(self._process.pid, signal.SIGKILL)
            finally:
                self._lock.release()


class _Process(subprocess.Popen[bytes]):
    """A process that notices if the application has collected its exit code."""

    was_reaped = False

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        # CPython returns status 0 in this case, which would turn every failure into a success.
        try:
            ended = os.waitpid(self.pid, wait_flags)
            if ended == (0, 0) and _ends_soon(self.pid):
                # with a timeout, CPython would sleep between its checks for as long as a command often takes
                ended = os.waitpid(self.pid, wait_flags)
        except ChildProcessError:
            self.was_reaped = True
            return self.pid, 0
        return ended


def _ends_soon(pid: int) -> bool:
    """Wait briefly for a process to end; return False if it has not, or if the system has no pidfds."""
    try:
        fd = open_pidfd(pid)
    except OSError:
        return False
    try:
        ending = select.poll()
        ending.register(fd, select.POLLIN)
        return bool(ending.poll(_EXIT_WAIT_MS))
    finally:
        os.close(fd)


def environment_of(command: Command, inherited: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for a command.

    >>> command = Command(["x"], unset=["SBATCH_*", "A"], environment={"B": "1"})
    >>> environment_of(command, {"A": "", "AB": "", "SBATCH_X": ""})
    {'AB': '', 'B': '1'}
    """
    if not command.unset:
        return {**inherited, **command.environment}
    is_unset = _unset_pattern(command.unset).match
    retained = {name: value for name, value in inherited.items() if not is_unset(name)}
    return {**retained, **command.environment}


def _environment_for(command: Command) -> Mapping[str, str] | None:
    """Return the environment of a command; None if it is that of this process."""
    inherited = child_environment()
    if _needs_environment(command, inherited):
        return environment_of(command, inherited)
    return None if inherited is os.environ else inherited


def _needs_environment(command: Command, inherited: Iterable[str]) -> bool:
    """Return True if a command's environment differs from this process's, which is cheaper to inherit."""
    is_unset = _unset_pattern(command.unset).match
    return bool(command.environment) or (bool(command.unset) and any(map(is_unset, inherited)))


@functools.lru_cache
def _unset_pattern(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """Return the pattern of the variable names in `Command.unset`; a command of Slurm has dozens of them."""
    alternatives = (re.escape(it[:-1]) if it.endswith("*") else rf"{re.escape(it)}\Z" for it in patterns)
    return re.compile("|".join(alternatives), re.DOTALL)


def _encode_input(command: Command) -> bytes | None:
    return None if command.stdin is None else command.stdin.encode(errors="surrogateescape")


def _start(kind: type[P], command: Command, **options: Any) -> P:  # noqa: ANN401  those of Popen
    """Start a command in a session of its own, whose output the caller reads."""
    try:
        return kind(command.argv, stdout=subprocess.PIPE, start_new_session=True, **options)
    except OSError as e:
        cause = "was not found on PATH" if isinstance(e, FileNotFoundError) else f"could not be run: {e}"
        raise TransportError(f"the command {command.argv[0]} {cause}", e, transient=is_transient(e)) from e


def _communicate(process: subprocess.Popen[bytes], command: Command, data: bytes | None) -> BytesResult:
    """Give a command its input, and return its result; kill it at its timeout."""
    seconds, timed_out = None if command.timeout is None else command.timeout.total_seconds(), False
    try:
        rest = None if data is None else _write_available(process, data)
        stdout, stderr = process.communicate(rest, timeout=seconds)
    except subprocess.TimeoutExpired:
        stdout, stderr = _kill(process)
        timed_out = True
    return BytesResult(
        returncode=-signal.SIGKILL if process.returncode is None else process.returncode,
        stdout=stdout,
        stderr=stderr.decode(errors="replace"),
        timed_out=timed_out,
    )


def _write_available(process: subprocess.Popen[bytes], data: bytes) -> bytes:
    """Write as much as the pipe takes without blocking, and return the rest.

    If this program were killed between two writes, the command would have read half of a script.
    """
    if process.stdin is None:
        return data
    fd = process.stdin.fileno()
    os.set_blocking(fd, False)
    try:
        return data[os.write(fd, data) :]
    except (BlockingIOError, BrokenPipeError):
        return data
    finally:
        os.set_blocking(fd, True)


def _kill(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    """Kill a command and all its processes, and return its output so far."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    try:
        return process.communicate(timeout=_DRAIN_SECONDS)
    except subprocess.TimeoutExpired as e:
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()
        return e.stdout or b"", e.stderr or b""
