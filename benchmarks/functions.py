"""Measures calls of a Python function: jpsi-functions, submitit, dask-jobqueue and executorlib, side by side.

    ./dev benchmarks functions                  on a fake Slurm, and on a real one if one answers
    ./dev benchmarks functions --calls 1 100    fewer calls
    ./dev benchmarks functions --real --limit 120

Each call sleeps for 10 ms. Each library gets jobs of one core, and sixteen cores in all. A library that has
not ended after the limit is stopped, and the table has the number of calls that it made until then. Those
that are not installed are left out.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import inspect
import os
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.side_by_side import machine, run_measurement, say
from benchmarks.slurm_commands import counted, is_local, tally

_SECONDS = 0.01
_CORES = 16
#: The size of submitit's arrays: the fake takes 1,000, and the Slurm of ci/slurm 5,000.
_ARRAY = 1000


def nap(_: int) -> int:
    """Stands for a call of 10 ms."""
    time.sleep(_SECONDS)
    return 1


def jpsi_functions(count: int) -> Iterator[int]:
    from jpsi_functions import FunctionExecutor

    with FunctionExecutor("slurm", cores=1) as executor:
        yield from executor.map(nap, range(count))


def submitit(count: int) -> Iterator[int]:
    import submitit

    executor = submitit.AutoExecutor("submitit", cluster="slurm")
    executor.update_parameters(cpus_per_task=1, slurm_array_parallelism=_CORES, slurm_use_srun=False)
    starts = range(0, count, _ARRAY)
    jobs = [
        it for start in starts for it in executor.map_array(nap, range(start, min(start + _ARRAY, count)))
    ]
    for job in jobs:
        yield job.result()


def dask_jobqueue(count: int) -> Iterator[int]:
    from dask.distributed import Client, as_completed
    from dask_jobqueue import SLURMCluster

    with SLURMCluster(cores=1, memory="400MB", walltime="00:10:00") as cluster, Client(cluster) as client:
        cluster.scale(jobs=min(count, _CORES))
        for future in as_completed(client.map(nap, range(count), pure=False)):
            yield future.result()


def executorlib(count: int) -> Iterator[int]:
    from executorlib import SlurmClusterExecutor  # type: ignore[import-not-found]  # as above

    with SlurmClusterExecutor(resource_dict={"cores": 1, "partition": "main"}) as executor:
        futures = [executor.submit(nap, it) for it in range(count)]
        for future in futures:
            yield future.result()


LIBRARIES: dict[str, Callable[[int], Iterator[int]]] = {
    it.__name__: it for it in (jpsi_functions, submitit, dask_jobqueue, executorlib)
}


def measure(library: str, count: int, where: str, limit: float) -> dict[str, Any]:
    """Make the calls; return the seconds to the first result and to the last, and the commands that ran."""
    with contextlib.ExitStack() as stack:
        if where == "fake":
            from jpsi_testing.fake import FakeScheduler, on_path

            scheduler = stack.enter_context(FakeScheduler(slots=_CORES))
            stack.enter_context(on_path("slurm", scheduler))
        calls = stack.enter_context(counted())
        os.chdir(os.environ["HOME"])
        done, first = 0, None
        begun, started = time.time(), time.monotonic()
        results = LIBRARIES[library](count)
        for it in results:
            first = time.monotonic() - started if first is None else first
            done += it
            if time.monotonic() - started > limit:
                break
        total = time.monotonic() - started
        commands = Counter(it.command for it in calls.until(time.time(), begun))
        if done < count:
            _cancel_jobs_here()
    return {"first": first, "total": total, "done": done, "commands": commands}


def _cancel_jobs_here() -> None:
    """Cancel the jobs that were submitted from the home directory of this measurement."""
    listed = subprocess.run(
        ["squeue", "--me", "-h", "-o", "%A %Z"], check=False, capture_output=True, text=True
    )
    jobs = dict.fromkeys(it.split()[0] for it in listed.stdout.splitlines() if os.environ["HOME"] in it)
    if jobs:
        subprocess.run(["scancel", "--quiet", *jobs], check=False, capture_output=True)


def lines_of_code(library: str) -> int:
    """Return the number of lines that a user writes."""
    return len([it for it in inspect.getsource(LIBRARIES[library]).splitlines()[1:] if it.strip()])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--calls", type=int, nargs="+", default=[1, 100, 10_000])
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for each measurement")
    parser.add_argument("--only", nargs="+", choices=[*LIBRARIES], default=[*LIBRARIES])
    parser.add_argument("--fake", action="store_true", help="only the fake Slurm")
    parser.add_argument("--real", action="store_true", help="only the real Slurm")
    options = parser.parse_args()
    options.only = [it for it in options.only if importlib.util.find_spec(it) is not None]
    places = ["fake"] * (not options.real) + ["real"] * (not options.fake and is_local())
    print(machine(), "\n")
    print("| Slurm | calls | library | first result | total | commands | lines |")
    print("|---|---|---|---|---|---|---|")
    for where in places:
        for count in options.calls:
            for library in options.only:
                if (where, library) == ("fake", "executorlib"):
                    continue  # it asks squeue in a way that the fake does not know
                say(f"{where} {count} {library}")
                try:
                    found = run_measurement("/var/tmp", measure, library, count, where, options.limit)  # noqa: S108
                except AssertionError as e:
                    print(f"| {where} | {count:,} | {library} | {e} | | | |", flush=True)
                    continue
                ended = "" if found["done"] == count else f" for {found['done']:,} of them"
                times = f"{found['first']:.2f} s | {found['total']:.1f} s{ended}"
                commands = tally(found["commands"])
                row = f"| {where} | {count:,} | {library} | {times} | {commands} | {lines_of_code(library)} |"
                print(row, flush=True)


if __name__ == "__main__":
    main()
