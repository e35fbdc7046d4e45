"""Measures short jobs in a pilot, and the same jobs submitted to the batch system, side by side.

    ci/slurm/up                       on a machine without a Slurm, as root
    ./dev benchmarks pilots           2,000 jobs each way, in turns: some ten minutes
    ./dev benchmarks pilots --quick   few jobs, to see that it works
    ./dev benchmarks pilots --target local --cores 8   without a Slurm, the jobs in pilots alone
    ./dev benchmarks pilots --hyperqueue PYTHON --flux FLUX   beside HyperQueue, of which this Python has the
                                      package, and Flux, each on this machine

The pilot is a job of the same Slurm, on two nodes; of another target, on one. A node starts a program itself
if the job needs no shell; jobs with an input file need one. Times run from the first submission until the
client knows the end of all jobs; the pilot has started before that, and the table gives its start time apart.
Figures of different machines or runs do not compare.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import Any

import jpsi
from benchmarks.side_by_side import interleave, machine, run_measurement
from benchmarks.slurm_commands import is_local
from jpsi import Job, JobAttributes, JobExecutor, JobSpec
from jpsi_pilot.config import PilotConfig

_PATIENCE = 3600
# One in so many jobs is also submitted to a pilot one by one.
_PART = 10
_LIMIT = JobAttributes(duration=timedelta(minutes=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few jobs, to see that it works")
    parser.add_argument("--jobs", type=int, default=2000, help="how many jobs")
    parser.add_argument("--turns", type=int, default=3, help="how often it is each way's turn")
    parser.add_argument("--directory", help="where state directories go; the default is a tmpfs")
    parser.add_argument("--cores", type=int, default=4, help="how many cores of each node the pilot has")
    parser.add_argument("--target", default="slurm", help="the executor of the pilot")
    parser.add_argument("--hyperqueue", help="a Python with the package hyperqueue")
    parser.add_argument("--flux", help="the command of a Flux")
    arguments = parser.parse_args()
    count, turns = (50, 1) if arguments.quick else (arguments.jobs, arguments.turns)
    where, target = arguments.directory, arguments.target
    ways = {"in a pilot": lambda: run_measurement(where, in_a_pilot, count, arguments.cores, target)}
    if target == "slurm":
        if not is_local():
            sys.exit("no Slurm answers here; ci/slurm/up starts one")
        ways["one by one"] = lambda: {"slurm": run_measurement(where, one_by_one, count)}
        ways["as an array"] = lambda: {"array": run_measurement(where, as_array, count)}
    if python := arguments.hyperqueue:
        ways["in HyperQueue"] = lambda: {"hyperqueue": in_hyperqueue(python, count, arguments.cores)}
    if flux := arguments.flux:
        ways["in Flux"] = lambda: {"flux": in_flux(flux, count)}
    seconds = interleave(turns, ways)
    print(f"{machine()}\n")
    by_name = {name: [turn[name] for turn in found] for found in seconds.values() for name in found[0]}
    print(_table(count, by_name))


def _table(count: int, seconds: dict[str, list[float]]) -> str:
    """Return the table, with medians of all turns."""
    few = _few(count)
    rows = {
        "slurm": ("submitted to Slurm one by one", count),
        "array": ("submitted to Slurm by `submit_many`, as an array", count),
        "shell": ("in a pilot, by `submit_many`, with an input file", count),
        "many": ("in a pilot, by `submit_many`", count),
        "hyperqueue": ("in HyperQueue's `LocalCluster`, as one of its jobs", count),
        "flux": ("in Flux, by one `flux submit --cc`", count),
        "single": (f"in a pilot, {few} of them one by one", few),
    }
    rows = {name: row for name, row in rows.items() if name in seconds}
    beside = count / median(seconds[next(iter(rows))])
    lines = [f"| {count} times /bin/true | jobs/s | times as many | each turn |", "|---|--:|--:|---|"]
    for name, (what, number) in rows.items():
        rates = [number / it for it in seconds[name]]
        each = ", ".join(f"{it:.0f}" for it in rates)
        lines.append(f"| {what} | {median(rates):.0f} | {median(rates) / beside:.1f} | {each} |")
    return "\n".join([*lines, "", f"The pilot took {median(seconds['start']):.1f} s to start."])


def one_by_one(count: int) -> float:
    """Return the seconds for jobs that are submitted to Slurm one by one."""
    with JobExecutor.get_instance("slurm") as executor:
        return _wait_for_all(executor, _jobs(count), at_once=False)


def as_array(count: int) -> float:
    """Return the seconds for jobs that are submitted to Slurm all at once."""
    with JobExecutor.get_instance("slurm") as executor:
        return _wait_for_all(executor, _jobs(count), at_once=True)


def in_a_pilot(count: int, cores: int, target: str) -> dict[str, float]:
    """Return the seconds for the start of a pilot, and for jobs in it, one by one and all at once."""
    config = PilotConfig(
        target=target,
        nodes_per_pilot=2 if target == "slurm" else 1,
        cores_per_node=cores,
        memory_per_node=2 * 2**30,
        idle_time=timedelta(seconds=5),
    )
    with JobExecutor.get_instance("pilot", config=config) as executor:
        start = _wait_for_all(executor, _jobs(1), at_once=False)
        shell = _wait_for_all(executor, _jobs(count, stdin_path=Path("/dev/null")), at_once=True)
        many = _wait_for_all(executor, _jobs(count), at_once=True)
        single = _wait_for_all(executor, _jobs(_few(count)), at_once=False)
        return {"start": start, "shell": shell, "many": many, "single": single}


_HYPERQUEUE = """
import sys, time
from hyperqueue import Job, LocalCluster
from hyperqueue.cluster import WorkerConfig

