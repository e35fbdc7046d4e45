"""Runs the script of a fake batch system's job as a real process, in a session of its own.

A signal reaches every process of the session. When the script has ended, the rest of the session is killed.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import attrs

from jpsi_engine import open_private
from jpsi_testing.fake.job import FakeJob

_SHELL = ["/bin/sh"]


@attrs.frozen(slots=True, eq=False)
class RunningScript:
    """The processes of one run of a job."""

    _process: subprocess.Popen[bytes]
    _thread: threading.Thread

    def send(self, number: int) -> None:
        """Signal every process of the session; ignore those that have ended."""
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
    thread = threading.Thread(
        target=_wait, args=(process, ended), name=f"fake job {job.native_id}", daemon=True
    )
    running = RunningScript(process, thread)
    thread.start()
    return running


def _write(path: Path, text: str) -> None:
    # whatever the umask, which is the job's
    fd = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    with os.fdopen(fd, "w", errors="surrogateescape") as file:
        file.write(text)


def _wait(process: subprocess.Popen[bytes], ended: Callable[[int], None]) -> None:
    # reap it only after the rest of the session is killed, so that its pid is not reused
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    _send(process.pid, signal.SIGKILL)
    ended(process.wait())


def _send(session: int, number: int) -> None:
    for pid in _members(session):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _interpreter(script: str) -> list[str]:
    first = script.partition("\n")[0]
    return (shlex.split(first[2:]) if first.startswith("#!") else []) or _SHELL


def _open(job: FakeJob, path: str | None) -> IO[bytes]:
    return Path(job.directory, os.devnull if path is None else path).open("wb")


def _members(leader: int) -> Iterator[int]:
    """Yield the processes of a session; without /proc, only the leader's process group."""
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208  names are enough
    except FileNotFoundError:
        yield -leader
        return
    for pid in pids:
        with contextlib.suppress(OSError):
            if os.getsid(pid) == leader:
                yield pid
