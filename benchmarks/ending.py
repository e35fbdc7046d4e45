"""Measures the time from a job's exit to its callback on a real Slurm, and the commands called meanwhile."""

from __future__ import annotations

import tempfile
import threading
import time
import uuid
from pathlib import Path
from typing import Any

from benchmarks.libraries import Library, state
from benchmarks.side_by_side import PATIENCE
from benchmarks.slurm_commands import Calls, counted, drain


def on_slurm(competitor: str, count: int, has_inotify: bool) -> dict[str, Any]:  # noqa: FBT001  came as JSON
    """Run so many short jobs, and return the times of their ends.

    Returns:
        For each job the seconds from its own last reading of the clock to the callback with its end, the
        seconds of the whole run, and the commands that were called, with the time of each.
    """
    if not has_inotify:
        _without_inotify()
    with tempfile.TemporaryDirectory() as temporary, counted() as calls:
        return _run(Library(competitor, "slurm"), count, Path(temporary), calls)


def _run(library: Library, count: int, folder: Path, calls: Calls) -> dict[str, Any]:
    end_times: dict[str, float] = {}
    everything = threading.Event()

    def callback(job: Any, status: Any) -> None:
        if status.final:
            assert state(status) == "COMPLETED", status
            end_times[job.id] = time.time()
            if len(end_times) == count:
                everything.set()

    library.executor.set_job_status_callback(callback)
    name = f"benchmark-{uuid.uuid4().hex}"
    outputs = [folder / f"{number}.out" for number in range(count)]
    jobs = [library.job("/bin/date", "+%s.%N", stdout=output) for output in outputs]
    for job in jobs:
        job.spec.name = name
    started = time.time()
    library.submit(jobs)
    assert everything.wait(PATIENCE), f"only {len(end_times)} jobs have ended"
    ended = time.time()
    commands = [(call.time, call.command) for call in calls.until(ended)]
    drain(name)
    exits = [float(output.read_text(encoding="ascii")) for output in outputs]
    return {
        "latencies": [end_times[job.id] - exit_ for job, exit_ in zip(jobs, exits, strict=True)],
        "lasting": ended - started,
        "calls": commands,
    }


def _without_inotify() -> None:
    """Let jpsi poll for markers as on a network file system, which sends no events."""
    from jpsi_engine.monitor import poll_loop

    vars(poll_loop)["_watch"] = lambda _: None  # jpsi has no option for that
