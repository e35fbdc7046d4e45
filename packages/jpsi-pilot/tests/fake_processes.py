"""Fake processes, so that no test marks, finds or kills a real one."""

from __future__ import annotations

import errno
import os
import shutil
import signal
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

#: No real process has such a pid (proc(5): pid_max is 2^22 at most), so that a stray signal hits none.
FIRST = 1 << 23


def add_process(proc: Path, pid: int, environment: Mapping[str, str], start: int = 1) -> Path:
    """Return the folder of a new process in a folder like /proc; it lives until that is removed."""
    folder = proc / str(pid)
    folder.mkdir(parents=True, exist_ok=True)
    rest = " ".join(["S", "1", *["0"] * 17, str(start), "0"])
    (folder / "stat").write_text(f"{pid} (a ) name) {rest}")
    (folder / "environ").write_bytes(b"".join(f"{k}={v}\0".encode() for k, v in environment.items()))
    return folder


class FakeProcesses:
    """A folder like /proc, and the calls that signal the processes in it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, *, pidfds: bool) -> None:
        self.proc = folder / "proc"
        self.proc.mkdir()
        #: The killed processes, and the call that killed each.
        self.killed: list[tuple[int, str]] = []
        #: The action of a killed process, by its pid; the default is to end.
        self.deaths: dict[int, Callable[[], None]] = {}
        #: Called with the pid of each process that was found, before it is killed.
        self.before_kill: Callable[[int], None] = lambda _: None
        self._pidfds: dict[int, int] = {}
        self._has_pidfds = pidfds
        self._next = FIRST
        monkeypatch.setattr(os, "pidfd_open", self._pidfd_open, raising=False)
        monkeypatch.setattr(signal, "pidfd_send_signal", self._pidfd_send_signal, raising=False)
        monkeypatch.setattr(os, "kill", self._kill)

    def start(self, environment: Mapping[str, str], pid: int | None = None, start: int = 1) -> int:
        if pid is None:
            pid = self._next
            self._next += 1
        add_process(self.proc, pid, environment, start)
        return pid

    def end(self, pid: int) -> None:
        shutil.rmtree(self.proc / str(pid))

    def is_alive(self, pid: int) -> bool:
        return (self.proc / str(pid)).exists()

    def _pidfd_open(self, pid: int) -> int:
        self.before_kill(pid)
        if not self._has_pidfds:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        self._need(pid)
        fd = os.open(os.devnull, os.O_RDONLY)
        self._pidfds[fd] = pid
        return fd

    def _pidfd_send_signal(self, pidfd: int, number: int) -> None:
        self._signal(self._pidfds[pidfd], number, "pidfd")

    def _kill(self, pid: int, number: int) -> None:
        self._signal(pid, number, "pid")

    def _signal(self, pid: int, number: int, means: str) -> None:
        assert number == signal.SIGKILL
        self._need(pid)
        self.killed.append((pid, means))
        self.deaths.get(pid, lambda: self.end(pid))()

    def _need(self, pid: int) -> None:
        if not self.is_alive(pid):
            raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH))
