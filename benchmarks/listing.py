"""Measures the time of `jpsi ls` by the number of jobs, beside an interpreter that does nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

from benchmarks.discovery import processor_seconds
from benchmarks.libraries import Library

_BARE = ["-c", "pass"]
_LS = ["-m", "jpsi_cli", "ls"]


def of_waiting(count: int, rounds: int, options: Sequence[str]) -> dict[str, list[tuple[float, float]]]:
    """Return the seconds, by the clock and of a core, of each call that lists jobs that wait in arrays.

    Args:
        count: the number of jobs.
        rounds: the number of calls.
        options: options of `jpsi ls`.

    Returns:
        The seconds by the competitor: `bare` and `jpsi`, which take turns.
    """
    library = Library("jpsi", "slurm")
    library.executor.submit_many(_jobs(library, count))
    return _time_listing(rounds, options)


def of_ended(count: int, rounds: int, options: Sequence[str]) -> dict[str, list[tuple[float, float]]]:
    """Return as `of_waiting` does the seconds to list single jobs that have ended on this machine."""
    library = Library("jpsi", "local")
    jobs = _jobs(library, count)
    library.submit(jobs)
    library.wait(jobs)
    return _time_listing(rounds, options)


def _jobs(library: Library, count: int) -> list[Any]:
    return [library.job("/bin/true", str(number)) for number in range(count)]


def _time_listing(rounds: int, options: Sequence[str]) -> dict[str, list[tuple[float, float]]]:
    """Time each call but the first, which compiles the imported modules and keeps a copy of what it read."""
    commands = {"bare": _BARE, "jpsi": [*_LS, *options]}
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    # as after an installation: modules are compiled once
    environment = {name: it for name, it in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    # of folders that changed in the last two seconds, no copy is kept
    time.sleep(3)
    for number in range(1 + rounds):
        for name, command in commands.items():
            before, begun = processor_seconds(), time.perf_counter()
            subprocess.run(
                [sys.executable, *command], check=True, env=environment, stdout=subprocess.PIPE, text=True
            )
            elapsed = time.perf_counter() - begun
            if number:
                found[name].append((elapsed, processor_seconds() - before))
    return found
