"""Runs the commands of a batch system as processes of this machine."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import select
import signal
import subprocess
from collections.abc import Callable, Iterable, Mapping

from jpsi.plugin import BytesResult, Command, CommandResult, TransportError
from jpsi_engine.host.files import is_transient
from jpsi_engine.host.line_stream import ProcessLines
from jpsi_engine.host.pidfd import open_pidfd

# The children of a killed command may keep its output open.
_DRAIN_SECONDS = 1.0
# A command that has closed its output is about to end.
_EXIT_WAIT_MS = 20


class LocalTransport:
    """The transport that runs commands as processes of this machine; implements `jpsi.plugin.Transport`."""

    @property
    def is_local(self) -> bool:
        """Always true."""
        return True

    def run(
        self, command: Command, keep: int | None = None, ready: Callable[[], None] | None = None
    ) -> CommandResult:
        """Run a command; see `jpsi.plugin.Transport`.

        The command runs in a session of its own. Signals from this program's terminal (Ctrl-C, a closed
        window) do not reach it, and at a timeout all its processes are killed.
        """
        data = None if command.stdin is None else command.stdin.encode(errors="surrogateescape")
        return self._run(command, data, keep, ready).decoded

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
        try:
            # without `with`, which waits: a child that the kernel cannot kill must not block the caller
            process = _Process(
                command.argv,
                stdin=subprocess.DEVNULL if data is None else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment_of(command, os.environ) if _needs_environment(command, os.environ) else None,
                start_new_session=True,
                pass_fds=() if keep is None else (keep,),
            )
        except OSError as e:
            cause = "was not found on PATH" if isinstance(e, FileNotFoundError) else f"could not be run: {e}"
            msg = f"the command {command.argv[0]} {cause}"
            raise TransportError(msg, e, transient=is_transient(e)) from e
        seconds = None if command.timeout is None else command.timeout.total_seconds()
        try:
            if ready is not None and data is not None:
                ready()
            if data is not None:
                data = _write_available(process, data)
            stdout, stderr = process.communicate(data, timeout=seconds)
        except subprocess.TimeoutExpired:
            stdout, stderr = _kill(process)
            return _result(process, stdout, stderr, timed_out=True)
        except BaseException:
            _kill(process)
            raise
        if process.was_reaped:
            msg = (
                f"the exit code of {command.argv[0]} is lost: this program ignores SIGCHLD, or waits for "
                "processes that it did not start"
            )
            raise TransportError(msg, transient=True, may_have_run=True)
        return _result(process, stdout, stderr, timed_out=False)

    def open(self, command: Command) -> ProcessLines:
        """Start a command whose output is read line by line; see `jpsi.plugin.LineTransport`."""
        return ProcessLines(command, environment_of(command, os.environ))

    def close(self) -> None:
        """Do nothing: a local transport holds no connection."""


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


def _needs_environment(command: Command, inherited: Iterable[str]) -> bool:
    """Return True if a command's environment differs from this process's, which is cheaper to inherit.

    Args:
        command: the command.
        inherited: the names of the variables that this process has.
    """
    if not command.unset:
        return bool(command.environment)
    return bool(command.environment) or any(map(_unset_pattern(command.unset).match, inherited))


@functools.lru_cache
def _unset_pattern(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """Return the pattern of the variable names in `Command.unset`; a command of Slurm has dozens of them."""
    alternatives = (re.escape(it[:-1]) if it.endswith("*") else rf"{re.escape(it)}\Z" for it in patterns)
    return re.compile("|".join(alternatives), re.DOTALL)


def _write_available(process: subprocess.Popen[bytes], data: bytes) -> bytes:
    """Write as much as the pipe takes at once, and return the rest.

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


def _result(
    process: subprocess.Popen[bytes], stdout: bytes, stderr: bytes, *, timed_out: bool
) -> BytesResult:
    return BytesResult(
        returncode=-signal.SIGKILL if process.returncode is None else process.returncode,
        stdout=stdout,
        stderr=stderr.decode(errors="replace"),
        timed_out=timed_out,
    )
