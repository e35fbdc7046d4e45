"""Measures the cost of following jobs that wait: processor time, and calls of the batch system's commands."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from typing import Any

from benchmarks.libraries import Library
from benchmarks.slurm_commands import COMMANDS, cancel_all, counted

_HOUR = 3600.0


def on_slurm(competitor: str, count: int, settling: float, seconds: float) -> dict[str, Any]:
    """Return the cost of so many jobs that wait on a real Slurm; see `on_fake`."""
    library, name = Library(competitor, "slurm"), f"benchmark-{uuid.uuid4().hex}"
    jobs = [library.job("/bin/true", str(number), slurm={"begin": "now+2hours"}) for number in range(count)]
    for job in jobs:
        job.spec.name = name
    try:
        return _cost(library, jobs, settling, seconds)
    finally:
        cancel_all(name)


def on_fake(count: int, settling: float, seconds: float) -> dict[str, Any]:
    """Return jpsi's cost of so many jobs that wait on a fake Slurm.

    Args:
        count: the number of jobs.
        settling: how many seconds they wait before the measurement, as jpsi polls new jobs more often.
        seconds: how many seconds the measurement takes.

    Returns:
        The percentage of a core that this process uses; the commands that submitted the jobs; and the
        commands of an hour, at the rate of the measurement.
    """
    library = Library("jpsi", "slurm")
    jobs = [library.job("/bin/true", str(number)) for number in range(count)]
    return _cost(library, jobs, settling, seconds)


def _cost(library: Library, jobs: list[Any], settling: float, seconds: float) -> dict[str, Any]:
    with counted() as calls:
        if library.name == "jpsi":
            library.executor.submit_many(jobs)
        else:
            library.submit(jobs)
        submitted = time.time()
        time.sleep(settling)
        begun, used = time.time(), time.process_time()
        time.sleep(seconds)
        ended, used = time.time(), time.process_time() - used
        commands = Counter(call.command for call in calls.until(ended, begun))
        return {
            "per cent": 100 * used / seconds,
            "to submit": Counter(call.command for call in calls.until(submitted)),
            "in an hour": {name: commands[name] * _HOUR / seconds for name in COMMANDS if name in commands},
        }
