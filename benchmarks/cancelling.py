"""Measures how fast a client learns that its jobs were cancelled without it, on a real Slurm."""

from __future__ import annotations

import subprocess
import threading
import time
import uuid
from typing import Any

from benchmarks.libraries import Library, state
from benchmarks.slurm_commands import cancel_all, counted, drain

# The seconds from the first jobs that run to the cancel, after which all of them run that can.
_SETTLING = 10.0
_PATIENCE = 120.0


def by_jpsi(count: int) -> dict[str, Any]:
    """Submit jobs as an array, cancel them by `scancel` when some run, and return how that was noticed.

    Returns:
        `seconds` from the cancel to the last final status, `polls` in that time, and `running` jobs then.
    """
    library, name = Library("jpsi", "slurm"), f"benchmark-{uuid.uuid4().hex}"
    jobs = [library.job("/bin/sleep", "600") for _ in range(count)]
    for job in jobs:
        job.spec.name = name
    ended: list[float] = []
    everything, running = threading.Event(), threading.Event()

    def callback(_: Any, status: Any) -> None:
        if state(status) == "ACTIVE":
            running.set()
        if status.final:
            ended.append(time.time())
            if len(ended) == count:
                everything.set()

    library.executor.set_job_status_callback(callback)
    try:
        with counted() as calls:
            library.executor.submit_many(jobs)
            assert running.wait(_PATIENCE), "no job runs"
            time.sleep(_SETTLING)
            active = sum(state(job.status) == "ACTIVE" for job in jobs)
            begun = time.time()
            subprocess.run(["scancel", f"--name={name}"], check=True)
            assert everything.wait(_PATIENCE), f"only {len(ended)} jobs have ended"
            # one poll is two calls of squeue in one command, a moment apart, if it lists an array alone
            times = sorted(call.time for call in calls.until(max(ended), begun) if call.command == "squeue")
    finally:
        cancel_all(name)
    polls = sum(later - earlier > 0.5 for earlier, later in zip([0.0, *times], times, strict=False))  # noqa: PLR2004
    return {"seconds": max(ended) - begun, "polls": polls, "running": active}


def by_squeue(count: int) -> float:
    """Return the seconds from `scancel` of such an array until a loop of `squeue` shows no job of it."""
    name = f"benchmark-{uuid.uuid4().hex}"
    command = ["sbatch", f"--array=1-{count}", f"--job-name={name}", "--output=/dev/null", "--wrap=sleep 600"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    time.sleep(_SETTLING)
    begun = time.time()
    subprocess.run(["scancel", f"--name={name}"], check=True)
    drain(name)
    return time.time() - begun
