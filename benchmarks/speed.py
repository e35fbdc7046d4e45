"""Measures jpsi against the machine itself: each row beside its reference, in turns of the same run.

    ./dev benchmarks speed                     all rows, a quarter of an hour
    ./dev benchmarks speed --rows local,kept   some of them
    ./dev benchmarks speed --quick             smaller numbers, to see that it works

Each figure is measured in a process of its own; the competitors take turns. The table has medians with the
least and the most in parentheses; a ratio is that of each turn. Rows of a Slurm need one that answers, and
that of HyperQueue its package.
"""

from __future__ import annotations

import argparse
import functools
import gc
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from benchmarks import growing, local, submitting
from benchmarks.fake_slurm import fake_slurm
from benchmarks.libraries import Library, installed
from benchmarks.side_by_side import has, interleave, machine, percentile, run_measurement, run_sliced, say
from benchmarks.slurm_commands import is_local
from benchmarks.tables import figure

_IN_FLIGHT = 8
_JOB_SECONDS = "0.01"
_EVERY_SIGNAL = tuple(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})


@attrs.frozen(slots=True, kw_only=True)
class Size:
    """The numbers of jobs and turns."""

    turns: int = 5
    jobs: int = 1000
    kept: int = 50_000
    #: Single submissions to a Slurm.
    submitted: int = 100
    #: Jobs of one `submit_many` on the fake.
    faked: Sequence[int] = (10_000, 100_000, 1_000_000)
    short: int = 500


QUICK = Size(turns=2, jobs=100, kept=200, submitted=10, faked=(500, 5000), short=50)


def spawned(count: int) -> float:
    """Return the jobs per second of posix_spawn(3), with eight programs in flight."""
    begun, running = time.perf_counter(), 0
    for _ in range(count):
        os.posix_spawn(
            "/bin/true", ["/bin/true"], os.environ, setsid=True, setsigmask=(), setsigdef=_EVERY_SIGNAL
        )
        running += 1
        while running >= _IN_FLIGHT:
            os.wait()
            running -= 1
    for _ in range(running):
        os.wait()
    return count / (time.perf_counter() - begun)


def at_once(count: int) -> float:
    """Return the jobs per second of `submit_many` on this machine, until all have ended."""
    library = Library("jpsi", "local")
    _run(library, [library.job("/bin/true") for _ in range(10)])
    jobs = [library.job("/bin/true") for _ in range(count)]
    return count / _run(library, jobs)


def beside_kept(kept: int, count: int) -> list[float]:
    """Return the milliseconds and the processor milliseconds of a submission while jobs are kept on disk."""
    library = Library("jpsi", "local")
    _run(library, [library.job("/bin/true") for _ in range(10)])
    (folder,) = Path(os.environ["XDG_STATE_HOME"]).glob("jpsi/work/local/*/jobs")
    like = next(folder.iterdir())
    for number in range(kept):
        copy = folder / f"{number:08x}-0000-4000-a000-000000000000"
        copy.mkdir(mode=0o700)
        for file in like.iterdir():
            (copy / file.name.replace(like.name, copy.name)).hardlink_to(file)
    # a new process looks at what is kept
    code = f"from benchmarks import speed; print(*speed.submissions({count}))"
    found = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True).stdout
    return [float(it) for it in found.split()]


def submissions(count: int) -> tuple[float, float]:
    """Return the milliseconds of a submission, and those of a core."""
    library = Library("jpsi", "local")
    _run(library, [library.job("/bin/true") for _ in range(3)])
    jobs = [library.job("/bin/true") for _ in range(count)]
    begun, used = time.perf_counter(), time.process_time()
    library.submit(jobs)
    found = (time.perf_counter() - begun) / count * 1e3, (time.process_time() - used) / count * 1e3
    library.wait(jobs)
    return found


def _run(library: Library, jobs: list[Any]) -> float:
    begun = time.perf_counter()
    library.executor.submit_many(jobs)
    library.wait(jobs)
    return time.perf_counter() - begun


