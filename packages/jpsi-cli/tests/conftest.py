"""Fixtures that run the `jpsi` command as a process, with pipes or a terminal, in a home of its own."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from forked_jpsi import run_jpsi

COMMAND = [sys.executable, "-m", "jpsi_cli"]
_ON_TERMINAL = """\
import os, pty, sys
sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))
"""


_UNSET = {"NO_COLOR", "FORCE_COLOR", "JPSI_CONFIG", "JPSI_PLUGIN_PATH"}
_TERMINAL = {"TERM": "xterm-256color", "COLUMNS": "160"}


class Started:
    """A running `jpsi`, whose output a test can wait for."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.output = b""

    def wait_for(self, text: bytes) -> None:
        """Read output until it contains `text`; what says nothing for a minute fails the test."""
        assert self.process.stdout is not None
        while text not in self.output:
            assert select.select([self.process.stdout], [], [], 60)[0], f"no {text!r}: {self.output!r}"
            data = os.read(self.process.stdout.fileno(), 65536)
            assert data, f"it ended without {text!r}: {self.output!r}"
            self.output += data

    def type(self, text: bytes) -> None:
        """Type on the terminal."""
        assert self.process.stdin is not None
        self.process.stdin.write(text)
        self.process.stdin.flush()

    def end(self) -> tuple[int, bytes, bytes]:
        """Wait for the end; return the exit code, all output, and all errors."""
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, self.output + out, err or b""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    directories = {
        name: tmp_path / name.lower() for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS")
    }
    for home in directories.values():
        home.mkdir()
    others = {name: value for name, value in os.environ.items() if name not in _UNSET}
    return {**others, **dict(zip(directories, map(str, directories.values()), strict=True)), **_TERMINAL}


@pytest.fixture
def run(environment: dict[str, str], tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[bytes]]:
    """Return a function that runs `jpsi` with these arguments in the test's directory."""

    def run(*arguments: str | bytes, **options: Any) -> subprocess.CompletedProcess[bytes]:
        options = {"cwd": tmp_path, "env": environment, **options}
        if "stdout" in options:
            return subprocess.run([*COMMAND, *arguments], check=False, timeout=60, **options)
        return run_jpsi(*arguments, **options)

    return run


@pytest.fixture
def start(environment: dict[str, str], tmp_path: Path) -> Iterator[Callable[..., Started]]:
    """Return a function that starts `jpsi` with these arguments, in a process group, behind `prefix`."""
    started = []

    def start(*arguments: str, prefix: tuple[str, ...] = ()) -> Started:
        process = subprocess.Popen(
            [*prefix, *COMMAND, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
            env=environment,
            start_new_session=True,
        )
        started.append(process)
        return Started(process)

    yield start
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        with process:
            pass


@pytest.fixture
def start_on_terminal(start: Callable[..., Started]) -> Callable[..., Started]:
    """Return a function that starts `jpsi` with its streams, or those that `prefix` leaves, on a terminal."""

    def start_on_terminal(*arguments: str, prefix: tuple[str, ...] = ()) -> Started:
        return start(*arguments, prefix=(sys.executable, "-c", _ON_TERMINAL, *prefix))

    return start_on_terminal


class Presence:
    """A check that detects any remaining process of a job."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        #: The shell text by which a job's script is detected.
        self.script = f"exec 9>'{path}'"
        self._fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def is_over(self) -> bool:
        """Return True if no process holds the other end of the pipe any more."""
        try:
            return os.read(self._fd, 1) == b""
        except BlockingIOError:
            return False

    def close(self) -> None:
        os.close(self._fd)


@pytest.fixture
def presence(tmp_path: Path) -> Iterator[Presence]:
    presence = Presence(tmp_path / "presence")
    yield presence
    presence.close()
