"""Measures the time of `jpsi ls --members` by the number of jobs, beside an interpreter that does nothing."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

from benchmarks.libraries import Library

_ROUNDS = 7
_COMMANDS = {"bare": ["-c", "pass"], "jpsi": ["-m", "jpsi_cli", "ls", "--members"]}


def of_waiting(count: int) -> dict[str, list[float]]:
    """Return the seconds, by the clock and of a core, to list jobs that wait in arrays."""
    library = Library("jpsi", "slurm")
    library.executor.submit_many(_jobs(library, count))
    return _time_listing(count)


def of_ended(count: int) -> dict[str, list[float]]:
    """Return the seconds, by the clock and of a core, to list single jobs that have ended on this machine."""
    library = Library("jpsi", "local")
    jobs = _jobs(library, count)
    library.submit(jobs)
    library.wait(jobs)
    return _time_listing(count)


def _jobs(library: Library, count: int) -> list[Any]:
    return [library.job("/bin/true", str(number)) for number in range(count)]


def _time_listing(count: int) -> dict[str, list[float]]:
    found = {name: list(_time_command(command, count)) for name, command in _COMMANDS.items()}
    return {
        name: [statistics.median(kind) for kind in zip(*took, strict=True)] for name, took in found.items()
    }


def _time_command(command: list[str], count: int) -> Iterator[tuple[float, float]]:
    """Yield the times of each call but the first, which compiles the imported modules."""
    # as after an installation: modules are compiled once
    environment = {name: it for name, it in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for number in range(1 + _ROUNDS):
        before, begun = _used(), time.perf_counter()
        done = subprocess.run(
            [sys.executable, *command], check=True, env=environment, stdout=subprocess.PIPE, text=True
        )
        elapsed = time.perf_counter() - begun
        assert "jpsi_cli" not in command or done.stdout.count("\n") == 1 + count
        if number:
            yield elapsed, _used() - before


def _used() -> float:
    """Return the processor time of all child processes that have ended."""
    found = resource.getrusage(resource.RUSAGE_CHILDREN)
    return found.ru_utime + found.ru_stime