def memory_beyond(count: int) -> list[float]:
    """Return the bytes for each waiting job beside the `Job` and its spec, and those of these two."""
    library = growing.warm_up()
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    jobs = growing.jobs_of(library, count)
    gc.collect()
    made, _ = tracemalloc.get_traced_memory()
    library.executor.submit_many(jobs)
    library.executor.info(jobs[0])
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    return [(after - made) / count, (made - before) / count]


def in_pilot(count: int, cores: int) -> float:
    """Return the short jobs per second in a pilot on this machine."""
    from datetime import timedelta

    import jpsi
    from jpsi_pilot.config import PilotConfig

    config = PilotConfig(target="local", cores_per_node=cores, idle_time=timedelta(seconds=5))
    limit = jpsi.JobAttributes(duration=timedelta(minutes=1))
    with jpsi.JobExecutor.get_instance("pilot", config=config) as executor:
        first, *jobs = [
            jpsi.Job(jpsi.JobSpec("/bin/sleep", [_JOB_SECONDS], attributes=limit)) for _ in range(count + 1)
        ]
        executor.submit(first)
        first.wait()
        begun = time.perf_counter()
        executor.submit_many(jobs)
        for job in jobs:
            job.wait()
        return count / (time.perf_counter() - begun)


def in_hyperqueue(count: int, cores: int) -> float:
    """Return the short jobs per second in a HyperQueue on this machine, as one job of many tasks."""
    from hyperqueue import Job
    from hyperqueue.cluster import LocalCluster, WorkerConfig

    with LocalCluster() as cluster:
        cluster.start_worker(WorkerConfig(cores=cores))
        client = cluster.client()

        def run(number: int) -> None:
            job = Job()
            for _ in range(number):
                job.program(["/bin/sleep", _JOB_SECONDS])
            client.wait_for_jobs([client.submit(job)])

        run(1)
        begun = time.perf_counter()
        run(count)
        return count / (time.perf_counter() - begun)


