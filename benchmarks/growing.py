"""Measures jpsi's time and memory for each job, by the number of jobs, on a fake Slurm."""

from __future__ import annotations

import gc
import time
import tracemalloc
from typing import Any

from benchmarks.libraries import Library

# The first jobs do not count, as jpsi finds and loads plugins for them.
_FIRST = 20


def time_of(count: int) -> dict[str, float]:
    """Return the seconds to submit so many jobs: by the clock, and this process's processor time."""
    library = warm_up()
    jobs = jobs_of(library, count)
    begun, used = time.perf_counter(), time.process_time()
    library.executor.submit_many(jobs)
    return {"clock": time.perf_counter() - begun, "own": time.process_time() - used}


def memory_of(count: int) -> float:
    """Return the bytes for each of so many waiting jobs: the job and its spec, and jpsi's state for it."""
    library = warm_up()
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    jobs = jobs_of(library, count)
    library.executor.submit_many(jobs)
    # polls the queue for all of them, and keeps the answers
    library.executor.info(jobs[0])
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    assert all(not job.status.final for job in jobs)
    return (after - before) / count


def warm_up() -> Library:
    """Return jpsi after its first jobs."""
    library = Library("jpsi", "slurm")
    library.executor.submit_many(jobs_of(library, _FIRST))
    return library


def jobs_of(library: Library, count: int) -> list[Any]:
    """Return new jobs that differ in their arguments."""
    return [library.job("/bin/true", str(number)) for number in range(count)]
