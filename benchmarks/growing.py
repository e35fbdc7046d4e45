"""What a job costs jpsi, the more of them there are: time and memory, on a fake Slurm."""

from __future__ import annotations

import gc
import time
import tracemalloc
from typing import Any

from benchmarks.libraries import Library

# What is found and loaded for the first jobs does not count.
_FIRST = 20


def time_of(count: int) -> dict[str, float]:
    """Seconds to submit so many jobs: by the clock, and what of that this process has used."""
    library = _warm()
    jobs = _jobs(library, count)
    begun, used = time.perf_counter(), time.process_time()
    library.executor.submit_many(jobs)
    return {"clock": time.perf_counter() - begun, "own": time.process_time() - used}


def memory_of(count: int) -> float:
    """Bytes that each of so many jobs takes that wait: the job and its spec, and what follows it."""
    library = _warm()
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    jobs = _jobs(library, count)
    library.executor.submit_many(jobs)
    # asks about all of them, and keeps what it is told
    library.executor.info(jobs[0])
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    assert all(not job.status.final for job in jobs)
    return (after - before) / count


def _warm() -> Library:
    library = Library("jpsi", "slurm")
    library.executor.submit_many(_jobs(library, _FIRST))
    return library


def _jobs(library: Library, count: int) -> list[Any]:
    return [library.job("/bin/true", str(number)) for number in range(count)]