class Speed:
    """The rows of the table.

    Args:
        size: the numbers of jobs and turns.
        disk: a directory on a disk.
    """

    def __init__(self, size: Size, disk: str) -> None:
        self._size = size
        self._disk = disk

    def rows(self) -> Mapping[str, Callable[[], Iterator[str]]]:
        """Return the rows by their names."""
        return {
            "local": self._local,
            "kept": self._kept,
            "fake": self._fake,
            "slurm": self._slurm,
            "pilot": self._pilot,
        }

    def _turns(self, measures: Mapping[str, Callable[[], Any]]) -> dict[str, list[Any]]:
        return interleave(self._size.turns, measures)

    def _local(self) -> Iterator[str]:
        size = self._size
        for place, directory in (("tmpfs", None), ("disk", self._disk)):
            run = functools.partial(run_measurement, directory)
            found = self._turns(
                {it: functools.partial(run, local.throughput, it, size.jobs) for it in ("bare", *installed())}
            )
            what = f"{size.jobs:,} local `/bin/true` one by one, {place}, jobs/s"
            yield _row(what, "Popen loop", found["bare"], found["jpsi"], "≥ 1.0")
            if "psij" in found:
                yield _row(what, "psij-python", found["psij"], found["jpsi"], "≥ 5")
            found = self._turns(
                {
                    "bare": functools.partial(run, spawned, size.jobs),
                    "jpsi": functools.partial(run, at_once, size.jobs),
                }
            )
            what = f"{size.jobs:,} local `/bin/true` by `submit_many`, {place}, jobs/s"
            yield _row(what, f"posix_spawn, {_IN_FLIGHT} in flight", found["bare"], found["jpsi"], "≥ 0.8")

    def _kept(self) -> Iterator[str]:
        found = self._turns(
            {
                str(kept): functools.partial(run_measurement, None, beside_kept, kept, self._size.jobs // 5)
                for kept in (0, self._size.kept)
            }
        )
        none, many = found.values()
        for index, unit in enumerate(("ms", "ms of a core")):
            yield _row(
                f"a local submission beside {self._size.kept:,} kept jobs, {unit}",
                "none kept",
                [it[index] for it in none],
                [it[index] for it in many],
                "1",
            )

    def _fake(self) -> Iterator[str]:
        def on_fake(measurement: Callable[..., Any], count: int) -> Any:
            with fake_slurm():
                return run_measurement(None, measurement, count)

        least = self._size.faked[0]
        times: dict[int, list[float]] = {}
        for count in self._size.faked:
            # the last takes minutes
            turns = self._size.turns if count * 10 <= max(self._size.faked) else 1
            used = [on_fake(growing.time_of, count)["own"] / count * 1e6 for _ in range(turns)]
            times[count] = used
            yield _row(
                f"{count:,} jobs by `submit_many` on the fake, µs of a core a job",
                f"{least:,} jobs",
                times[least][: len(used)],
                used,
                "1",
            )
            beyond, own = on_fake(memory_beyond, count)
            what = f"memory of each of {count:,} waiting jobs, bytes"
            yield f"| {what} | {own:.0f} for `Job` and spec | {beyond:.0f} beside | | ≤ 1,024 |"

    def _slurm(self) -> Iterator[str]:
        if not is_local():
            say("no Slurm answers here: its rows are left out")
            return
        size = self._size
        bare, jpsi = run_sliced(self._disk, submitting.one_by_one, size.submitted, ["bare", 1], ["jpsi", 1])
        for percent, goal in ((50, "≤ 1.15"), (95, "≤ 1.3")):
            here, there = (percentile(it, percent) * 1e3 for it in (bare, jpsi))
            yield (
                f"| one of {size.submitted} submissions to Slurm, p{percent}, ms | `sbatch`: {figure(here)} "
                f"| {figure(there)} | {there / here:.2f} | {goal} |"
            )
        found = self._turns(
            {
                "bare": functools.partial(run_measurement, None, submitting.as_array, "bare", size.jobs),
                "jpsi": functools.partial(run_measurement, None, submitting.as_array, "jpsi", size.jobs),
            }
        )
        alone = statistics.median(bare) * size.jobs
        ratios = [alone / it for it in found["jpsi"]]
        yield (
            f"| {size.jobs:,} jobs as one array, s | {size.jobs:,} `sbatch`: {figure(alone)} "
            f"| {_spread(found['jpsi'])} | {_spread(ratios)} | ≥ 200 |"
        )

    def _pilot(self) -> Iterator[str]:
        cores = os.cpu_count() or 1
        measures = {"jpsi": functools.partial(run_measurement, None, in_pilot, self._size.short, cores)}
        if has("hyperqueue"):
            measures["hq"] = functools.partial(run_measurement, None, in_hyperqueue, self._size.short, cores)
        found = self._turns(measures)
        what = f"{self._size.short:,} jobs of 10 ms in a pilot on {cores} cores, jobs/s"
        yield _row(what, "HyperQueue", found.get("hq", []), found["jpsi"], "≥ 558")


def _row(what: str, name: str, reference: Sequence[float], found: Sequence[float], goal: str) -> str:
    """Return a row of the table, with the ratio of each turn."""
    ratios = [it / other for it, other in zip(found, reference, strict=False)]
    beside = f"{name}: {_spread(reference)}" if reference else ""
    return f"| {what} | {beside} | {_spread(found)} | {_spread(ratios)} | {goal} |"


def _spread(values: Sequence[float]) -> str:
    """Return the median, with the least and the most.

    >>> _spread([3.0, 1.0, 2.0]), _spread([])
    ('2.00 (1.00 to 3.00)', '')
    """
    if not values:
        return ""
    return f"{figure(statistics.median(values))} ({figure(min(values))} to {figure(max(values))})"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small numbers, to see that it works")
    parser.add_argument("--rows", default="local,kept,fake,slurm,pilot", help="the rows, by commas")
    parser.add_argument("--turns", type=int, help="how often it is each competitor's turn")
    parser.add_argument("--disk", default=tempfile.gettempdir(), help="a directory on a disk")
    options = parser.parse_args()
    size = QUICK if options.quick else Size()
    size = size if options.turns is None else attrs.evolve(size, turns=options.turns)
    rows = Speed(size, options.disk).rows()
    print(f"{machine()}\n\n| what | reference | jpsi | ratio | to reach |\n|---|---|---|---|---|")
    for name in options.rows.split(","):
        for row in rows[name]():
            print(row, flush=True)


if __name__ == "__main__":
    main()
