"""Measures jobs on one machine: jpsi, psij-python and a bare `subprocess.Popen` loop, side by side.

    ./dev benchmarks local            the whole table, about a quarter of an hour
    ./dev benchmarks local --quick    smaller numbers, to see that it works

State directories are on a tmpfs unless `--directory` says otherwise: a disk's file system may take ten times
as long to create a file when many were removed just before, as ext4 without a journal does.

Each figure is measured in a process of its own; rounds of the competitors alternate and medians are taken, so
that a busy machine slows all of them. Figures of different machines or runs do not compare: ratios do.
"""

from __future__ import annotations

import argparse
import functools
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import tracemalloc
from pathlib import Path
from typing import Any

from benchmarks.libraries import Library, installed, state
from benchmarks.side_by_side import PATIENCE, interleave, machine, percentile, run_measurement


def throughput(name: str, count: int) -> float:
    """Return the jobs per second: `count` times /bin/true, all submitted, then all waited for."""
    if name == "bare":
        started = time.perf_counter()
        for _ in range(count):
            subprocess.Popen(["/bin/true"]).wait()
        return count / (time.perf_counter() - started)
    library = Library(name, "local")
    first = [library.job("/bin/true")]
    library.submit(first)
    library.wait(first)
    jobs = [library.job("/bin/true") for _ in range(count)]
    started = time.perf_counter()
    library.submit(jobs)
    library.wait(jobs)
    elapsed = time.perf_counter() - started
    assert all(state(job.status) == "COMPLETED" for job in jobs)
    return count / elapsed


def latency(name: str, count: int, beside: int) -> list[float]:
    """Return the milliseconds from each job's own last reading of the clock to the callback with its end."""
    library = Library(name, "local")
    others = [library.job("/bin/sleep", "3600") for _ in range(beside)]
    library.submit(others)
    # let the effects of the submissions pass, which are not measured
    time.sleep(2)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            out = Path(folder, str(number))
            is_called = threading.Event()
            times = list[int]()

            def callback(_: Any, status: Any, times: list[int] = times, is_called: Any = is_called) -> None:
                if status.final:
                    times.append(time.time_ns())
                    is_called.set()

            job = library.job("/bin/date", "+%s%N", stdout=out)
            job.set_job_status_callback(callback)
            library.submit([job])
            assert is_called.wait(PATIENCE)
            found.append((times[0] - int(out.read_text())) / 1e6)
            time.sleep(0.01)
    for job in others:
        job.cancel()
    library.wait(others)
    return found


def idle(name: str, count: int, seconds: float) -> float:
    """Return the CPU seconds per minute while `count` jobs sleep."""
    library = Library(name, "local")
    jobs = [library.job("/bin/sleep", "3600") for _ in range(count)]
    library.submit(jobs)
    time.sleep(3)
    before = time.process_time()
    time.sleep(seconds)
    used = (time.process_time() - before) * 60 / seconds
    for job in jobs:
        job.cancel()
    library.wait(jobs)
    return used


def memory(name: str, count: int) -> float:
    """Return the bytes of Python memory for each job that jpsi follows, the job itself included."""
    library = Library(name, "local")
    warm = [library.job("/bin/true") for _ in range(10)]
    library.submit(warm)
    library.wait(warm)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    jobs = [library.job("/bin/sleep", "3600") for _ in range(count)]
    library.submit(jobs)
    time.sleep(1)
    used = (tracemalloc.get_traced_memory()[0] - before) / count
    tracemalloc.stop()
    for job in jobs:
        job.cancel()
    library.wait(jobs)
    return used


def processes(name: str, count: int) -> float:
    """Return the number of processes for each job, that of the job included."""
    library = Library(name, "local")
    jobs = [library.job("/bin/sleep", "3600") for _ in range(count)]
    before = _processes()
    library.submit(jobs)
    time.sleep(2)
    found = (_processes() - before) / count
    for job in jobs:
        job.cancel()
    library.wait(jobs)
    return found


def _processes() -> int:
    return sum(entry.isdigit() for entry in os.listdir("/proc"))


def imported(name: str, count: int) -> float:
    """Return the milliseconds that `import` adds to a bare interpreter."""
    programs = {
        "jpsi": "import jpsi; jpsi.Job, jpsi.JobSpec",
        "jpsi, with its engine": "import jpsi; jpsi.JobExecutor",
        "psij": "import psij",
    }
    bare, full = [], []
    for _ in range(count):
        bare.append(_time_python("pass"))
        full.append(_time_python(programs[name]))
    return (statistics.median(full) - statistics.median(bare)) * 1000


def _time_python(program: str) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], check=True)
    return time.perf_counter() - started


def table(*, quick: bool, directory: str | None) -> None:
    libraries = installed()
    print(f"{machine()}\n")
    print("| what | bare Popen | " + " | ".join(libraries) + " |")
    print("|---|--:|" + "--:|" * len(libraries))

    def row(what: str, bare: str, values: dict[str, str]) -> None:
        cells = " | ".join(values.get(library, "") for library in libraries)
        print(f"| {what} | {bare} | {cells} |", flush=True)

    rounds = 2 if quick else 3
    for count in (100, 200) if quick else (1000, 5000):
        competitors = ["bare", *libraries]
        found = interleave(
            rounds,
            {it: functools.partial(run_measurement, directory, throughput, it, count) for it in competitors},
        )
        rates = {name: statistics.median(results) for name, results in found.items()}
        row(
            f"/bin/true, {count} jobs, jobs/s",
            f"{rates['bare']:.0f}",
            {name: f"{rates[name]:.0f}" for name in libraries},
        )
        row(
            "... as a part of the bare loop",
            "1",
            {name: f"{rates[name] / rates['bare']:.2f}" for name in libraries},
        )
    samples = 20 if quick else 200
    for beside in (0, 50) if quick else (0, 1000):
        cells = {}
        for name in libraries:
            times = run_measurement(directory, latency, name, samples, beside)
            cells[name] = " / ".join(f"{percentile(times, p):.1f}" for p in (50, 95, 99))
        row(f"exit to callback beside {beside} active jobs, p50 / p95 / p99 ms", "", cells)
    count, seconds = (50, 3) if quick else (1000, 60)
    row(
        f"CPU seconds per minute while {count} jobs sleep",
        "",
        {name: f"{run_measurement(directory, idle, name, count, seconds):.2f}" for name in libraries},
    )
    row(
        f"memory per followed job of {count}, bytes",
        "",
        {name: f"{run_measurement(directory, memory, name, count):.0f}" for name in libraries},
    )
    row(
        "processes per job",
        "1",
        {name: f"{run_measurement(directory, processes, name, 20):.1f}" for name in libraries},
    )
    repeats = 5 if quick else 25
    row(
        "import over a bare interpreter, ms",
        "",
        {name: f"{imported(name, repeats):.0f}" for name in libraries},
    )
    row(
        "... with the engine that the first executor needs",
        "",
        {"jpsi": f"{imported('jpsi, with its engine', repeats):.0f}"},
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small numbers, to see that it works")
    parser.add_argument("--directory", help="where state directories go; the default is a tmpfs")
    arguments = parser.parse_args()
    table(quick=arguments.quick, directory=arguments.directory)


if __name__ == "__main__":
    main()