count, cores = map(int, sys.argv[1:])
with LocalCluster() as cluster:
    cluster.start_worker(WorkerConfig(cores=cores))
    client = cluster.client()
    for number in (1, count):
        begin = time.monotonic()
        job = Job()
        for _ in range(number):
            job.program(["/bin/true"])
        client.wait_for_jobs([client.submit(job)])
        seconds = time.monotonic() - begin
    print()
    print(seconds, flush=True)
"""
_FLUX = """
flux submit --wait --quiet /bin/true
begin=$(date +%s.%N)
flux submit --cc=1-$1 --wait --quiet /bin/true
end=$(date +%s.%N)
echo "$begin $end"
"""


def in_hyperqueue(python: str, count: int, cores: int) -> float:
    """Return the seconds for the jobs as tasks of HyperQueue, each with files for its output."""
    return float(_last_line([python, "-c", _HYPERQUEUE, str(count), str(cores)]))


def in_flux(flux: str, count: int) -> float:
    """Return the seconds for the jobs in an instance of Flux, which has the cores of this machine."""
    program = ["/bin/sh", "-c", _FLUX, "sh", str(count)]
    begin, end = _last_line([flux, "start", "--test-size=1", *program]).split()
    return float(end) - float(begin)


def _last_line(words: list[str]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.splitlines()[-1]


def _few(count: int) -> int:
    return max(1, count // _PART)


def _jobs(count: int, **fields: Any) -> list[Job]:  # Any: of a spec
    return [Job(JobSpec("/bin/true", attributes=_LIMIT, **fields)) for _ in range(count)]


def _wait_for_all(executor: JobExecutor, jobs: list[Job], *, at_once: bool) -> float:
    begin = time.monotonic()
    if at_once:
        executor.submit_many(jobs)
    else:
        for job in jobs:
            executor.submit(job)
    for job in jobs:
        status = job.wait(_PATIENCE)
        assert status is not None
        assert status.state is jpsi.JobState.COMPLETED, status
    return time.monotonic() - begin


if __name__ == "__main__":
    main()
