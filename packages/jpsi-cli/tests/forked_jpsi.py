"""Runs `jpsi`, or a program, in forks of a process that has imported what every command needs, and libraries.

A fork imports the modules of rarer commands itself. Tests of terminals, limits and imports start new
processes instead.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from jpsi_testing.forks import MODULES, ForkedProcess, ForkServer

_FORKS = ForkServer(
    *MODULES,
    "yaml",
    "sqlalchemy.dialects.sqlite",
    "alembic.command",
    "jpsi_records.records",
    "jpsi_cli.main",
    "jpsi_cli.error_boundary",
    "jpsi_cli.jobs.explain",
    "jpsi_cli.jobs.ls",
    "jpsi_cli.jobs.wait",
    "jpsi_cli.submission.run",
    "jpsi_cli.submission.submit",
)


def run_jpsi(
    *arguments: str | bytes,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    input: bytes = b"",  # noqa: A002  as subprocess.run has it
    timeout: float = 60,
) -> subprocess.CompletedProcess[bytes]:
    """Run `jpsi` with these arguments, and return its exit code, output and errors.

    Args:
        arguments: the words after `jpsi`.
        cwd: its directory.
        env: its variables; None for those of this process.
        input: its standard input.
        timeout: the seconds after which it is killed.

    Raises:
        TimeoutExpired: it had to be killed.
    """
    words = ["-m", "jpsi_cli", *map(os.fsdecode, arguments)]
    return _FORKS.run(*words, cwd=cwd, env=env, input=input, timeout=timeout)


def start_jpsi(
    *arguments: str, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> ForkedProcess:
    """Start `jpsi` with these arguments, with pipes for its output and errors, and return at once.

    Args:
        arguments: the words after `jpsi`.
        cwd: its directory; None for that of this process.
        env: its variables; None for those of this process.
    """
    pipe = subprocess.PIPE
    return _FORKS.start("-m", "jpsi_cli", *arguments, cwd=cwd, env=env, stdout=pipe, stderr=pipe)


def run_as_text(
    *arguments: str, cwd: Path, env: Mapping[str, str] | None = None, timeout: float = 300
) -> subprocess.CompletedProcess[str]:
    """Run `jpsi` as `run_jpsi` does, and return its output and errors as text."""
    return _as_text(run_jpsi(*arguments, cwd=cwd, env=env, timeout=timeout))


def run_program(text: str, *arguments: str | Path, timeout: float = 100) -> subprocess.CompletedProcess[str]:
    """Run a program in Python, as `python -c` does, in this directory with these variables.

    Args:
        text: the program.
        arguments: of the program.
        timeout: the seconds after which it is killed.

    Raises:
        TimeoutExpired: it had to be killed.
    """
    return _as_text(_FORKS.run("-c", text, *map(str, arguments), timeout=timeout))


def _as_text(done: subprocess.CompletedProcess[bytes]) -> subprocess.CompletedProcess[str]:
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())
